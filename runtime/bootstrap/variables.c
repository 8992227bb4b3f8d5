/* SPDX-License-Identifier: Apache-2.0 */
/* variables.c - a warning for a misspelt CT_ variable, which has no effect.
 *
 * This is the list of all variables that libct and ctrun read: a new getenv() or option adds its
 * name here.  A program may have its own variables that begin with CT_, so only a name that is
 * almost a known one gets a warning. */
#include "runtime/bootstrap/variables.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/values/suggest.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/log.h"

#define MOST_LETTERS 40

static const char *const known[] = {
    /* libct */
    "CT_TIMEOUT_MS", "CT_LOG", "CT_LINK", "CT_INTERFACE", "CT_ORDER", "CT_DEVICE", "CT_NETWORK",
    "CT_HANDOVER", "CT_LIBNCCL", "CT_LIBMPI", "CT_BACKEND", "CT_TUNING", "CT_EXPLAIN", "CT_TRACE",
    "CT_FAULT", "CT_DEADLINE", "CT_ENCRYPT", "CT_STORE_SECRET", "CT_STORE_SECRET_FILE",
    /* ctrun, and what it gives to its workers */
    "CT_JOB", "CT_RESTART", "CT_ON_FAILURE", "CT_DEADLINE_MARGIN", "CT_STALL", "CT_EVENTS",
    "CT_TRACE_SIZE", "CT_SHOW", "CT_PREFIX", "CT_NO_FOLD", "CT_STDIN", "CT_BIND", "CT_GPUS",
    "CT_REPORT", "CT_EXEC_ON", "CT_MPI", "CT_STORE_ALLOW", "CT_STORE_MEMORY", "CT_STORE_REQUEST",
    "CT_STORE_CLIENTS", "CT_HOSTS", "CT_HOSTFILE", "CT_SSH", "CT_HOSTS_NODE", "CT_SLOTS",
    "CT_CONTROL", "CT_GENERATION", "CT_TRACE_RING",
    /* tests and scripts */
    "CT_BUILD", "CT_JOBS", "CT_STALLS"
};

/* CT_ALL_REDUCE and the like, which collectives/core/choose_algorithm.c reads. */
static void name_of_operation(int operation, char name[MOST_LETTERS])
{
    const char *text = operation_name(operation);
    size_t n = 3;

    memcpy(name, "CT_", n);
    for (; text[n - 3] && n < MOST_LETTERS - 1; n++)
        name[n] = (char)(text[n - 3] == '_' ? '_' : text[n - 3] - 'a' + 'A');
    name[n] = 0;
}

int variable_is_known(const char *name)
{
    char operation[MOST_LETTERS];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i]))
            return 1;
    for (int i = OPERATION_BROADCAST; i < OPERATION_COUNT; i++) {
        name_of_operation(i, operation);
        if (!strcmp(name, operation))
            return 1;
    }
    return 0;
}

static void compare(struct suggestion *best, const char *name, const char *known_name)
{
    suggest(best, name + 3, known_name + 3); /* all begin with CT_ */
}

const char *variable_meant(const char *name)
{
    static _Thread_local char operations[OPERATION_COUNT][MOST_LETTERS];
    struct suggestion best = { NULL, 0 };

    if (strncmp(name, "CT_", 3) != 0 || strlen(name) >= MOST_LETTERS || variable_is_known(name))
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        compare(&best, name, known[i]);
    for (int i = OPERATION_BROADCAST; i < OPERATION_COUNT; i++) {
        name_of_operation(i, operations[i]);
        compare(&best, name, operations[i]);
    }
    /* A short name that differs in two letters is another name. */
    return best.word && (best.distance < 2 || strlen(name) >= 12) ? best.word - 3 : NULL;
}

void environment_warn(void)
{
    for (char *const *variable = environ; variable && *variable; variable++) {
        char name[MOST_LETTERS];
        const char *meant;

        if (strncmp(*variable, "CT_", 3) != 0 || strcspn(*variable, "=") >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*variable, "="), *variable);
        if ((meant = variable_meant(name)))
            log_line(LOG_WARN, "%s has no effect; did you mean %s?", name, meant);
    }
}
