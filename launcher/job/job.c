/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - the workers of this node, from start to verdict.
 *
 * job_run.c sets all up and connects to the other nodes (nodes.h; there may be none).  From then on
 * the event loop drives: a round that begins, a worker's end, a signal to ctrun, a message of
 * another node or the grace timer becomes one event, and moves[][] says what follows.  The first
 * failure stops the others: SIGTERM, then SIGKILL when the grace period is over; with restarts left
 * all begin again, in a new generation.  A round ends when the last worker has ended, and what the
 * workers started is killed (job_round.c). */
#include "launcher/job/job_internal.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "config/values/hosts_node.h"
#include "launcher/inspect/verdict_text.h"
#include "launcher/workers/signals.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/process_state.h"
#include "runtime/util/signal_name.h"

#define HURRY_S 2 /* what a second signal leaves of --shutdown-timeout */

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
static void stop_spared(struct job *job);

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
        [SPARE_OVER] = { STAY, stop_spared },
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

static struct worker *worker_of_rank(struct job *job, int rank)
{
    const int local = rank - job->plan.base;

    return local >= 0 && local < job->size ? &job->workers[local] : NULL;
}

/* ---- Actions ----------------------------------------------------------- */

static void signal_workers(struct job *job, int number)
{
    for (int i = 0; i < job->size; i++)
        worker_signal(&job->workers[i], number);
}

static void grace(struct job *job, int seconds)
{
    const struct timeval time = { seconds, 0 };

    stall_end(&job->stall); /* ranks that stop make no calls any more */
    share_watch_end(&job->shares);
    event_add(&job->grace, &time);
}

/* ---- The culprit may end by itself ------------------------------------------------ */

#define SPARE_MS 2000

/* What the ranks that live here say; of the dead the graph has it. */
static void read_blames(struct job *job)
{
    struct control_blame blame;

    for (int i = 0; i < job->size && job->control.head; i++)
        if (job->workers[i].running
            && control_blame_read(control_rank_at(job->control.head, i), job->plan.world, &blame))
            root_graph_blames(&job->graph, job->workers[i].rank, &blame);
}

static int is_spared(const struct worker *worker)
{
    return worker->spared && worker->running;
}

/* A traced worker does not count: a tool may let it go on in a moment. */
static void note_if_stopped(struct worker *worker)
{
    const char by = worker->running ? process_is_stopped(worker->pid) : 0;

    if (by && by != 't')
        worker->stopped = 1;
}

/* The workers here at the end of the chain from that rank may still say why they failed.  Gives the
 * end, which may be on another node; -1: there is none, and nothing waits. */
static int spare_culprits(struct job *job, int rank)
{
    const int half_ms = job->options->shutdown_timeout * 500; /* the other half is for SIGTERM */
    const int ms = half_ms < SPARE_MS ? half_ms : SPARE_MS;
    const struct timeval time = { ms / 1000, ms % 1000 * 1000L };
    const int end = root_graph_end(&job->graph, rank);

    for (int i = 0; i < job->size; i++) {
        struct worker *worker = &job->workers[i];

        /* A rank that is stopped says nothing. */
        if (root_graph_is_marked(&job->graph, worker->rank) && worker->running
            && !worker->stopped) {
            worker->spared = 1;
            event_add(&job->spare, &time);
        }
    }
    return end;
}

static void stop_spared(struct job *job)
{
    for (int i = 0; i < job->size; i++)
        if (is_spared(&job->workers[i]))
            worker_signal(&job->workers[i], SIGTERM);
}

static void stop_workers(struct job *job)
{
    const int number = job->passed_on ? job->passed_on : SIGTERM;
    char why[64] = "";

    for (int i = 0; i < job->size; i++)
        note_if_stopped(&job->workers[i]);
    read_blames(job);
    job->culprit = spare_culprits(job, job->culprit);
    if (job->first_failed)
        snprintf(why, sizeof why, "rank %d failed", job->first_failed->rank);
    events_stopping(&job->events, number, job->first_failed ? why : job->elsewhere);
    trace_host_stopping(&job->trace, number);
    for (int i = 0; i < job->size; i++)
        if (!is_spared(&job->workers[i]))
            worker_signal(&job->workers[i], number);
    grace(job, job->options->shutdown_timeout);
}

