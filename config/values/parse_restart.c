/* SPDX-License-Identifier: Apache-2.0 */
/* parse_restart.c - parses how often and after which failures workers are restarted. */
#include "config/values/parse_restart.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/values/parse_duration.h"

int parse_restart_budget(const char *text, void *field, struct why *why)
{
    struct restart_budget budget = { 0 };
    const char *slash = strchr(text, '/');
    char count[32];

    snprintf(count, sizeof count, "%.*s", slash ? (int)(slash - text) : 31, text);
    if (value_int(count, &budget.most) < 0)
        return value_wrong(why, "invalid int value: '%s'", text);
    if (slash && (budget.window_seconds = duration_seconds(slash + 1)) < 0)
        return value_wrong(why, "'%s': write a number, or a number in a time as 3/1h (s, m, h, d)",
                           text);
    if (budget.most < 0)
        return value_wrong(why, "max_restarts must be >= 0, not %d", budget.most);
    *(struct restart_budget *)field = budget;
    return 0;
}

static int is_code(const char *text, int *code)
{
    return value_int(text, code) == 0 && *code > 0 && *code < 256;
}

/* Applies one item to the policy, in which 1 means a restart.  A bare code has the kind of the item
 * before, as 76 has in "on-exit:75,76".  *on is that kind: 1 for on-exit, 0 for never-on, or -1 if
 * no item before had a code. */
static int take_cause(struct restart_policy *policy, const char *item, int *on, struct why *why)
{
    const char *colon = strchr(item, ':');
    const char *value = colon ? colon + 1 : item;
    int code;

    if (!strcmp(item, "any")) {
        memset(policy, 1, sizeof *policy);
    } else if (!strcmp(item, "on-exit")) {
        memset(policy->exits, 1, sizeof policy->exits);
    } else if (!strcmp(item, "on-signal")) {
        memset(policy->signals, 1, sizeof policy->signals);
    } else if (!strncmp(item, "on-signal:", 10) && signal_number(value) > 0
               && signal_number(value) <= 64) {
        policy->signals[signal_number(value)] = 1;
    } else if (!strncmp(item, "on-exit:", 8) && is_code(value, &code)) {
        policy->exits[code] = 1;
        *on = 1;
    } else if (!strncmp(item, "never-on:", 9) && is_code(value, &code)) {
        policy->exits[code] = 0;
        *on = 0;
    } else if (!colon && *on >= 0 && is_code(item, &code)) {
        policy->exits[code] = (unsigned char)*on;
    } else {
        return value_wrong(why,
                           "'%s': write causes, separated by commas: any, on-signal, "
                           "on-signal:SIGKILL, on-exit, on-exit:75, never-on:1",
                           item);
    }
    return 0;
}

/* A text that starts with never-on restarts after every end that the text does not forbid. */
int parse_restart_policy(const char *text, void *field, struct why *why)
{
    struct restart_policy policy;
    int on = -1;

    memset(&policy, strncmp(text, "never-on", 8) == 0, sizeof policy);
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        char item[64];

        snprintf(item, sizeof item, "%.*s", (int)length, at);
        if (take_cause(&policy, item, &on, why) < 0)
            return -1;
        at += length;
        if (!*at)
            break;
    }
    *(struct restart_policy *)field = policy;
    return 0;
}

int parse_on_failure(const char *text, void *field, struct why *why)
{
    struct on_failure value = { 0, 1 };
    const char *colon = strchr(text, ':');

    if (!strcmp(text, "stop")) {
        *(struct on_failure *)field = value;
        return 0;
    }
    value.go_on = 1;
    if (strncmp(text, "continue", 8) != 0 || (text[8] && text[8] != ':')
        || (colon && (value_int(colon + 1, &value.least) < 0 || value.least < 1)))
        return value_wrong(
            why, "'%s': write stop, continue, or continue:MIN (as long as MIN workers live)", text);
    *(struct on_failure *)field = value;
    return 0;
}
