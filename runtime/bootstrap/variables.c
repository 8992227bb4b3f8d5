/* SPDX-License-Identifier: Apache-2.0 */
/* variables.c - warns of a misspelt CT_ variable, which has no effect.
 *
 * The table has all variables that libct and ctrun read.  For each new variable, add a row here and
 * a description in the manual, ctrun-environment(7).  A program may have its own variables that
 * begin with CT_, so only a name that is almost a known name gets a warning. */
#include "runtime/bootstrap/variables.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/values/suggest.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/log.h"

#define MOST_LETTERS 40

static const struct variable_row rows[] = {
    { "CT_TIMEOUT_MS", "limit of init and of each call in milliseconds; 1800000 (30 minutes)" },
    { "CT_LOG", "what libct prints on standard error: none, waits (what an init waits for, after "
                "5 s), error, warn, info or debug; unset: waits, and what a program has left "
                "undone when it ends; ctrun prints the waits of its workers itself" },
    { "CT_BACKEND", "cpu (the default) or mpi, for programs that name no backend" },
    { "CT_LIBMPI", "the plug-in of backend mpi; unset: libct-mpi.so beside libct.so" },
    { "CT_LINK", "shm or tcp: only this link between ranks; all ranks the same" },
    { "CT_INTERFACE",
      "the name or an address of the network interface at which peers on other hosts reach this "
      "rank; unset: as GLOO_SOCKET_IFNAME says, else the one by which it reached the store" },
    { "CT_NETWORK",
      "as 30us,1.2GB/s: the time of a message between hosts and their bandwidth, by which the "
      "algorithms between hosts are chosen; unset: the kernel's figures; all ranks the same" },
    { "CT_ORDER",
      "nodes (the default), rank or fast: in which order reductions fold; all ranks the same" },
    { "CT_TUNING", "a file of overrides such as CT_ALL_REDUCE has; all ranks the same content" },
    { "CT_EXPLAIN",
      "1: rank 0 prints which algorithm each call takes, and why, on standard error" },
    { "CT_DEVICE",
      "fused, nccl or staged: the path of calls on device memory that is tried first" },
    { "CT_HANDOVER",
      "stream (the default) or host: what hands over calls on device memory that are in a stream; "
      "host on any rank counts for all" },
    { "CT_LIBNCCL", "the NCCL library to load, unless the process has one; unset: libnccl.so.2" },
    { "CT_TRACE", "without ctrun: the file of a trace of this rank; %r in it is the rank" },
    { "CT_FAULT", "faults on purpose, for tests, as rank:3,op:all_reduce,phase:1,kill" },
    { "CT_STORE_SECRET",
      "the job's secret, which peers on other hosts need; ctrun sets it for its workers" },
    { "CT_STORE_SECRET_FILE", "the file that the secret is in (mode 600)" },
    { "CT_ENCRYPT", "1: all that leaves a host is encrypted with the job's secret (TLS 1.3); all "
                    "hosts the same" },
    { "CT_STATUS_TOKEN", "the token that --status asks of clients on other hosts, 16 characters at "
                         "least; unset: a new one" },
    { "CT_DEADLINE", "when ct_should_stop() begins to return 1; ctrun sets it for its workers" },
    /* ctrun's options */
    { "CT_JOB", NULL },
    { "CT_RESTART", NULL },
    { "CT_ON_FAILURE", NULL },
    { "CT_DEADLINE_MARGIN", NULL },
    { "CT_STALL", NULL },
    { "CT_FAILURE_REPORT", NULL },
    { "CT_QUIET", NULL },
    { "CT_STATUS", NULL },
    { "CT_EVENTS", NULL },
    { "CT_TRACE_SIZE", NULL },
    { "CT_SHOW", NULL },
    { "CT_PREFIX", NULL },
    { "CT_NO_FOLD", NULL },
    { "CT_STDIN", NULL },
    { "CT_BIND", NULL },
    { "CT_GPUS", NULL },
    { "CT_REPORT", NULL },
    { "CT_EXEC_ON", NULL },
    { "CT_MPI", NULL },
    { "CT_STORE_ALLOW", NULL },
    { "CT_STORE_MEMORY", NULL },
    { "CT_STORE_REQUEST", NULL },
    { "CT_STORE_CLIENTS", NULL },
    { "CT_HOSTS", NULL },
    { "CT_HOSTFILE", NULL },
    { "CT_SSH", NULL },
    /* between ctruns, or from ctrun to its workers */
    { "CT_HOSTS_NODE", NULL },
    { "CT_HOSTS_NAMES", NULL },
    { "CT_SLOTS", NULL },
    { "CT_CONTROL", NULL },
    { "CT_GENERATION", NULL },
    { "CT_TRACE_RING", NULL },
    { "CT_PROGRESS_ROOM", NULL },
    /* tests and scripts */
    { "CT_BUILD", NULL },
    { "CT_JOBS", NULL },
    { "CT_STALLS", NULL },
};
enum { ROWS = sizeof rows / sizeof *rows };

const struct variable_row *variable_row(int i)
{
    return i < ROWS ? &rows[i] : NULL;
}

/* Writes the name of an operation's variable, such as CT_ALL_REDUCE, which
 * collectives/core/choose_algorithm.c reads. */
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

    for (int i = 0; i < ROWS; i++)
        if (!strcmp(name, rows[i].name))
            return 1;
    for (int i = OPERATION_BROADCAST; i < OPERATION_COUNT; i++) {
        name_of_operation(i, operation);
        if (!strcmp(name, operation))
            return 1;
    }
    return 0;
}

static void variables_compare(struct suggestion *best, const char *name, const char *known_name)
{
    suggest(best, name + 3, known_name + 3); /* + 3 skips "CT_" */
}

const char *variable_meant(const char *name)
{
    static _Thread_local char operations[OPERATION_COUNT][MOST_LETTERS];
    struct suggestion best = { NULL, 0 };

    if (strncmp(name, "CT_", 3) != 0 || strlen(name) >= MOST_LETTERS || variable_is_known(name))
        return NULL;
    for (int i = 0; i < ROWS; i++)
        variables_compare(&best, name, rows[i].name);
    for (int i = OPERATION_BROADCAST; i < OPERATION_COUNT; i++) {
        name_of_operation(i, operations[i]);
        variables_compare(&best, name, operations[i]);
    }
    /* A short name that differs in two letters is another name, not a misspelling. */
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
