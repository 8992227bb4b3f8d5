/* SPDX-License-Identifier: Apache-2.0 */
/* kept.c - the commands for jobs that ctrun --detach started: attach, logs and wait; and kill, for
 * all jobs of this host.
 *
 * A reader of the output looks for more every LOOK_MS.  It never makes the job wait.  A reader that
 * is too slow says how many bytes it has lost. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/ctctl/ctctl.h"
#include "launcher/detach/kept_job.h"
#include "runtime/util/clock.h"
#include "runtime/util/process_state.h"

#define LOOK_MS 50
#define SAY_MS 5000
#define ATTACH_LINES 20

static void look_later(void)
{
    const struct timespec time = { 0, LOOK_MS * 1000000L };

    nanosleep(&time, NULL);
}

static int find_kept(struct kept_job *job, char **words, int count)
{
    if (kept_job_find(job, count > 0 ? words[0] : NULL) == 0)
        return 0;
    if (count > 0)
        fprintf(stderr, "ctctl: ctrun --detach has not started a job %s here\n", words[0]);
    else
        fprintf(stderr, "ctctl: ctrun --detach has not started a job here\n");
    return -1;
}

static void say_lost(struct kept_output *output)
{
    if (output->lost > 0)
        fprintf(stderr,
                "ctctl: %llu bytes of output were overwritten before they were read (ctrun "
                "--detach=SIZE keeps more)\n",
                (unsigned long long)output->lost);
    output->lost = 0;
}

/* Prints the output from the last `lines` lines on, or all of it if `lines` is negative; until the
 * job has ended if `follows` is 1.  Returns 0, or -1 after it has printed an error message. */
static int print_output(const struct kept_job *job, int lines, int follows)
{
    struct kept_output output;
    char bytes[65536];
    int ends = 0, failed = kept_output_open(&output, job, lines) < 0;

    if (failed)
        fprintf(stderr, "ctctl: cannot read %s/output: %s\n", job->path, strerror(errno));
    while (!failed && !ends) {
        size_t got;

        ends = !follows || !kept_job_runs(job, 0); /* before the last read */
        while ((got = kept_output_read(&output, bytes, sizeof bytes)) > 0 && !failed) {
            say_lost(&output);
            failed = fwrite(bytes, 1, got, stdout) < got; /* main() prints why */
        }
        failed |= fflush(stdout) != 0;
        if (!ends)
            look_later();
    }
    kept_output_close(&output);
    return failed ? -1 : 0;
}

/* Returns the exit code of the job, which has ended. */
static int code_of(const struct kept_job *job)
{
    const int code = kept_job_code(job);

    if (code >= 0)
        return code;
    fprintf(stderr,
            "ctctl: the exit code of job %d is not known: its keeper was killed, the host stopped, "
            "or the disk is full\n",
            (int)job->pid);
    return WRONG_USAGE;
}

int command_attach(struct ctctl_options *options, char **words, int count)
{
    struct kept_job job;

    if (find_kept(&job, words, count) < 0)
        return WRONG_USAGE;
    if (isatty(STDERR_FILENO) && kept_job_runs(&job, 0))
        fprintf(stderr, "ctctl: attached to job %d; Ctrl-C leaves it running\n", (int)job.pid);
    if (print_output(&job, options->lines >= 0 ? options->lines : ATTACH_LINES, 1) < 0)
        return WRONG_USAGE;
    return code_of(&job);
}

int command_logs(struct ctctl_options *options, char **words, int count)
{
    struct kept_job job;

    return find_kept(&job, words, count) < 0
                   || print_output(&job, options->lines, options->follow) < 0
               ? WRONG_USAGE
               : 0;
}

int command_wait(struct ctctl_options *options, char **words, int count)
{
    struct kept_job job;

    (void)options;
    if (find_kept(&job, words, count) < 0)
        return WRONG_USAGE;
    kept_job_runs(&job, 1);
    return code_of(&job);
}

/* ---- kill --------------------------------------------------------------------------- */

/* Stops ctrun, which stops its workers, and waits for its end. */
static int stop_ctrun(pid_t pid)
{
    const int64_t began = clock_ms();
    int64_t say = began + SAY_MS;

    if (kill(pid, SIGTERM) < 0 && errno != ESRCH) {
        fprintf(stderr, "ctctl: cannot stop ctrun %d: %s\n", (int)pid, strerror(errno));
        return WRONG_USAGE;
    }
    while (!strchr("ZX", process_state(pid))) { /* 0 after its end */
        if (clock_ms() >= say) {
            fprintf(stderr,
                    "ctctl: ctrun %d has been stopping for %d s; its workers have until "
                    "--shutdown-timeout\n",
                    (int)pid, (int)((clock_ms() - began) / 1000));
            say += 30000;
        }
        look_later();
    }
    return 0;
}

static int kill_show_jobs(struct job_list *jobs, const struct ctctl_options *options)
{
    int code = 0;

    for (int i = 0; i < jobs->count; i++)
        if (job_is_selected(&jobs->job[i], options)) {
            const struct job_snapshot *job = &jobs->job[i];

            if (job->own_memory)
                fprintf(stderr, "ctctl: job %s has no ctrun that could be stopped\n", job->run_id);
            if (job->own_memory || stop_ctrun(job->launcher) != 0)
                code = WRONG_USAGE;
        }
    return code;
}

/* Takes a job by its pid from the kept jobs, too: before its workers run, it is not in the list of
 * jobs.  A run id stops all jobs with that id. */
int command_kill(struct ctctl_options *options, char **words, int count)
{
    struct kept_job job;

    if (kept_job_find(&job, words[0]) == 0 && job.pid == atoi(words[0]) && kept_job_runs(&job, 0))
        return stop_ctrun(job.pid);
    return jobs_run(options, words, count, kill_show_jobs);
}
