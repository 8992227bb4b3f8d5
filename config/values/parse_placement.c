/* SPDX-License-Identifier: Apache-2.0 */
/* parse_placement.c - parses lists of CPUs and lists of GPUs. */
#include "config/values/parse_placement.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *cpu_list(const char *text, unsigned char *set, size_t bytes)
{
    memset(set, 0, bytes);
    for (;;) {
        char *end;
        unsigned long first, last;

        if (!isdigit((unsigned char)*text))
            return NULL;
        first = last = strtoul(text, &end, 10);
        if (*end == '-' && isdigit((unsigned char)end[1]))
            last = strtoul(end + 1, &end, 10);
        if (last < first || last >= 8 * bytes)
            return NULL;
        for (; first <= last; first++)
            set[first / 8] = (unsigned char)(set[first / 8] | 1 << first % 8);
        if (*end != ',')
            return !*end || *end == ';' ? end : NULL;
        text = end + 1;
    }
}

int parse_bind(const char *text, void *field, struct why *why)
{
    static const char *const words[] = { "gpu", "numa", "core", "none" };
    unsigned char set[1024];

    for (int i = 0; i < 4; i++)
        if (!strcmp(text, words[i]))
            return parse_text(text, field, why);
    for (const char *at = text; (at = cpu_list(at, set, sizeof set)); at++)
        if (!*at)
            return parse_text(text, field, why);
    return value_wrong(why,
                       "'%s': write gpu, numa, core, none, or CPUs by local rank, as 0-3;4-7,12 "
                       "(numbers below 8192)",
                       text);
}

/* Returns 1 if the item of `length` bytes at `at` also appears in text before `at`. */
static int stands_before(const char *text, const char *at, size_t length)
{
    for (; text < at; text += strcspn(text, ",") + 1)
        if (strcspn(text, ",") == length && !strncmp(text, at, length))
            return 1;
    return 0;
}

int parse_gpus(const char *text, void *field, struct why *why)
{
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");

        if (length == 0 || memchr(at, ' ', length))
            return value_wrong(
                why, "'%s': write numbers or names of GPUs, separated by commas, as 2,4,7", text);
        if (stands_before(text, at, length))
            return value_wrong(why, "'%s' has %.*s twice", text, (int)length, at);
        at += length;
        if (!*at)
            return parse_text(text, field, why);
    }
}

int parse_report(const char *text, void *field, struct why *why)
{
    static const char *const words[] = { "text", "json", NULL };
    const int choice = value_choice(text, words, why);

    *(enum report_form *)field = choice < 0 ? REPORT_NOT : REPORT_TEXT + choice;
    return choice < 0 ? -1 : 0;
}
