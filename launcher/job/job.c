/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - the workers of this node, from start to verdict.
 *
 * job_run.c sets all up and goes to meet the other nodes (nodes.h; there may be
 * none).  From then on the event loop (job_events.c) drives: a round that begins, a worker's end, a
 * signal to ctrun, a word of another node or the grace timer becomes one event, and moves[][] says
 * what follows.  The first failure stops the others: SIGTERM, then SIGKILL when the grace period is
 * over; with restarts left all begin again, in a new generation.  A round ends when the last worker
 * has ended, and what the workers started is killed (job_round.c). */
#include "launcher/job/job_internal.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>

#include "runtime/util/log.h"
#include "runtime/util/signal_name.h"

static void stop_and_tell(struct job *job);
static void tell_loss(struct job *job);
static void give_time(struct job *job);
static void stop_late(struct job *job);
static void stop_workers(struct job *job);
static void stop_for_good(struct job *job);
static void forward_and_stop(struct job *job);
static void tell_signal(struct job *job);
static void hurry(struct job *job);
static void kill_workers(struct job *job);

static const struct move {
    enum job_state next;
    void (*act)(struct job *job);
} moves[JOB_STATES][JOB_EVENTS] = {
    [MEETING] = {
        [ROUND] = { RUNNING, job_start_round },
        [SIGNALLED] = { STAY, tell_signal },
        [OVER] = { DONE, job_finish },
    },
    [RUNNING] = {
        [WORKER_FAILED] = { STOPPING, stop_and_tell },
        [WORKER_LOST] = { STAY, tell_loss },
        [WORKER_LEFT] = { STAY, give_time },
        [GRACE_OVER] = { STOPPING, stop_late },
        [TOLD_TO_STOP] = { STOPPING, stop_workers },
        [WORKER_STUCK] = { STOPPING, stop_for_good },
        [SIGNALLED] = { STOPPING, forward_and_stop },
        [LAST_WORKER_GONE] = { ENDED, job_end_round },
    },
    [STOPPING] = {
        [SIGNALLED] = { STAY, hurry },
        [GRACE_OVER] = { STAY, kill_workers },
        [LAST_WORKER_GONE] = { ENDED, job_end_round },
    },
    [ENDED] = {
        [ROUND] = { RUNNING, job_start_round },
        [SIGNALLED] = { STAY, tell_signal },
        [OVER] = { DONE, job_finish },
    },
};

/* An empty cell means: stay, do nothing. */
void job_event(struct job *job, enum job_event event)
{
    const struct move *move = &moves[job->state][event];

    if (move->next != STAY)
        job->state = move->next;
    if (move->act)
        move->act(job);
}

/* ---- Actions ----------------------------------------------------------- */

void job_signal_workers(struct job *job, int number)
{
    for (int i = 0; i < job->size; i++)
        worker_signal(&job->workers[i], number);
}

static void grace(struct job *job, int seconds)
{
    const struct timeval time = { seconds, 0 };

    stall_end(&job->stall); /* who stops need not move */
    event_add(&job->grace, &time);
}

static void stop_workers(struct job *job)
{
    char why[64] = "";

    if (job->first_failed)
        snprintf(why, sizeof why, "rank %d failed", job->first_failed->rank);
    events_stopping(&job->events, SIGTERM, job->first_failed ? why : job->elsewhere);
    trace_host_stopping(&job->trace, SIGTERM);
    job_signal_workers(job, SIGTERM);
    grace(job, job->options->shutdown_timeout);
}

/* Tells the nodes of job->failed by one of their two calls. */
static void tell_failure(struct job *job,
                         void (*tell)(struct nodes *nodes, const struct failure *failure))
{
    const struct worker *worker = job->failed;
    const struct restart_policy *policy = &job->options->restart;
    struct failure failure = { worker->rank, worker_exit_code(worker), 0, NULL,
                               worker_was_killed(worker) };
    char what[128], cause[64];

    report_cause(worker, cause, sizeof cause);
    snprintf(what, sizeof what, "rank %d (pid %d) %s", worker->rank, (int)worker->pid, cause);
    failure.what = what;
    failure.may_restart = !job->for_good
                          && (worker->how == CLD_EXITED ? policy->exits[worker->code & 255]
                                                        : policy->signals[worker->code & 63]);
    tell(job->nodes, &failure);
}

static void stop_and_tell(struct job *job)
{
    stop_workers(job);
    tell_failure(job, job->nodes->ops->failed);
}

/* Nobody is signalled: one may still save what another had not to. */
static void give_time(struct job *job)
{
    if (!event_pending(&job->grace, EV_TIMEOUT, NULL))
        grace(job, job->options->shutdown_timeout);
}