/* Reports job->failed to the nodes by one of their two calls. */
static void tell_failure(struct job *job,
                         void (*tell)(struct nodes *nodes, const struct failure *failure))
{
    const struct worker *worker = job->failed;
    const struct restart_policy *policy = &job->options->restart;
    struct failure failure = { .rank = worker->rank,
                               .culprit = job->culprit,
                               .code = worker_exit_code(worker),
                               .is_cause = worker_was_killed(worker)
                                           && !root_graph_has_edge(&job->graph, worker->rank) };
    char what[128], cause[64];

    report_cause(worker, cause, sizeof cause);
    snprintf(what, sizeof what, "rank %d (pid %d) %s", worker->rank, (int)worker->pid, cause);
    failure.what = what;
    failure.may_restart = !job->for_good
                          && (worker_exited(worker) ? policy->exits[worker_exit_code(worker) & 255]
                                                    : policy->signals[worker->code & 63]);
    tell(job->nodes, &failure);
}

static void stop_and_tell(struct job *job)
{
    job->culprit = root_graph_has_edge(&job->graph, job->failed->rank) ? job->failed->rank : -1;
    stop_workers(job);
    tell_failure(job, job->nodes->ops->failed);
}

/* No worker is signalled: a rank may still save what the others had not to. */
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
    struct failure failure = { worker->rank, -1, 1, 0, NULL, 1 };
    char what[160];

    snprintf(what, sizeof what, "rank %d (pid %d) waits in the kernel (state D) for %g s",
             worker->rank, (int)worker->pid, job->uninterruptible.limit);
    log_line(LOG_ERROR, "%s: marking worker group UNHEALTHY; it is stopped and not restarted",
             what);
    failure.what = what;
    stop_workers(job);
    job->nodes->ops->failed(job->nodes, &failure);
}

/* The loss is logged at once; if too few are left the coordinator stops the round. */
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
    job->nodes->ops->signalled(job->nodes, job->connection_lost ? CONNECTION_LOST : job->signal);
}

static void say_signal(const struct job *job)
{
    const int seconds = job->options->shutdown_timeout;
    char name[32], again[80] = "";

    signal_name(job->signal, name, sizeof name);
    if (seconds > HURRY_S && job->signal == SIGINT)
        snprintf(again, sizeof again, ". Press Ctrl-C again to shorten that to %d s", HURRY_S);
    else if (seconds > HURRY_S)
        snprintf(again, sizeof again, ". A second %s shortens that to %d s", name, HURRY_S);
    log_line(LOG_WARN, "Received %d death signal (%s): asked %d %s to stop, will kill %s in %d s%s",
             job->signal, name, job->running, job->running == 1 ? "worker" : "workers",
             job->running == 1 ? "it" : "them", seconds, again);
}

/* ctrun got no signal: the workers did not stop when they were asked to. */
static void say_deadline(const struct job *job)
{
    log_line(LOG_WARN,
             "--deadline was reached %d s ago and %d %s not stopped: SIGTERM; SIGKILL in %d s",
             job->options->shutdown_timeout, job->running,
             job->running == 1 ? "worker has" : "workers have", job->options->shutdown_timeout);
}

static void forward_and_stop(struct job *job)
{
    if (!job->connection_lost) /* else nothing that is written here is read any more */
        (job->by_deadline ? say_deadline : say_signal)(job);
    job->first_failed = NULL;
    job_ask_stop(job, "", 1);
    events_stopping(&job->events, job->signal,
                    job->by_deadline       ? "--deadline was reached"
                    : job->connection_lost ? "the ctrun of --hosts was lost"
                                           : "ctrun was told to stop");
    trace_host_stopping(&job->trace, job->signal);
    signal_workers(job, job->signal);
    grace(job, job->options->shutdown_timeout);
    tell_signal(job);
}

/* The second signal shortens the grace, the third ends it.  The first one may come while the
 * workers stop for another round, which must not begin. */
static void hurry(struct job *job)
{
    event_del(&job->spare);
    stop_spared(job);
    tell_signal(job);
    if (++job->impatience > 1)
        kill_workers(job);
    else if (job->options->shutdown_timeout > HURRY_S)
        grace(job, HURRY_S);
}

static void kill_workers(struct job *job)
{
    signal_workers(job, SIGKILL);
}

/* ---- Workers end ------------------------------------------------------------- */

