/* SPDX-License-Identifier: Apache-2.0 */
/* worker_ends.c - handles the ends of workers.  It tells the other ranks of each end, reaps the
 * worker, and finds the first failure and the last worker of a round. */
#include <event2/event.h>
#include <signal.h>
#include <sys/wait.h>

#include "launcher/inspect/ask.h"
#include "launcher/inspect/observed_blame.h"
#include "launcher/job/job_internal.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define ANSWERS_MS 500 /* how long ctrun waits for observers after a failure */

/* Logs where the rank is that did not come to a call, if its observer has answered. */
static void say_where_it_is(const struct job_snapshot *page, const struct control_blame *blame)
{
    const int at = blame->on.rank - page->base;

    if (blame->on.reason == BLAME_LATE && blame->call.seq > 0 && at >= 0 && at < page->ranks
        && *page->rank[at].main_place)
        log_line(LOG_ERROR, "rank %d (pid %d) did not come to %s #%llu: it is at %s",
                 blame->on.rank, (int)page->rank[at].worker, operation_name(blame->call.operation),
                 (unsigned long long)blame->call.seq, page->rank[at].main_place);
}

/* Returns the worker's line with a failed call of another library; NULL if it has none. */
static const struct control_group *observed_line(const struct control_host *control,
                                                 const struct worker *worker)
{
    const struct control_rank *page = control_rank_at(control->head, worker->local_rank);

    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (atomic_load(&page->groups[i].id) && page->groups[i].caller == CONTROL_OBSERVED
            && page->groups[i].now.phase == CONTROL_FAILED)
            return &page->groups[i];
    return NULL;
}

/* Asks the observers of the other ranks what these do.  If a call of another library failed on the
 * worker, this tells the rank to blame.  The event loop waits for the answers, which take some
 * milliseconds, and for at most ANSWERS_MS in a round, however many workers fail. */
static void ask_why_it_failed(struct job *job, const struct worker *worker,
                              struct control_death *death)
{
    const int is_first = !job->round.answers_until, has_blame = death->blame.on.reason;
    struct control_blame *const known = &job->round.observed;
    const struct control_group *line;
    struct job_snapshot page;

    if (!worker_failed(worker) || worker->asked || !job->control.head)
        return;
    line = has_blame ? NULL : observed_line(&job->control, worker);
    if (line && known->on.reason != BLAME_NONE && known->call.seq == line->now.seq
        && known->group == atomic_load(&line->id)) {
        death->blame = *known;
        return;
    }
    if (!line && !(is_first && death->blame.on.reason == BLAME_LATE))
        return;
    if (is_first)
        job->round.answers_until = deadline_after(ANSWERS_MS);
    else if (time_left_ms(job->round.answers_until, 1) == 0)
        return;
    if (ask_and_read(job->control.memory, job->round.answers_until, &page) < 0)
        return;
    if (line && observed_blame(&page, worker->local_rank, known))
        death->blame = *known;
    if (is_first)
        say_where_it_is(&page, &death->blame);
    snapshot_free(&page);
}

/* Tells the ranks of this host, then the other nodes, then the observers that a worker died.  Runs
 * before the first failure is known, since other ranks may be waiting for this one. */
void job_worker_died(void *arg, const struct worker *worker)
{
    struct job *job = arg;
    struct control_death death;

    control_host_describe(&job->control, worker, &death);
    ask_why_it_failed(job, worker, &death);
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

/* Returns 1 if a new failure becomes the first failure of the round.  left is 1 if the worker only
 * left at the step at which all ranks were asked to stop.  A failure replaces a worker that only
 * left.  With --on-failure=continue, a worker that left replaces a worker that failed. */
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
        job->round.failed = job->round.first_failed; /* all workers have ended: report it now */
        job_event(job, WORKER_FAILED);
    }
    job_event(job, LAST_WORKER_GONE);
}

/* ---- What observers find ---- */

void job_found_fault(struct job *job, struct worker *worker)
{
    if (job->state != RUNNING)
        return;
    if (job->options->on_failure.go_on && worker->running) { /* the end is handled as the loss */
        worker_signal(worker, SIGKILL);
        return;
    }
    job->round.failed = worker;
    if (is_first_failed(job, 0))
        job_set_first_failed(job, worker);
    job_event(job, job->options->on_failure.go_on ? WORKER_LOST : WORKER_FAILED);
}

/* Stops the round because of failure.rank.  If that rank's own node also reports a failure, the
 * report of that node takes precedence, since it was sent earlier. */
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

/* Warns if the guard was killed.  ctrun starts no new guard, since ctrun has threads by now and
 * must not fork. */
static void look_after_guard(struct job *job)
{
    const int pid = (int)job->guard.pid;

    if (guard_was_killed(&job->guard))
        log_line(LOG_WARN,
                 "the guard (process %d) was killed; the job continues, but if ctrun is killed "
                 "too, processes that the workers started may stay behind",
                 pid);
}

/* Returns 1 if the first failure among these deaths blames another rank.  The caller then need not
 * look for an earlier failure. */
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
        job_look_for_signalled(job); /* they may have ended because one of them got SIGTERM */
    if (job->state == RUNNING && !job->round.first_failed && !job->options->on_failure.go_on
        && !first_has_edge(job, count))
        count = first_failure_to_front(failures, count, &job->folder);
    for (int i = 0; i < count; i++)
        worker_ended(job, &job->workers[failures->ended[i]]);
    job->round.takes_deaths = 0;
}

/* Handles deaths with a pending SIGCHLD before the workers are stopped for another node.  Does
 * nothing if take_deaths() is a caller of this function, since failures.ended is in use then.  That
 * happens when too few ranks are left.  The later deaths are handled after their SIGCHLD. */
void job_take_pending_deaths(struct job *job)
{
    if (job->state == RUNNING && !job->round.takes_deaths)
        take_deaths(
            job, first_failure_await_killed(&job->failures, first_failure_collect(&job->failures)));
}

/* Handles SIGCHLD.  Pending SIGCHLDs merge, so several workers may have ended, or all ended workers
 * may have been handled already.  first is the process that the signal names. */
void job_reap(struct job *job, pid_t first)
{
    take_deaths(job, first_failure_collect(&job->failures));
    look_after_guard(job);
    if (!is_known(job, first))
        subreaper_reap(is_known, job);
}
