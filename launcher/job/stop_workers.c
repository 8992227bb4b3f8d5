/* SPDX-License-Identifier: Apache-2.0 */
/* stop_workers.c - stops workers with SIGTERM, and with SIGKILL when the grace period is over.
 *
 * job.c decides when to stop them (moves[][]).  The grace period is --shutdown-timeout.  A second
 * signal to ctrun shortens the grace period, and a third signal ends it.  A worker that caused
 * another worker's failure gets SIGTERM up to 2 s later than the others, so that it can end by
 * itself and report the cause.  If ranks made different calls, all workers get SIGTERM so late,
 * since the calls of the others show which rank is wrong. */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>

#include "launcher/job/job_internal.h"
#include "runtime/util/log.h"
#include "runtime/util/process_state.h"
#include "runtime/util/signal_name.h"

#define HURRY_S 2 /* seconds that a second signal leaves of --shutdown-timeout */

void stop_signal_workers(struct job *job, int number)
{
    for (int i = 0; i < job->size; i++)
        worker_signal(&job->workers[i], number);
}

static void grace_begin(struct job *job, int seconds)
{
    const struct timeval time = { seconds, 0 };

    event_add(&job->grace, &time);
}

/* ---- The culprit may end by itself ---- */

#define SPARE_MS 2000

/* Adds to the graph which ranks the living ranks of this node blame.  The graph has the blames of
 * the dead ranks already. */
static void read_blames(struct job *job)
{
    struct control_blame blame;

    for (int i = 0; i < job->size && job->control.head; i++)
        if (job->workers[i].running
            && control_blame_read(control_rank_at(job->control.head, i), job->plan.world, &blame))
            root_graph_blames(&job->round.graph, job->workers[i].rank, &blame);
}

static int is_spared(const struct worker *worker)
{
    return worker->spared && worker->running;
}

/* Sets worker->stopped if the worker is stopped.  A worker that a debugger holds does not count,
 * since the debugger may let it continue in a moment. */
static void note_if_stopped(struct worker *worker)
{
    const char by = worker->running ? process_is_stopped(worker->pid) : 0;

    if (by && by != 't')
        worker->stopped = 1;
}

/* Finds the culprit at the end of the chain of blames that starts at `rank`.  If the culprit is a
 * worker of this node, gives it time to end by itself and report why it failed.  A circle of blames
 * has several culprits.  Returns the culprit's rank, which may be on another node; -1 if `rank` is
 * -1. */
static int spare_culprits(struct job *job, int rank)
{
    const int half_ms = job->options->shutdown_timeout * 500; /* the other half is for SIGTERM */
    const int ms = half_ms < SPARE_MS ? half_ms : SPARE_MS;
    const struct timeval time = { ms / 1000, ms % 1000 * 1000L };
    const int end = root_graph_end(&job->round.graph, rank);

    for (int i = 0; i < job->size; i++) {
        struct worker *worker = &job->workers[i];

        /* A stopped rank can't report anything, so it gets no time. */
        if (root_graph_is_marked(&job->round.graph, worker->rank) && worker->running
            && !worker->stopped) {
            worker->spared = 1;
            event_add(&job->spare, &time);
        }
    }
    return end;
}

void stop_spared(struct job *job)
{
    for (int i = 0; i < job->size; i++)
        if (is_spared(&job->workers[i]))
            worker_signal(&job->workers[i], SIGTERM);
}

void stop_workers(struct job *job)
{
    const int number = job->told.passed_on ? job->told.passed_on : SIGTERM;
    char why[64] = "";

    for (int i = 0; i < job->size; i++)
        note_if_stopped(&job->workers[i]);
    read_blames(job);
    job->round.culprit = spare_culprits(job, job->round.culprit);
    if (job->round.first_failed)
        snprintf(why, sizeof why, "rank %d failed", job->round.first_failed->rank);
    JOB_TELL(job, stopping, number, job->round.first_failed ? why : job->round.elsewhere);
    for (int i = 0; i < job->size; i++)
        if (!is_spared(&job->workers[i]))
            worker_signal(&job->workers[i], number);
    grace_begin(job, job->options->shutdown_timeout);
}

/* Reports job->round.failed to the nodes by tell(), which is job->nodes->ops->failed or ->lost. */
static void tell_failure(struct job *job,
                         void (*tell)(struct nodes *nodes, const struct failure *failure))
{
    const struct worker *worker = job->round.failed;
    const struct restart_policy *policy = &job->options->restart;
    struct failure failure = { .rank = worker->rank,
                               .culprit = job->round.culprit,
                               .code = worker_exit_code(worker),
                               .is_cause =
                                   worker_was_killed(worker)
                                   && !root_graph_has_edge(&job->round.graph, worker->rank) };
    char what[128], cause[64];

    report_cause(worker, cause, sizeof cause);
    snprintf(what, sizeof what, "rank %d (pid %d) %s", worker->rank, (int)worker->pid, cause);
    failure.what = what;
    failure.may_restart = !job->stop.for_good
                          && (worker_exited(worker) ? policy->exits[worker_exit_code(worker) & 255]
                                                    : policy->signals[worker->code & 63]);
    tell(job->nodes, &failure);
}