/* Before the first failure is settled: the other ranks may be waiting for this one. */
void job_worker_died(void *arg, const struct worker *worker)
{
    struct job *job = arg;
    struct control_death death;
    const struct pmi_fault *fault = /* one that obeys a signal with exit code 0 has none */
        pmi_server_ended(&job->pmi, worker->local_rank,
                         worker->how == CLD_EXITED && worker->code == 0 && !worker->asked);

    if (fault)
        job->workers[worker->local_rank].fault = *fault;
    control_host_describe(&job->control, worker, &death);
    death.noted_ns = worker_failed(worker) ? worker_noted_ns(worker, &job->folder) : 0;
    root_graph_died(&job->graph, &death, 1);
    control_host_died(&job->control, &death, 1);
    trace_host_died(&job->trace, worker);
    job->nodes->ops->died(job->nodes, &death);
}

static void set_first_failed(struct job *job, struct worker *worker)
{
    if (job->first_failed)
        job->first_failed->first_failed = 0;
    job->first_failed = worker;
    worker->first_failed = 1;
}

/* A worker that left at the step at which all stop did as it was asked to: a failure takes its
 * place as the first one, and it takes the place of a loss that is forgiven. */
static int is_first_failed(const struct job *job, int left)
{
    if (!job->first_failed)
        return 1;
    if (left)
        return job->first_failed->lost;
    return !job->options->on_failure.go_on && job_stopped_at(job, job->first_failed);
}

static void worker_ended(struct job *job, struct worker *worker)
{
    const struct failed_round round = job_failed_round(job, job->first_failed);
    const int its_own = !root_graph_has_edge(&job->graph, worker->rank)
                        && (!job->first_failed || worker->spared || job->options->on_failure.go_on);

    events_worker_ended(&job->events, &round, worker, its_own);
    job->running--;
    if (worker_failed(worker) && job->state == RUNNING) {
        const int left = job_stopped_at(job, worker) > 0;

        job->failed = worker;
        if (is_first_failed(job, left))
            set_first_failed(job, worker);
        job_event(job, left                             ? WORKER_LEFT
                       : job->options->on_failure.go_on ? WORKER_LOST
                                                        : WORKER_FAILED);
    }
    if (job->running > 0)
        return;
    if (job->first_failed && job->state == RUNNING && job_stopped_at(job, job->first_failed)) {
        job->failed = job->first_failed; /* the others had their time: now it is told */
        job_event(job, WORKER_FAILED);
    }
    job_event(job, LAST_WORKER_GONE);
}

/* It runs, or it ended with exit code 0 before others needed it. */
static void found_fault(void *arg, int local_rank)
{
    struct job *job = arg;
    struct worker *worker = &job->workers[local_rank];

    if (job->state != RUNNING)
        return;
    worker->fault = *pmi_server_fault(&job->pmi, local_rank);
    if (job->options->on_failure.go_on && worker->running) { /* then its end is the loss */
        worker_signal(worker, SIGKILL);
        return;
    }
    job->failed = worker;
    if (is_first_failed(job, 0))
        set_first_failed(job, worker);
    job_event(job, job->options->on_failure.go_on ? WORKER_LOST : WORKER_FAILED);
}

/* If its own node has a failure to report, too, that one counts: it was sent before. */
static void found_gone(void *arg, int rank, const char *what)
{
    struct job *job = arg;
    struct failure failure = { .rank = rank,
                               .culprit = -1,
                               .code = 1,
                               .may_restart = !job->for_good && job->options->restart.exits[1] };
    char words[160];

    if (job->state != RUNNING)
        return;
    snprintf(words, sizeof words, "rank %d %s", rank, what);
    log_line(LOG_ERROR, "%s", words);
    failure.what = words;
    job_event(job, TOLD_TO_STOP);
    job->nodes->ops->failed(job->nodes, &failure);
}

static void found_fence(void *arg, const char *puts, size_t bytes)
{
    struct job *job = arg;

    job->nodes->ops->fence(job->nodes, puts, bytes);
}

static const struct pmi_hooks pmi_hooks = { found_fence, found_fault, found_gone };

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

/* A new guard would be a fork of a process that has threads by now. */
static void look_after_guard(struct job *job)
{
    const int pid = (int)job->guard.pid;

    if (guard_was_killed(&job->guard))
        log_line(LOG_WARN,
                 "the guard (process %d) was killed; the job goes on, but if ctrun is killed now, "
                 "too, what the workers started may stay behind",
                 pid);
}

/* Whose failure is another rank's doing: then no earlier note and no earlier death is looked for.
 */
