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
            root_graph_blames(&job->round.graph, job->workers[i].rank, &blame);
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
    const int end = root_graph_end(&job->round.graph, rank);

    for (int i = 0; i < job->size; i++) {
        struct worker *worker = &job->workers[i];

        /* A rank that is stopped says nothing. */
        if (root_graph_is_marked(&job->round.graph, worker->rank) && worker->running
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
    grace(job, job->options->shutdown_timeout);
}

/* Reports job->round.failed to the nodes by one of their two calls. */
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

static void stop_and_tell(struct job *job)
{
    job->round.culprit = root_graph_has_edge(&job->round.graph, job->round.failed->rank)
                             ? job->round.failed->rank
                             : -1;
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
    job->round.failed = job->round.first_failed;
    if (job->round.first_failed)
        stop_and_tell(job);
    else
        stop_workers(job);
}

/* The loss is logged at once; if too few are left the coordinator stops the round. */
static void tell_loss(struct job *job)
{
    char cause[64];

    job->round.lost++;
    job->round.failed->lost = 1;
    report_cause(job->round.failed, cause, sizeof cause);
    log_line(LOG_WARN, "rank %d (pid %d) %s; the others go on (--on-failure=%s)",
             job->round.failed->rank, (int)job->round.failed->pid, cause,
             job->options->settings[OPTION_ON_FAILURE].text);
    tell_failure(job, job->nodes->ops->lost);
}

static void tell_signal(struct job *job)
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

/* ctrun got no signal: the workers did not stop when they were asked to. */
static void say_deadline(const struct job *job)
{
    log_line(
        LOG_WARN, "--deadline was reached %d s ago and %d %s not stopped: SIGTERM; SIGKILL in %d s",
        job->options->shutdown_timeout, job->round.running,
        job->round.running == 1 ? "worker has" : "workers have", job->options->shutdown_timeout);
}

static void forward_and_stop(struct job *job)
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
    signal_workers(job, job->told.signal);
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
    if (++job->told.impatience > 1)
        kill_workers(job);
    else if (job->options->shutdown_timeout > HURRY_S)
        grace(job, HURRY_S);
}

static void kill_workers(struct job *job)
{
    signal_workers(job, SIGKILL);
}

/* ---- Workers end ------------------------------------------------------------- */

/* Before the first failure is settled: the other ranks may be waiting for this one.  They are told
 * first, those of this host before the others; then the observers. */
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

static void set_first_failed(struct job *job, struct worker *worker)
{
    if (job->round.first_failed)
        job->round.first_failed->first_failed = 0;
    job->round.first_failed = worker;
    worker->first_failed = 1;
}

/* A worker that left at the step at which all stop did as it was asked to: a failure takes its
 * place as the first one, and it takes the place of a loss that is forgiven. */
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
            set_first_failed(job, worker);
        job_event(job, left                             ? WORKER_LEFT
                       : job->options->on_failure.go_on ? WORKER_LOST
                                                        : WORKER_FAILED);
    }
    if (job->round.running > 0)
        return;
    if (job->round.first_failed && job->state == RUNNING
        && job_stopped_at(job, job->round.first_failed)) {
        job->round.failed = job->round.first_failed; /* the others had their time: now it is told */
        job_event(job, WORKER_FAILED);
    }
    job_event(job, LAST_WORKER_GONE);
}

/* ---- What observers find ------------------------------------------------------ */

void job_found_fault(struct job *job, struct worker *worker)
{
    if (job->state != RUNNING)
        return;
    if (job->options->on_failure.go_on && worker->running) { /* then its end is the loss */
        worker_signal(worker, SIGKILL);
        return;
    }
    job->round.failed = worker;
    if (is_first_failed(job, 0))
        set_first_failed(job, worker);
    job_event(job, job->options->on_failure.go_on ? WORKER_LOST : WORKER_FAILED);
}

/* If its own node has a failure to report, too, that one counts: it was sent before. */
void job_found_failure(struct job *job, struct failure failure)
{
    failure.may_restart = failure.may_restart && !job->stop.for_good;
    if (job->state != RUNNING)
        return;
    job_event(job, TOLD_TO_STOP);
    job->nodes->ops->failed(job->nodes, &failure);
}

void job_stalled(struct job *job, const struct verdict_list *list)
{
    JOB_TELL(job, stalled, list);
}

/* ---- Workers end, further -------------------------------------------------------- */

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
            return root_graph_has_edge(&job->round.graph,
                                       job->workers[job->failures.ended[i]].rank);
    return 0;
}

static void job_take_deaths(struct job *job, int count)
{
    struct first_failure *failures = &job->failures;

    job->round.takes_deaths = 1;
    if (count > 0)
        job_look_for_signalled(job); /* they may have stopped because of it */
    if (job->state == RUNNING && !job->round.first_failed && !job->options->on_failure.go_on
        && !first_has_edge(job, count))
        count = first_failure_to_front(failures, count, &job->folder);
    for (int i = 0; i < count; i++)
        worker_ended(job, &job->workers[failures->ended[i]]);
    job->round.takes_deaths = 0;
}