void stop_for_failure(struct job *job)
{
    job->round.culprit = root_graph_has_edge(&job->round.graph, job->round.failed->rank)
                             ? job->round.failed->rank
                             : -1;
    stop_workers(job);
    tell_failure(job, job->nodes->ops->failed);
}

/* Starts the grace period without a signal to the workers, since a rank may still save data that no
 * other rank has. */
void stop_give_time(struct job *job)
{
    if (!event_pending(&job->grace, EV_TIMEOUT, NULL))
        grace_begin(job, job->options->shutdown_timeout);
}

void stop_late(struct job *job)
{
    job->round.failed = job->round.first_failed;
    if (job->round.first_failed)
        stop_for_failure(job);
    else
        stop_workers(job);
}

/* Logs the loss of a worker, and tells the nodes.  If too few ranks are left, the coordinator stops
 * the round. */
void stop_tell_loss(struct job *job)
{
    char cause[64];

    job->round.lost++;
    job->round.failed->lost = 1;
    report_cause(job->round.failed, cause, sizeof cause);
    log_line(LOG_WARN, "rank %d (pid %d) %s; the others continue (--on-failure=%s)",
             job->round.failed->rank, (int)job->round.failed->pid, cause,
             job->options->settings[OPTION_ON_FAILURE].text);
    tell_failure(job, job->nodes->ops->lost);
}

void stop_tell_signal(struct job *job)
{
    job->nodes->ops->signalled(job->nodes, job->told.by == BY_LOST_CONNECTION ? CONNECTION_LOST
                                                                              : job->told.signal);
}

static void say_signal(const struct job *job)
{
    const int seconds = job->options->shutdown_timeout;
    char name[32], again[80] = "";

    signal_name(job->told.signal, name, sizeof name);
    if (seconds > HURRY_S && job->told.signal == SIGINT)
        snprintf(again, sizeof again, ". Press Ctrl-C again to shorten that to %d s", HURRY_S);
    else if (seconds > HURRY_S)
        snprintf(again, sizeof again, ". A second %s shortens that to %d s", name, HURRY_S);
    log_line(LOG_WARN, "Received %d death signal (%s): asked %d %s to stop, will kill %s in %d s%s",
             job->told.signal, name, job->round.running,
             job->round.running == 1 ? "worker" : "workers",
             job->round.running == 1 ? "it" : "them", seconds, again);
}

/* Logs that the workers did not stop when they were asked to at the deadline. */
static void say_deadline(const struct job *job)
{
    log_line(LOG_WARN,
             "--deadline was reached %d s ago and %d %s not stopped: ctrun sends SIGTERM now and "
             "SIGKILL in %d s",
             job->options->shutdown_timeout, job->round.running,
             job->round.running == 1 ? "worker has" : "workers have",
             job->options->shutdown_timeout);
}

void stop_for_signal(struct job *job)
{
    static const char *const why[] = { [BY_SIGNAL] = "ctrun was told to stop",
                                       [BY_DEADLINE] = "--deadline was reached",
                                       [BY_LOST_CONNECTION] = "the ctrun of --hosts was lost" };

    if (job->told.by == BY_SIGNAL)
        say_signal(job);
    else if (job->told.by == BY_DEADLINE)
        say_deadline(job);
    job->round.first_failed = NULL;
    job_ask_stop(job, "", 1);
    JOB_TELL(job, stopping, job->told.signal, why[job->told.by]);
    stop_signal_workers(job, job->told.signal);
    grace_begin(job, job->options->shutdown_timeout);
    stop_tell_signal(job);
}

/* Handles a signal to ctrun while the workers are stopping.  The first call shortens the grace
 * period, and the second call ends it.  If the workers are stopping for a restart, the call also
 * prevents the restart. */
void stop_hurry(struct job *job)
{
    event_del(&job->spare);
    stop_spared(job);
    stop_tell_signal(job);
    if (++job->told.impatience > 1)
        stop_by_kill(job);
    else if (job->options->shutdown_timeout > HURRY_S)
        grace_begin(job, HURRY_S);
}

void stop_by_kill(struct job *job)
{
    stop_signal_workers(job, SIGKILL);
}