static int first_has_edge(const struct job *job, int count)
{
    for (int i = 0; i < count; i++)
        if (worker_failed(&job->workers[job->failures.ended[i]]))
            return root_graph_has_edge(&job->graph, job->workers[job->failures.ended[i]].rank);
    return 0;
}

static void job_take_deaths(struct job *job, int count)
{
    struct first_failure *failures = &job->failures;

    job->takes_deaths = 1;
    if (count > 0)
        job_look_for_signalled(job); /* they may have stopped because of it */
    if (job->state == RUNNING && !job->first_failed && !job->options->on_failure.go_on
        && !first_has_edge(job, count))
        count = first_failure_to_front(failures, count, &job->folder);
    for (int i = 0; i < count; i++)
        worker_ended(job, &job->workers[failures->ended[i]]);
    job->takes_deaths = 0;
}

/* Before the workers are stopped for another node: their SIGCHLD may still be pending, as that
 * node's message was.  If a death that is being taken led here, since too few are left, later ones
 * are taken with their own SIGCHLD: failures.ended is in use. */
static void take_pending_deaths(struct job *job)
{
    if (job->state == RUNNING && !job->takes_deaths)
        job_take_deaths(
            job, first_failure_await_killed(&job->failures, first_failure_collect(&job->failures)));
}

/* SIGCHLDs merge while they wait: there may be several, or none any more; `first` is whose
 * was kept. */
static void job_reap(struct job *job, pid_t first)
{
    job_take_deaths(job, first_failure_collect(&job->failures));
    look_after_guard(job);
    if (!is_known(job, first))
        subreaper_reap(is_known, job);
}

/* ---- What the nodes say ------------------------------------------------ */

static void on_round(void *arg, const struct plan *plan)
{
    struct job *job = arg;

    output_progress(&job->output, "");
    job->restarted = job->plan.generation && plan->restarts > job->plan.restarts;
    job->plan = *plan;
    job_event(job, ROUND);
}

/* The failure of the round is that rank's, on this node or on another one. */
static void take_root_cause(struct job *job, int rank, const char *why)
{
    struct worker *worker = *why ? NULL : worker_of_rank(job, rank);

    snprintf(job->elsewhere, sizeof job->elsewhere, "%s", why);
    if (worker && worker->pid > 0)
        set_first_failed(job, worker);
}

static void on_stop(void *arg, int number, int rank, const char *why)
{
    struct job *job = arg;
    const int round = job->plan.round;

    take_pending_deaths(job);
    if (job->plan.round != round) /* the last worker was among them, and the next round has begun */
        return;
    job->culprit = rank;
    take_root_cause(job, rank, why);
    if (job->state == RUNNING)
        job->passed_on = number;
    job_event(job, job_stops_itself(job) ? WORKER_LEFT : TOLD_TO_STOP);
}

static void on_over(void *arg, int code, int rank, const char *why)
{
    struct job *job = arg;

    output_progress(&job->output, "");
    job->code = code;
    take_root_cause(job, rank, why);
    job_event(job, OVER);
}

static void on_root_cause(void *arg, struct failure *failure, char what[NODE_TEXT])
{
    struct job *job = arg;
    const struct root_cause root = root_graph_find(&job->graph);
    const struct restart_policy *policy = &job->options->restart;

    if (root.kind == ROOT_NONE)
        return;
    *failure = (struct failure){ .rank = root.rank,
                                 .culprit = -1,
                                 .code = root.code,
                                 .may_restart =
                                     !job->for_good
                                     && (root.is_signal ? policy->signals[(root.code - 128) & 63]
                                                        : policy->exits[root.code & 255]) };
    root_graph_words(&job->graph, &root, what, NODE_TEXT);
}

static void on_died(void *arg, const struct control_death *death, int count)
{
    struct job *job = arg;

    control_host_died(&job->control, death, count);
    root_graph_died(&job->graph, death, count);
    if (death->how == CLD_EXITED && death->code == 0)
        pmi_server_ended_elsewhere(&job->pmi, death->rank);
}

static void job_on_puts(void *arg, const char *puts, size_t bytes)
{
    if (pmi_server_merge(&((struct job *)arg)->pmi, puts, bytes) < 0)
        log_line(LOG_ERROR, "what ranks of other nodes put by PMI can't be read, or there is no "
                            "memory for it: ranks here will miss it");
}