/* Before the workers are stopped for another node: their SIGCHLD may still be pending, as that
 * node's message was.  If a death that is being taken led here, since too few are left, later ones
 * are taken with their own SIGCHLD: failures.ended is in use. */
static void take_pending_deaths(struct job *job)
{
    if (job->state == RUNNING && !job->round.takes_deaths)
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
    job->round.restarted = job->plan.generation && plan->restarts > job->plan.restarts;
    job->plan = *plan;
    job_event(job, ROUND);
}

/* The failure of the round is that rank's, on this node or on another one. */
static void take_root_cause(struct job *job, int rank, const char *why)
{
    struct worker *worker = *why ? NULL : worker_of_rank(job, rank);

    snprintf(job->round.elsewhere, sizeof job->round.elsewhere, "%s", why);
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
    job->round.culprit = rank;
    take_root_cause(job, rank, why);
    if (job->state == RUNNING)
        job->told.passed_on = number;
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
    const struct root_cause root = root_graph_find(&job->round.graph);
    const struct restart_policy *policy = &job->options->restart;

    if (root.kind == ROOT_NONE)
        return;
    *failure = (struct failure){ .rank = root.rank,
                                 .culprit = -1,
                                 .code = root.code,
                                 .may_restart =
                                     !job->stop.for_good
                                     && (root.is_signal ? policy->signals[(root.code - 128) & 63]
                                                        : policy->exits[root.code & 255]) };
    root_graph_words(&job->round.graph, &root, what, NODE_TEXT);
}

static void on_died(void *arg, const struct control_death *death, int count)
{
    struct job *job = arg;

    control_host_died(&job->control, death, count);
    root_graph_died(&job->round.graph, death, count);
    JOB_TELL(job, died_elsewhere, death);
}

static void job_on_waits(void *arg, const char *text)
{
    output_progress(&((struct job *)arg)->output, text);
}

/* ---- What the nodes say to observers ---------------------------------------------- */

static void on_member(void *arg, int node, int there)
{
    struct job *job = arg;

    JOB_TELL(job, member, node, there);
}

static void job_on_puts(void *arg, const char *puts, size_t bytes)
{
    struct job *job = arg;

    JOB_TELL(job, puts, puts, bytes);
}

static void on_fenced(void *arg)
{
    struct job *job = arg;

    JOB_TELL(job, fenced, job);
}

static void on_slow(void *arg, const struct slow_rank *slow, const char *node)
{
    struct job *job = arg;

    JOB_TELL(job, slow, slow, node);
}

static void on_look(void *arg, unsigned look)
{
    struct job *job = arg;

    JOB_TELL(job, look, look);
}

static void on_rows(void *arg, int node, unsigned look, const char *rows, size_t bytes)
{
    struct job *job = arg;

    JOB_TELL(job, rows, node, look, rows, bytes);
}

static void on_clock(void *arg, const struct clock_reading *reading)
{
    struct job *job = arg;

    JOB_TELL(job, clock, reading);
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

/* The relay of a ctrun that --hosts started says that it lost the connection, after which nothing
 * that is written here is read any more. */
static enum told_by told_by(const struct job *job, const struct signalfd_siginfo *info)
{
    return job->options->surroundings.is_host_of_job && info->ssi_code == SI_QUEUE
                   && info->ssi_int == HOSTS_CONNECTION_LOST
               ? BY_LOST_CONNECTION
               : BY_SIGNAL;
}

/* One Ctrl-C reaches the ctruns of all nodes: another one may have passed it on before. */
static void take_stop_signal(struct job *job, int number, enum told_by by)
{
    const int is_same = !job->told.signal && number == job->told.passed_on;

    if (job->state != STOPPING || !job->told.signal) { /* later ones only hurry */
        job->told.signal = number;
        job->told.by = by;
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
            take_stop_signal(job, number, told_by(job, &info));
        else
            signal_workers(job, number);
    }
}

/* By which ctctl knows the job.  Workers of a job of one node see torchrun's choice instead, an id
 * that is new each time, whatever the user gave. */
const char *job_name(const struct job *job)
{
    const char *name = job->options->rdzv_id;

    return *name && strcmp(name, "none") != 0 ? name : job->meet.run_id;
}

int job_moves(const struct job *job)
{
    return job->state == RUNNING && !event_pending(&job->grace, EV_TIMEOUT, NULL);
}

const char *job_state_words(const struct job *job)
{
    static const char *const words[JOB_STATES] = { [MEETING] = "waiting for nodes",
                                                   [RUNNING] = "running",
                                                   [STOPPING] = "stopping",
                                                   [ENDED] = "between two starts" };

    if (job->state == DONE)
        return job->code == 0 ? "succeeded" : "failed";
    if (job->size == 0 && job->plan.generation) /* elsewhere; here a round ends at once */
        return words[RUNNING];
    return words[job->state];
}

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
    job->started_s = (double)clock_ns(CLOCK_REALTIME) / 1e9;
    return 0;
}
