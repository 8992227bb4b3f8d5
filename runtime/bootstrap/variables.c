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
    { "CT_TIMEOUT_MS",
      "The limit of an init and of each call, in milliseconds. The default is 1800000, which "
      "is 30 minutes." },
    { "CT_LOG",
      "What libct prints on standard error: none, waits, error, warn, info or debug. waits "
      "prints what an init waits for, after 5 s. Without this variable libct prints that, "
      "and what a program has left undone when it ends. ctrun prints the waits of its "
      "workers itself." },
    { "CT_BACKEND", "The backend of programs that name none: cpu (the default) or mpi." },
    { "CT_LIBMPI",
      "The file of the plug-in for the backend mpi. The default is libct-mpi.so in the "
      "folder of libct.so." },
    { "CT_LINK",
      "Use this link between ranks only: shm or tcp. All ranks must have the same value." },
    { "CT_INTERFACE",
      "The name or address of the network interface at which ranks on other hosts reach this "
      "rank. The default is GLOO_SOCKET_IFNAME, else the interface by which this rank "
      "reached the store." },
    { "CT_NETWORK",
      "The latency and the bandwidth between hosts, as 30us,1.2GB/s. libct chooses the "
      "algorithms between hosts by them. The default is what the kernel reports, and then what "
      "large all-reduces measure. All ranks must have the same value." },
    { "CT_ORDER",
      "The order in which reductions add up the ranks: nodes (the default), rank or fast. "
      "All ranks must have the same value." },
    { "CT_TUNING",
      "A file of overrides such as CT_ALL_REDUCE has. Its content must be the same on all "
      "ranks." },
    { "CT_EXPLAIN",
      "With 1, rank 0 prints on standard error which algorithm each call takes, and why." },
    { "CT_DEVICE", "The path that calls on device memory try first: fused, nccl or staged." },
    { "CT_HANDOVER",
      "What hands over calls on device memory that are in a stream: stream (the default) or "
      "host. host on one rank applies to all ranks." },
    { "CT_LIBNCCL",
      "The NCCL library to load if the process has none. The default is libnccl.so.2." },
    { "CT_AS_GLOO",
      "With 1, PyTorch uses libct under the name gloo. The ctrun wheel must be installed." },
    { "CT_OBSERVE",
      "With 0, the ctrun wheel shows neither the calls of PyTorch's gloo and NCCL nor lines of "
      "Python to ctrun and ctctl." },
    { "CT_TRACE", "Without ctrun: the file of this rank's trace. %r in the name is the rank." },
    { "CT_FAULT", "Faults on purpose, for tests, as rank:3,op:all_reduce,phase:1,kill." },
    { "CT_STORE_SECRET",
      "The job's secret, which ranks on other hosts need. ctrun sets it for its workers." },
    { "CT_STORE_SECRET_FILE", "The file that contains the secret. Its mode must be 600." },
    { "CT_ENCRYPT",
      "With 1, all that leaves a host is encrypted with the job's secret (TLS 1.3). All "
      "hosts must have the same value." },
    { "CT_STATUS_TOKEN",
      "The token that --status requires of clients on other hosts. It must have at least 16 "
      "characters. The default is a new random token." },
    { "CT_DEADLINE", "When ct_should_stop() starts to return 1. ctrun sets it for its workers." },
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