static void on_fenced(void *arg)
{
    pmi_server_fenced(&((struct job *)arg)->pmi);
}

static void job_on_waits(void *arg, const char *text)
{
    output_progress(&((struct job *)arg)->output, text);
}

static void on_clock(void *arg, const struct clock_reading *reading)
{
    trace_host_clock(&((struct job *)arg)->trace, reading);
}

static void on_member(void *arg, int node, int there)
{
    events_node(&((struct job *)arg)->events, node, there);
}

void job_send_rows(struct job *job, unsigned look)
{
    struct text rows = { 0 };

    status_rows(&job->status, job->plan.restarts, &rows);
    job->nodes->ops->rows(job->nodes, look, rows.data, rows.used);
    free(rows.data);
}

static void on_slow(void *arg, const struct slow_rank *slow, const char *node)
{
    struct job *job = arg;
    const int seconds = job->options->stall;
    const char *const others = job->plan.world == 2 ? "the other rank" : "each other rank";
    char range[32];

    snprintf(range, sizeof range, slow->others_least == slow->others_most ? "%d" : "%d to %d",
             slow->others_least, slow->others_most);
    if (slow->rank >= 0)
        log_line(
            LOG_WARN,
            "rank %d makes the others wait (a straggler): in the last %d s it spent %d %% of the "
            "time in collectives, %s %s %%",
            slow->rank, seconds, slow->share, others, range);
    else
        log_line(LOG_WARN,
                 "the ranks of %s make the others wait (stragglers): in the last %d s each of them "
                 "spent at most %d %% of the time in collectives, %s %s %%",
                 node, seconds, slow->share, others, range);
    events_slow(&job->events, slow, seconds);
}

static void on_look(void *arg, unsigned look)
{
    job_send_rows(arg, look);
}

static void on_rows(void *arg, int node, unsigned look, const char *rows, size_t bytes)
{
    status_take(&((struct job *)arg)->status, node, look, rows, bytes);
}

const struct nodes_hooks job_nodes_hooks = { .round = on_round,
                                             .member = on_member,
                                             .stop = on_stop,
                                             .over = on_over,
                                             .root_cause = on_root_cause,
                                             .died = on_died,
                                             .stop_asked = job_stop_asked,
                                             .puts = job_on_puts,
                                             .fenced = on_fenced,
                                             .slow = on_slow,
                                             .look = on_look,
                                             .rows = on_rows,
                                             .waits = job_on_waits,
                                             .clock = on_clock };

/* ---- Signals, timers, watches ------------------------------------------------ */

/* Of a ctrun that --hosts started: its relay says it. */
static int says_connection_lost(const struct job *job, const struct signalfd_siginfo *info)
{
    return job->options->surroundings.is_host_of_job && info->ssi_code == SI_QUEUE
           && info->ssi_int == HOSTS_CONNECTION_LOST;
}

/* One Ctrl-C reaches the ctruns of all nodes: another one may have passed it on before. */
static void take_stop_signal(struct job *job, int number, int connection_lost)
{
    const int is_same = !job->signal && number == job->passed_on;

    if (job->state != STOPPING || !job->signal) { /* later ones only hurry */
        job->signal = number;
        job->connection_lost = connection_lost;
    }
    if (!is_same)
        job_event(job, SIGNALLED);
}

static void signals_ready(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    struct signalfd_siginfo info;

    (void)what;
    while (job->state != DONE && read(fd, &info, sizeof info) == sizeof info) {
        const int number = job->options->surroundings.behind_srun && info.ssi_signo == SIGINT
                               ? SIGTERM
                               : (int)info.ssi_signo;

        if (number == SIGCHLD)
            job_reap(job, (pid_t)info.ssi_pid);
        else if (sigismember(&job->options->signals.set, number) == 1)
            take_stop_signal(job, number, says_connection_lost(job, &info));
        else
            signal_workers(job, number);
    }
}

static void found_stuck(void *arg, int local_rank)
{
    struct job *job = arg;

    job->failed = &job->workers[local_rank];
    job_event(job, WORKER_STUCK);
}

/* A place in a program has only its address here: the tool that knows its line may hang, too. */
static void job_say_stall(const char *text)
{
    if (strstr(text, "+0x"))
        log_line(LOG_WARN, "%s; ctctl status %d names the line", text, (int)getpid());
    else
        log_line(LOG_WARN, "%s", text);
}

