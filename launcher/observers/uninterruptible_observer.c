/* SPDX-License-Identifier: Apache-2.0 */
/* uninterruptible_observer.c - fails a round if a worker hangs in the kernel, for example in a
 * driver or a file system (process state D).
 *
 * TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=SECONDS turns this observer on.  A worker hangs if
 * every check within SECONDS found it in state D.  A check reads /proc/<pid>/stat of each worker.
 * The pause between checks is SECONDS / 10, but at least 10 ms and at most 5 s. */
#include <event2/event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/job/job.h"
#include "launcher/observers/observers.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/process_state.h"

struct uninterruptible_watch {
    double limit; /* seconds; 0 if the observer is off */
    struct event timer;
    struct job *job;
    /* [worker]: time in ms of the first of the successive checks that found state D; 0 if the last
     * check found another state */
    int64_t *since;
};

/* Fails the round without a restart, since a restart would not help. */
static void stuck_found(struct job *job, const struct worker *worker, double seconds)
{
    char what[160];

    snprintf(what, sizeof what, "rank %d (pid %d) has been stuck in the kernel (state D) for %g s",
             worker->rank, (int)worker->pid, seconds);
    job_found_failure(
        job,
        (struct failure){
            .rank = worker->rank, .culprit = -1, .code = 1, .what = what, .is_cause = 1 },
        ": marking worker group UNHEALTHY; it is stopped and not restarted");
}

static void stuck_check_again(struct uninterruptible_watch *watch)
{
    const double pause = fmin(fmax(watch->limit / 10, 0.01), 5);
    const struct timeval time = { (time_t)pause, (suseconds_t)(fmod(pause, 1) * 1e6) };

    event_add(&watch->timer, &time);
}

static void stuck_check(evutil_socket_t fd, short what, void *arg)
{
    struct uninterruptible_watch *watch = arg;
    const int64_t now = clock_ms();

    (void)fd;
    (void)what;
    if (watch->job->state != RUNNING)
        return;
    for (int i = 0; i < watch->job->size; i++) {
        if (!watch->job->workers[i].running || process_state(watch->job->workers[i].pid) != 'D')
            watch->since[i] = 0;
        else if (watch->since[i] == 0)
            watch->since[i] = now;
        else if ((double)(now - watch->since[i]) >= watch->limit * 1000) {
            stuck_found(watch->job, &watch->job->workers[i], watch->limit);
            return;
        }
    }
    stuck_check_again(watch);
}

/* Reads the limit as a float, like torchrun.  The observer stays off if the variable is not a
 * number or not above 0. */
static int uninterruptible_job_began(void *state, struct job *job)
{
    struct uninterruptible_watch *watch = state;
    const char *text = getenv("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT");
    char *end = NULL;
    const double limit = text && *text ? strtod(text, &end) : 0;

    watch->job = job;
    if (!end || *end || !(limit > 0) || limit > 1e9)
        return 0;
    if (!(watch->since = calloc((size_t)job->size, sizeof *watch->since))) {
        log_line(LOG_ERROR, "out of memory for %d workers", job->size);
        return 1;
    }
    watch->limit = limit;
    evtimer_assign(&watch->timer, job->base, stuck_check, watch);
    return 0;
}

static void uninterruptible_round_began(void *state, struct job *job)
{
    struct uninterruptible_watch *watch = state;

    if (watch->limit > 0) {
        memset(watch->since, 0, (size_t)job->size * sizeof *watch->since);
        stuck_check_again(watch);
    }
}

static void uninterruptible_close(void *state, const struct job_end *end)
{
    (void)end;
    free(((struct uninterruptible_watch *)state)->since);
}

const struct job_observer uninterruptible_observer = { .bytes =
                                                           sizeof(struct uninterruptible_watch),
                                                       .job_began = uninterruptible_job_began,
                                                       .close = uninterruptible_close,
                                                       .round_began = uninterruptible_round_began };