static void stop_late(struct job *job)
{
    job->failed = job->first_failed;
    if (job->first_failed)
        stop_and_tell(job);
    else
        stop_workers(job);
}

static void stop_for_good(struct job *job)
{
    const struct worker *worker = job->failed;
    struct failure failure = { worker->rank, 1, 0, NULL, 1 };
    char what[160];

    snprintf(what, sizeof what, "rank %d (pid %d) waits in the kernel (state D) for %g s",
             worker->rank, (int)worker->pid, job->uninterruptible.limit);
    log_line(LOG_ERROR, "%s: marking worker group UNHEALTHY; it is stopped and not restarted",
             what);
    failure.what = what;
    stop_workers(job);
    job->nodes->ops->failed(job->nodes, &failure);
}

/* The loss is said at once; too few left end the round by TOLD_TO_STOP. */
static void tell_loss(struct job *job)
{
    char cause[64];

    job->lost++;
    job->failed->lost = 1;
    report_cause(job->failed, cause, sizeof cause);
    log_line(LOG_WARN, "rank %d (pid %d) %s; the others go on (--on-failure=%s)", job->failed->rank,
             (int)job->failed->pid, cause, job->options->settings[OPTION_ON_FAILURE].text);
    tell_failure(job, job->nodes->ops->lost);
}

static void tell_signal(struct job *job)
{
    job->nodes->ops->signalled(job->nodes, job->signal);
}

static void say_signal(const struct job *job)
{
    char name[32];

    signal_name(job->signal, name, sizeof name);
    log_line(LOG_WARN,
             "Received %d death signal, %s: forwarded to %d %s; SIGKILL in %d s (once "
             "more: in 2 s)",
             job->signal, name, job->running, job->running == 1 ? "worker" : "workers",
             job->options->shutdown_timeout);
}

/* Nobody sent us one: the workers did not stop when they were asked to. */
static void say_deadline(const struct job *job)
{
    log_line(LOG_WARN,
             "--deadline was reached %d s ago and %d %s not stopped: SIGTERM; SIGKILL in %d s",
             job->options->shutdown_timeout, job->running,
             job->running == 1 ? "worker has" : "workers have", job->options->shutdown_timeout);
}

static void forward_and_stop(struct job *job)
{
    (job->by_deadline ? say_deadline : say_signal)(job);
    job->first_failed = NULL;
    job_ask_stop(job, "", 1);
    events_stopping(&job->events, job->signal,
                    job->by_deadline ? "--deadline was reached" : "ctrun was told to stop");
    trace_host_stopping(&job->trace, job->signal);
    job_signal_workers(job, job->signal);
    grace(job, job->options->shutdown_timeout);
    tell_signal(job);
}

/* The second signal shortens the grace, the third ends it.  The first one may come while the
 * workers stop for another round, which must not begin. */
static void hurry(struct job *job)
{
    tell_signal(job);
    if (++job->impatience > 1)
        kill_workers(job);
    else if (job->options->shutdown_timeout > 2)
        grace(job, 2);
}

static void kill_workers(struct job *job)
{
    job_signal_workers(job, SIGKILL);
}

/* ---- What the nodes say ------------------------------------------------ */

static void on_round(void *arg, const struct plan *plan)
{
    struct job *job = arg;

    job->restarted = job->plan.generation && plan->restarts > job->plan.restarts;
    job->plan = *plan;
    job_event(job, ROUND);
}

static void on_stop(void *arg, const char *why)
{
    struct job *job = arg;
    const int round = job->plan.round;

    job_take_deaths(job);
    if (job->plan.round != round) /* the last worker was among them, and the next round began */
        return;
    snprintf(job->elsewhere, sizeof job->elsewhere, "%s", why);
    job_event(job, job_stops_itself(job) ? WORKER_LEFT : TOLD_TO_STOP);
}

static void on_over(void *arg, int code, const char *why)
{
    struct job *job = arg;

    job->code = code;
    snprintf(job->elsewhere, sizeof job->elsewhere, "%s", why);
    job_event(job, OVER);
}

static void on_died(void *arg, const struct control_death *death)
{
    control_host_died(&((struct job *)arg)->control, death);
}

static void on_member(void *arg, int node, int there)
{
    events_node(&((struct job *)arg)->events, node, there);
}

const struct nodes_hooks job_nodes_hooks = { .round = on_round,
                                             .member = on_member,
                                             .stop = on_stop,
                                             .over = on_over,
                                             .died = on_died,
                                             .stop_asked = job_stop_asked };
