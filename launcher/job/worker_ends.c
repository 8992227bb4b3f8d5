/* SPDX-License-Identifier: Apache-2.0 */
/* worker_ends.c - handles ends of workers: tells the other ranks, reaps, and finds the first
 * failure and the last worker of a round. */
#include <event2/event.h>
#include <signal.h>
#include <sys/wait.h>

#include "launcher/job/job_internal.h"
#include "runtime/util/log.h"

/* Tells the ranks of this host, then the other nodes, then the observers that a worker died.  Runs
 * before the first failure is known, since other ranks may be waiting for this one. */
void job_worker_died(void *arg, const struct worker *worker)
{
    struct job *job = arg;
    struct control_death death;

    control_host_describe(&job->control, worker, &death);
    death.noted_ns = worker_failed(worker) ? worker_noted_ns(worker, &job->folder) : 0;
    root_graph_died(&job->round.graph, &death, 1);
    control_host_died(&job->control, &death, 1);
    job->nodes->ops->died(job->nodes, &death);
    JOB_TELL(job, worker_died, &job->workers[worker->local_rank]);
}

void job_set_first_failed(struct job *job, struct worker *worker)
{
    if (job->round.first_failed)
        job->round.first_failed->first_failed = 0;
    job->round.first_failed = worker;
    worker->first_failed = 1;
}

/* Says whether a failure becomes the first one of the round.  left: the worker left at the step at
 * which all were asked to stop.  A failure replaces such a worker as the first one, and such a
 * worker replaces a forgiven loss. */
static int is_first_failed(const struct job *job, int left)
{
    if (!job->round.first_failed)
        return 1;
    if (left)
        return job->round.first_failed->lost;
    return !job->options->on_failure.go_on && job_stopped_at(job, job->round.first_failed);
}

static void worker_ended(struct job *job, struct worker *worker)
{
    const struct failed_round round = job_failed_round(job, job->round.first_failed);
    const int its_own =
        !root_graph_has_edge(&job->round.graph, worker->rank)
        && (!job->round.first_failed || worker->spared || job->options->on_failure.go_on);

    JOB_TELL(job, worker_ended, &round, worker, its_own);
    job->round.running--;
    if (worker_failed(worker) && job->state == RUNNING) {
        const int left = job_stopped_at(job, worker) > 0;

        job->round.failed = worker;
        if (is_first_failed(job, left))
            job_set_first_failed(job, worker);
        job_event(job, left                             ? WORKER_LEFT
                       : job->options->on_failure.go_on ? WORKER_LOST
                                                        : WORKER_FAILED);
    }
    if (job->round.running > 0)
        return;
    if (job->round.first_failed && job->state == RUNNING
        && job_stopped_at(job, job->round.first_failed)) {
        job->round.failed = job->round.first_failed; /* the others had their time: report it now */
        job_event(job, WORKER_FAILED);
    }
    job_event(job, LAST_WORKER_GONE);
}

/* ---- What observers find ---- */

void job_found_fault(struct job *job, struct worker *worker)
{
    if (job->state != RUNNING)
        return;
    if (job->options->on_failure.go_on && worker->running) { /* its end will be the loss */
        worker_signal(worker, SIGKILL);
        return;
    }
    job->round.failed = worker;
    if (is_first_failed(job, 0))
        job_set_first_failed(job, worker);
    job_event(job, job->options->on_failure.go_on ? WORKER_LOST : WORKER_FAILED);
}

/* If the rank's own node has a failure to report, too, that failure counts, since it was sent
 * before. */
void job_found_failure(struct job *job, struct failure failure, const char *also)
{
    failure.may_restart = failure.may_restart && !job->stop.for_good;
    if (job->state != RUNNING)
        return;
    log_line(LOG_ERROR, "%s%s", failure.what, also);
    job_event(job, TOLD_TO_STOP);
    job->nodes->ops->failed(job->nodes, &failure);
}

/* ---- SIGCHLD ---- */

static int is_known(const void *arg, pid_t pid)
{
    const struct job *job = arg;

    if (pid == job->guard.pid)
        return 1;
    for (int i = 0; i < job->size; i++)
        if (job->workers[i].group == pid)
            return 1;
    return 0;
}

/* Warns if the guard was killed.  ctrun starts no new guard: it would fork a process that has
 * threads by now. */
static void look_after_guard(struct job *job)
{
    const int pid = (int)job->guard.pid;

    if (guard_was_killed(&job->guard))
        log_line(LOG_WARN,
                 "the guard (process %d) was killed; the job goes on, but if ctrun is killed now, "
                 "too, what the workers started may stay behind",
                 pid);
}

/* Did another rank cause the first failure among these deaths?  Then no earlier note and no earlier
 * death is looked for. */
static int first_has_edge(const struct job *job, int count)
{
    for (int i = 0; i < count; i++)
        if (worker_failed(&job->workers[job->failures.ended[i]]))
            return root_graph_has_edge(&job->round.graph,
                                       job->workers[job->failures.ended[i]].rank);
    return 0;
}

static void take_deaths(struct job *job, int count)
{
    struct first_failure *failures = &job->failures;

    job->round.takes_deaths = 1;
    if (count > 0)
        job_look_for_signalled(job); /* they may have stopped because of a SIGTERM to one */
    if (job->state == RUNNING && !job->round.first_failed && !job->options->on_failure.go_on
        && !first_has_edge(job, count))
        count = first_failure_to_front(failures, count, &job->folder);
    for (int i = 0; i < count; i++)
        worker_ended(job, &job->workers[failures->ended[i]]);
    job->round.takes_deaths = 0;
}

/* Takes deaths whose SIGCHLD is still pending, before the workers are stopped for another node.  If
 * take_deaths() led here, since too few ranks are left, failures.ended is in use, and later deaths
 * are taken with their own SIGCHLD. */
void job_take_pending_deaths(struct job *job)
{
    if (job->state == RUNNING && !job->round.takes_deaths)
        take_deaths(
            job, first_failure_await_killed(&job->failures, first_failure_collect(&job->failures)));
}

/* SIGCHLDs merge while they wait, so several workers may have ended, or all were taken before.
 * first: the process that the kept signal names. */
void job_reap(struct job *job, pid_t first)
{
    take_deaths(job, first_failure_collect(&job->failures));
    look_after_guard(job);
    if (!is_known(job, first))
        subreaper_reap(is_known, job);
}
