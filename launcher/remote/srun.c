/* SPDX-License-Identifier: Apache-2.0 */
/* srun.c - `ctrun ./app` in a batch script, or in the shell of salloc: this process becomes srun,
 * which starts ctrun once on each node of the allocation with the same words.
 *
 * The step's variables say the rest.  Two are ours: CT_SLOTS, the tasks of each node as the
 * allocation has them, since the step's own are one a node; and CT_STORE_SECRET, which Slurm
 * carries in the environment, where other users can't read it. */
#include "launcher/remote/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/nodes/job_rendezvous.h"
#include "launcher/util/shell_words.h"
#include "runtime/util/log.h"

#define SRUN_WORDS 16

/* Of ctrun's own words only the first is not passed on. */
static char **srun_command(const struct options *options, char **argv, char *counts, size_t size)
{
    static char own_path[4096];
    const ssize_t length = readlink("/proc/self/exe", own_path, sizeof own_path - 1);
    const char *input = "--input=0";
    char **words, *nodes = counts, *tasks = counts + size / 2;
    int count = 0, rest = 0;

    while (argv[0] && argv[rest + 1])
        rest++;
    if (length < 0 || !(words = calloc((size_t)(SRUN_WORDS + rest), sizeof *words)))
        return NULL;
    own_path[length] = 0;
    snprintf(nodes, size / 2, "--nodes=%d", options->surroundings.srun_nodes);
    snprintf(tasks, size / 2, "--ntasks=%d", options->surroundings.srun_nodes);
    if (options->stdin_to.kind == STDIN_NONE)
        input = "--input=none";
    else if (options->stdin_to.kind == STDIN_ALL || options->stdin_to.rank > 0)
        input = "--input=all";
    words[count++] = "srun";
    words[count++] = nodes;
    words[count++] = tasks;
    words[count++] = "--ntasks-per-node=1";
    words[count++] = "--overlap";            /* of an interactive step, or another job step */
    words[count++] = "--cpu-bind=none";      /* workers may use all that the job has here */
    words[count++] = "--kill-on-bad-exit=0"; /* each ctrun ends by itself, and prints its report */
    words[count++] = "--wait=0";
    words[count++] = "--mpi=none";
    words[count++] = "--export=ALL";
    words[count++] = (char *)input;
    words[count++] = own_path;
    for (int i = 0; i < rest; i++)
        words[count++] = argv[i + 1];
    return words;
}

void remote_srun_print(FILE *out, const struct options *options, char **argv)
{
    char counts[64], **words = srun_command(options, argv, counts, sizeof counts);

    if (words)
        shell_print(out, words);
    free(words);
}

/* -1: the error is logged. */
static int give_secret(const struct options *options)
{
    struct secret secret;
    char text[sizeof secret.bytes + 1];
    ct_status status = job_secret_read(options, &secret);

    if (status == CT_OK && secret.size == 0)
        status = secret_make(&secret);
    if (status != CT_OK) {
        log_line(LOG_ERROR, "%s", ct_last_error());
        return -1;
    }
    snprintf(text, sizeof text, "%.*s", (int)secret.size, (const char *)secret.bytes);
    return setenv("CT_STORE_SECRET", text, 1);
}

int remote_srun(const struct options *options, char **argv)
{
    const char *tasks = getenv("SLURM_NTASKS") ? getenv("SLURM_TASKS_PER_NODE") : NULL;
    char counts[64], **words = srun_command(options, argv, counts, sizeof counts);

    if (!words || give_secret(options) < 0 || setenv("CT_SLOTS", tasks ? tasks : "", 1) < 0) {
        free(words);
        return 1;
    }
    unsetenv("SLURM_PTY_PORT"); /* the step is no shell */
    execvp(words[0], words);
    log_line(LOG_ERROR,
             "this is Slurm job %s with %d nodes, but srun can't be executed: %s (--nnodes=1 or "
             "--standalone uses this node only)",
             getenv("SLURM_JOB_ID"), options->surroundings.srun_nodes, strerror(errno));
    free(words);
    return 127;
}