/* As many lines as fit beside what the workers say. */
static void found_stall(void *arg, const struct verdict_list *list)
{
    struct job *job = arg;
    const int most = 6;
    char text[VERDICT_TEXT];

    for (int i = 0; i < list->count && i < most; i++) {
        verdict_text(&list->verdict[i], list->job, text, sizeof text);
        job_say_stall(text);
    }
    if (list->count > most)
        log_line(LOG_WARN, "%d more like these: ctctl status %d", list->count - most,
                 (int)getpid());
    events_stalled(&job->events, list);
}

static void counted_shares(void *arg, const struct collective_shares *shares)
{
    struct job *job = arg;

    job->nodes->ops->shares(job->nodes, shares);
}

/* ---- The status page ----------------------------------------------------------- */

/* By which ctctl knows the job.  Workers of a job of one node see torchrun's choice instead, an id
 * that is new each time, whatever the user gave. */
const char *job_name(const struct job *job)
{
    const char *name = job->options->rdzv_id;

    return *name && strcmp(name, "none") != 0 ? name : job->meet.run_id;
}

static int look_elsewhere(void *arg, unsigned look)
{
    struct job *job = arg;

    return job->nodes ? job->nodes->ops->look(job->nodes, look) : 0;
}

static void tell_facts(void *arg, struct job_facts *facts)
{
    static const char *const states[JOB_STATES] = { [MEETING] = "waiting for nodes",
                                                    [RUNNING] = "running",
                                                    [STOPPING] = "stopping",
                                                    [ENDED] = "between two starts" };
    struct job *job = arg;

    facts->job = job_name(job);
    facts->program = job->options->program[0] ? job->options->program[0] : "";
    facts->state = states[job->state];
    if (job->state == DONE)
        facts->state = job->code == 0 ? "succeeded" : "failed";
    else if (job->size == 0 && job->plan.generation)
        facts->state = states[RUNNING]; /* elsewhere; here a round ends at once */
    facts->world = job->plan.world;
    facts->restarts = job->plan.restarts;
    facts->started_s = job->started_s;
    facts->said = &job->output.said;
    facts->node = job->plan.node;
    facts->nodes = job->plan.nodes;
}

static const struct status_hooks status_hooks = { look_elsewhere, tell_facts };

static void spare_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    job_event(arg, SPARE_OVER);
}

static void grace_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    job_event(arg, GRACE_OVER);
}

/* In its own words, but as a line of ours. */
static void libevent_says(int severity, const char *text)
{
    const enum log_level levels[] = { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

    log_line(levels[severity & 3], "libevent: %s", text);
}

int job_listen(struct job *job)
{
    const sigset_t set = signals_watched(job->options);
    struct event_config *config = event_config_new();

    event_set_log_callback(libevent_says);
    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        job->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    if (job->base) /* without it tear_down() stops none */
        init_watch_setup(&job->init_watch, job->base, &job->meet, job->workers, job->size);
    job->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!job->base || job->signal_fd < 0) {
        log_line(LOG_ERROR, "cannot watch for events: %s", strerror(errno));
        return 1;
    }
    event_assign(&job->signals, job->base, job->signal_fd, EV_READ | EV_PERSIST, signals_ready,
                 job);
    evtimer_assign(&job->grace, job->base, grace_over, job);
    evtimer_assign(&job->spare, job->base, spare_over, job);
    job_deadline_open(job);
    event_add(&job->signals, NULL);
    output_setup(&job->output, job->base, job->options, &job->folder);
    if (uninterruptible_watch_open(&job->uninterruptible, job->base, job->workers, job->size,
                                   found_stuck, job)
        < 0) {
        log_line(LOG_ERROR, "out of memory for %d workers", job->size);
        return 1;
    }
    health_open(&job->health, job->base);
    job->started_s = (double)clock_ns(CLOCK_REALTIME) / 1e9;
    if (job->options->status.is_on)
        output_open_consoles(&job->output); /* what ctrun says is shown on the page, too */
    if (status_open(&job->status, job->base, job->options, &job->control, job->meet.is_coordinator,
                    &status_hooks, job)
        != 0)
        return 1;
    pmi_server_setup(&job->pmi, job->base, &pmi_hooks, job, job->options->stall);
    stall_setup(&job->stall, job->base, job->options->stall, &job->control, found_stall, job);
    share_watch_setup(&job->shares, job->base, job->options->stall, &job->control, counted_shares,
                      job);
    return 0;
}
