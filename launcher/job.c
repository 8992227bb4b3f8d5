/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - the workers of this node, from start to verdict.
 *
 * job_run() finds the program, opens the store, starts the guard and goes to meet
 * the other nodes (nodes.h; there may be none).  From then on the event loop
 * drives: a round that begins, a worker's end, a signal to ctrun, a word of
 * another node or the grace timer becomes one event, and moves[][] says what
 * follows.  The first failure stops the others: SIGTERM, then SIGKILL when the
 * grace period is over; with restarts left all begin again, in a new generation.
 * A round ends when the last worker is reaped and its process group is killed,
 * never earlier, so no process outlives ctrun. */
#include "launcher/job.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/arrivals.h"
#include "launcher/deaths.h"
#include "launcher/events.h"
#include "launcher/health.h"
#include "launcher/nodes.h"
#include "launcher/orphans.h"
#include "launcher/place_report.h"
#include "launcher/rendezvous.h"
#include "launcher/report.h"
#include "launcher/signals.h"
#include "launcher/stuck.h"
#include "launcher/watchdog.h"
#include "launcher/worker.h"
#include "runtime/clock.h"
#include "runtime/log.h"

enum job_state { STAY, MEETING, RUNNING, STOPPING, ENDED, DONE, JOB_STATES };
enum job_event {
    ROUND,         /* the nodes are there: start the workers */
    WORKER_FAILED, /* the first of a round */
    WORKER_LOST,   /* and the others go on */
    TOLD_TO_STOP,  /* by another node's failure */
    WORKER_STUCK,  /* in the kernel: no restart would help */
    SIGNALLED,     /* ctrun was told to stop */
    GRACE_OVER,    /* workers that were asked to stop still run */
    LAST_WORKER_GONE,
    OVER, /* the job is, on all nodes */
    JOB_EVENTS
};

struct job {
    const struct options *options;
    const struct meeting *meeting;
    struct event_base *base;
    struct event signals, grace;
    int signal_fd;
    sigset_t ignored;          /* dispositions that workers must not inherit */
    struct rlimit descriptors; /* that we were started with */
    struct program program;
    struct wrapper wrapper;
    struct rendezvous meet;
    struct nodes *nodes;
    struct plan plan; /* of this round */
    struct run_folder folder;
    struct oom_watch oom;
    struct deaths deaths;
    struct events events;
    struct placement *placement; /* NULL: workers run where ctrun does */
    struct guard guard;
    struct orphans orphans;
    struct watchdog watchdog;
    struct stuck stuck;
    struct health health;
    struct output output;
    struct arrivals arrivals;
    enum job_state state;
    struct worker *workers;
    int size, running;
    struct worker *culprit;    /* of this round, here: the first that failed */
    struct worker *blamed;     /* the culprit that the job ended for */
    struct worker *failed;     /* the one that just has */
    int lost;                  /* in this round, here: with --on-failure=continue */
    char elsewhere[NODE_TEXT]; /* the failure on another node; "": none */
    int signal;                /* the one that stopped the job; 0: none */
    int impatience;            /* signals since the workers were asked to stop */
    int code;                  /* ctrun's */
};

static void start_round(struct job *job);
static void stop_and_tell(struct job *job);
static void tell_loss(struct job *job);
static void stop_workers(struct job *job);
static void stop_for_good(struct job *job);
static void forward_and_stop(struct job *job);
static void tell_signal(struct job *job);
static void hurry(struct job *job);
static void kill_workers(struct job *job);
static void end_round(struct job *job);
static void finish(struct job *job);

static const struct move {
    enum job_state next;
    void (*act)(struct job *job);
} moves[JOB_STATES][JOB_EVENTS] = {
    [MEETING] = {
        [ROUND] = { RUNNING, start_round },
        [SIGNALLED] = { STAY, tell_signal },
        [OVER] = { DONE, finish },
    },
    [RUNNING] = {
        [WORKER_FAILED] = { STOPPING, stop_and_tell },
        [WORKER_LOST] = { STAY, tell_loss },
        [TOLD_TO_STOP] = { STOPPING, stop_workers },
        [WORKER_STUCK] = { STOPPING, stop_for_good },
        [SIGNALLED] = { STOPPING, forward_and_stop },
        [LAST_WORKER_GONE] = { ENDED, end_round },
    },
    [STOPPING] = {
        [SIGNALLED] = { STAY, hurry },
        [GRACE_OVER] = { STAY, kill_workers },
        [LAST_WORKER_GONE] = { ENDED, end_round },
    },
    [ENDED] = {
        [ROUND] = { RUNNING, start_round },
        [SIGNALLED] = { STAY, tell_signal },
        [OVER] = { DONE, finish },
    },
};

/* An empty cell means: stay, do nothing. */
static void job_event(struct job *job, enum job_event event)
{
    const struct move *move = &moves[job->state][event];

    if (move->next != STAY)
        job->state = move->next;
    if (move->act)
        move->act(job);
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

static void stop_workers(struct job *job)
{
    char why[64] = "";

    if (job->culprit)
        snprintf(why, sizeof why, "rank %d failed", job->culprit->rank);
    events_stopping(&job->events, SIGTERM, job->culprit ? why : job->elsewhere);
    signal_workers(job, SIGTERM);
    grace(job, job->options->shutdown_timeout);
}

/* Tells the nodes of job->failed by one of their two calls. */
static void tell_failure(struct job *job,
                         void (*tell)(struct nodes *nodes, const struct failure *failure))
{
    const struct worker *worker = job->failed;
    const struct restart_policy *policy = &job->options->restart;
    struct failure failure = { worker->rank, worker_exit_code(worker), 0, NULL };
    char what[128], cause[64];

    report_cause(worker, cause, sizeof cause);
    snprintf(what, sizeof what, "rank %d (pid %d) %s", worker->rank, (int)worker->pid, cause);
    failure.what = what;
    failure.may_restart = worker->how == CLD_EXITED ? policy->exits[worker->code & 255]
                                                    : policy->signals[worker->code & 63];
    tell(job->nodes, &failure);
}

static void stop_and_tell(struct job *job)
{
    stop_workers(job);
    tell_failure(job, job->nodes->ops->failed);
}

static void stop_for_good(struct job *job)
{
    const struct worker *worker = job->failed;
    struct failure failure = { worker->rank, 1, 0, NULL };
    char what[160];

    snprintf(what, sizeof what, "rank %d (pid %d) waits in the kernel (state D) for %g s",
             worker->rank, (int)worker->pid, job->stuck.limit);
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
    report_cause(job->failed, cause, sizeof cause);
    log_line(LOG_WARN, "rank %d (pid %d) %s; the others go on (--on-failure=%s)", job->failed->rank,
             (int)job->failed->pid, cause, job->options->settings[OPTION_ON_FAILURE].text);
    tell_failure(job, job->nodes->ops->lost);
}

static void tell_signal(struct job *job)
{
    job->nodes->ops->signalled(job->nodes, job->signal);
}

static void forward_and_stop(struct job *job)
{
    char name[32];

    report_signal(job->signal, name, sizeof name);
    log_line(LOG_WARN,
             "Received %d death signal, %s: forwarded to %d %s; SIGKILL in %d s (once "
             "more: in 2 s)",
             job->signal, name, job->running, job->running == 1 ? "worker" : "workers",
             job->options->shutdown_timeout);
    job->culprit = NULL;
    events_stopping(&job->events, job->signal, "ctrun was told to stop");
    signal_workers(job, job->signal);
    grace(job, job->options->shutdown_timeout);
    tell_signal(job);
}

/* The second signal shortens the grace, the third ends it. */
static void hurry(struct job *job)
{
    if (++job->impatience > 1)
        kill_workers(job);
    else if (job->options->shutdown_timeout > 2)
        grace(job, 2);
}

static void kill_workers(struct job *job)
{
    signal_workers(job, SIGKILL);
}

/* The round is over: nothing of it stays. */
static void clear_workers(struct job *job)
{
    int64_t deadline;
    int left;

    event_del(&job->grace);
    arrivals_stop(&job->arrivals);
    stuck_end(&job->stuck);
    watchdog_clear(&job->watchdog);
    for (int i = 0; i < job->size; i++)
        worker_kill_rest(&job->workers[i], &job->guard);
    deadline = clock_ms() + 200;
    for (int i = 0; i < job->size; i++)
        worker_clear(&job->workers[i], deadline);
    left = job->plan.generation ? orphans_kill(&job->orphans, job->guard.pid, job->plan.generation)
                                : 0;
    if (left > 0)
        log_line(LOG_WARN, "%d of the processes that workers started do not die of SIGKILL", left);
}

static struct failed_round failed_round(struct job *job, struct worker *culprit)
{
    return (struct failed_round){ job->workers,  job->size,    culprit,
                                  &job->program, &job->folder, &job->oom };
}

/* Starting again is said with the failure that it follows. */
static void say_what_failed(struct job *job, int restarts)
{
    char next[64] = "";

    if (restarts > 0)
        snprintf(next, sizeof next, "; restart %d of %d", restarts,
                 job->options->max_restarts.most);
    if (job->culprit) {
        const struct failed_round round = failed_round(job, job->culprit);

        report_failure(&round, next);
        job->blamed = restarts == 0 ? job->culprit : NULL;
        oom_watch_reset(&job->oom);
    } else if (*job->elsewhere)
        log_line(LOG_ERROR, "%s%s%s", job->elsewhere,
                 job->plan.world > 0 ? "; the workers here were stopped" : "", next);
    job->culprit = NULL;
    job->elsewhere[0] = 0;
}

static void end_round(struct job *job)
{
    clear_workers(job);
    job->nodes->ops->ended(job->nodes);
}

static void finish(struct job *job)
{
    if (job->code == 0 && job->lost > 0)
        log_line(LOG_WARN, "the job succeeded without %d of its %d workers here, which failed",
                 job->lost, job->size);
    else
        say_what_failed(job, 0);
    event_base_loopbreak(job->base);
}

/* ---- Start ------------------------------------------------------------- */

static int start_workers(struct job *job)
{
    struct round round = { .size = job->size,
                           .base = job->plan.base,
                           .world = job->plan.world,
                           .restarts = job->plan.restarts,
                           .role_base = job->plan.role_base,
                           .role_world = job->plan.role_world,
                           .node = job->plan.node,
                           .nodes = job->plan.nodes,
                           .own_store = job->meet.own_store,
                           .address = job->plan.address,
                           .port = job->plan.port,
                           .run_id = job->meet.run_id,
                           .generation = job->plan.generation,
                           .secret = &job->meet.policy.secret,
                           .folder = &job->folder,
                           .descriptors = &job->descriptors,
                           .placement = job->placement };
    struct worker_env env;
    int code = 0;

    if (run_folder_next(&job->folder) != 0
        || output_round(&job->output, job->plan.base, job->plan.world, job->size) < 0)
        return 1;
    if (worker_env_create(&env, job->options, &round) < 0) {
        log_line(LOG_ERROR, "out of memory");
        return 1;
    }
    for (int i = 0; i < job->size; i++) {
        job->workers[i].rank = job->plan.base + i;
        job->workers[i].attempt = job->folder.attempt;
        worker_wrap(&job->workers[i], &job->wrapper, job->plan.world);
        code = worker_start(&job->workers[i], &job->program, &env, &job->ignored, &job->output,
                            &job->guard);
        if (code != 0)
            break;
        deaths_watch(&job->deaths, &job->workers[i]);
        events_worker_started(&job->events, &job->workers[i]);
        job->running++;
    }
    if (code == 0 && job->options->report != REPORT_NOT)
        place_report(job->options->report, job->workers, &env);
    worker_env_destroy(&env);
    return code;
}

/* What could not even be started fails the round as an exit with that code would. */
static void start_round(struct job *job)
{
    int code;

    if (job->plan.restarts > 0) {
        say_what_failed(job, job->plan.restarts);
        events_restarted(&job->events, &job->plan, job->options->max_restarts.most);
    }
    events_round_began(&job->events, &job->plan);
    job->running = job->lost = 0;
    code = start_workers(job);
    if (code == 0) {
        arrivals_start(&job->arrivals);
        stuck_begin(&job->stuck);
        return;
    }
    job->state = ENDED;
    clear_workers(job);
    job->nodes->ops->refused(job->nodes, code);
    job->nodes->ops->ended(job->nodes);
}

/* ---- What the nodes say ------------------------------------------------ */

static void on_round(void *arg, const struct plan *plan)
{
    struct job *job = arg;

    job->plan = *plan;
    job_event(job, ROUND);
}

static void on_stop(void *arg, const char *why)
{
    struct job *job = arg;

    snprintf(job->elsewhere, sizeof job->elsewhere, "%s", why);
    job_event(job, TOLD_TO_STOP);
}

static void on_over(void *arg, int code, const char *why)
{
    struct job *job = arg;

    job->code = code;
    snprintf(job->elsewhere, sizeof job->elsewhere, "%s", why);
    job_event(job, OVER);
}

static void on_member(void *arg, int node, int there)
{
    events_node(&((struct job *)arg)->events, node, there);
}

static const struct nodes_hooks nodes_hooks = {
    .round = on_round, .member = on_member, .stop = on_stop, .over = on_over
};

/* ---- Events ------------------------------------------------------------ */

static void worker_ended(struct job *job, struct worker *worker)
{
    const struct failed_round round = failed_round(job, job->culprit);

    events_worker_ended(&job->events, &round, worker,
                        !job->culprit || job->options->on_failure.go_on);
    job->running--;
    if (worker_failed(worker) && job->state == RUNNING) {
        job->failed = worker;
        if (!job->culprit) {
            job->culprit = worker;
            worker->first_failed = 1;
        }
        job_event(job, job->options->on_failure.go_on ? WORKER_LOST : WORKER_FAILED);
    }
    if (job->running == 0)
        job_event(job, LAST_WORKER_GONE);
}

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

/* SIGCHLDs merge while they wait: there may be several, or none any more; `first` is whose
 * was kept. */
static void reap(struct job *job, pid_t first)
{
    struct deaths *deaths = &job->deaths;
    int count = deaths_collect(deaths);

    if (job->state == RUNNING && !job->culprit && !job->options->on_failure.go_on)
        count = deaths_put_culprit_first(deaths, count, &job->folder);
    for (int i = 0; i < count; i++)
        worker_ended(job, &job->workers[deaths->ended[i]]);
    if (!is_known(job, first))
        orphans_reap(is_known, job);
}

static void signals_ready(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    struct signalfd_siginfo info;

    (void)what;
    while (job->state != DONE && read(fd, &info, sizeof info) == sizeof info) {
        const int number = (int)info.ssi_signo;

        if (number == SIGCHLD)
            reap(job, (pid_t)info.ssi_pid);
        else if (sigismember(&job->options->signals.set, number) == 1) {
            if (job->state != STOPPING) /* later ones only hurry */
                job->signal = number;
            job_event(job, SIGNALLED);
        } else
            signal_workers(job, number);
    }
}

static void found_stuck(void *arg, int local_rank)
{
    struct job *job = arg;

    job->failed = &job->workers[local_rank];
    job_event(job, WORKER_STUCK);
}

static void grace_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    job_event(arg, GRACE_OVER);
}

/* ---- The whole --------------------------------------------------------- */

static int setup_loop(struct job *job)
{
    const sigset_t set = signals_watched(job->options);
    struct event_config *config = event_config_new();

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
    event_add(&job->signals, NULL);
    output_setup(&job->output, job->base, job->options, &job->folder);
    watchdog_watch(&job->watchdog, job->base);
    if (stuck_open(&job->stuck, job->base, job->workers, job->size, found_stuck, job) < 0) {
        log_line(LOG_ERROR, "out of memory for %d workers", job->size);
        return 1;
    }
    health_open(&job->health, job->base);
    arrivals_setup(&job->arrivals, job->base, &job->meet, job->workers, job->size);
    return 0;
}

/* The store has a descriptor for each client; the workers get the limit that we got. */
static void raise_descriptor_limit(struct job *job)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    job->descriptors = limit;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int setup(struct job *job)
{
    int code;

    job->workers = calloc((size_t)job->size, sizeof *job->workers);
    if (!job->workers) {
        log_line(LOG_ERROR, "out of memory for %d workers", job->size);
        return 1;
    }
    for (int i = 0; i < job->size; i++)
        worker_setup(&job->workers[i], i);
    if (deaths_open(&job->deaths, job->workers, job->size) < 0) {
        log_line(LOG_ERROR, "cannot watch %d workers: %s", job->size, strerror(errno));
        return 1;
    }
    oom_watch_open(&job->oom, "/sys/fs/cgroup", "/proc/self/cgroup");
    orphans_adopt(&job->orphans);
    if (events_open(&job->events, job->options, job->meeting) < 0)
        return 1;
    signals_ignored(&job->ignored);
    raise_descriptor_limit(job);
    if ((code = program_find(&job->program, job->options)) != 0
        || (code = wrapper_find(&job->wrapper, job->options)) != 0
        || (code = placement_create(&job->placement, job->options, job->size, "")) != 0
        || (code = rendezvous_open(&job->meet, job->options, job->meeting)) != 0
        || (code = watchdog_open(&job->watchdog, job->workers, job->size)) != 0
        || (code = setup_loop(job)) != 0
        || (job->meet.is_host && (code = rendezvous_serve(&job->meet, job->base)) != 0))
        return code;
    events_job_started(&job->events, job->meet.run_id, job->size);
    code = run_folder_create(&job->folder, job->options, job->meet.run_id, job->size);
    if (code != 0)
        return code;
    if (guard_start(&job->guard, job->size, &job->folder, job->watchdog.path) < 0) {
        log_line(LOG_ERROR, "cannot start the guard process: %s", strerror(errno));
        return 1;
    }
    if (job->meeting->kind == MEET_DYNAMIC)
        job->nodes = nodes_c10d(job->base, &job->meet, job->options, job->meeting, job->size,
                                &nodes_hooks, job);
    else
        job->nodes = (job->meet.is_host ? nodes_host : nodes_agent)(
            job->base, &job->meet, job->options, job->size, &nodes_hooks, job);
    return job->nodes ? 0 : 1;
}

/* Who started us may want to know it as torchrun would have told it. */
static void pass_on(struct job *job)
{
    const struct failed_round round = failed_round(job, job->blamed);
    char fault[1200] = "";

    if (job->code != 0)
        log_last_error(fault, sizeof fault);
    if (job->code != 0 && job->signal)
        snprintf(fault, sizeof fault, "ctrun was told to stop by signal %d", job->signal);
    if (job->blamed)
        report_upward(&round);
    else if (job->code != 0)
        report_own_fault(fault);
    events_job_ended(&job->events, job->code, &round, fault);
}

/* A reader of ours that has stopped is given as long as a worker that has, unless
 * somebody wants us to end. */
static void finish_output(struct job *job)
{
    const int seconds = job->signal ? 0 : job->options->shutdown_timeout;

    if (job->folder.unnamed && job->folder.attempt >= 0)
        log_line(LOG_WARN, "the workers' output is in %s", job->folder.path);
    output_finish(&job->output, 1000 * (seconds > 2 ? seconds : 2));
    output_free(&job->output);
}

static void tear_down(struct job *job)
{
    for (int i = 0; job->workers && i < job->size; i++)
        worker_free(&job->workers[i]);
    deaths_close(&job->deaths);
    events_close(&job->events);
    run_folder_remove(&job->folder);
    watchdog_close(&job->watchdog);
    guard_stop(&job->guard);
    if (job->nodes)
        job->nodes->ops->destroy(job->nodes);
    rendezvous_close(&job->meet);
    if (job->base) {
        arrivals_stop(&job->arrivals);
        finish_output(job);
        stuck_close(&job->stuck);
        health_close(&job->health);
        event_base_free(job->base);
    }
    if (job->signal_fd >= 0)
        close(job->signal_fd);
    wrapper_free(&job->wrapper);
    placement_destroy(job->placement);
    free(job->workers);
}

int job_run(const struct options *options, const struct meeting *meeting, int size)
{
    struct job job = { .options = options,
                       .meeting = meeting,
                       .size = size,
                       .state = MEETING,
                       .signal_fd = -1,
                       .meet.listener = -1,
                       .health.listener = -1,
                       .deaths.epoll = -1,
                       .events.fd = -1,
                       .guard.pipe = -1 };

    job.code = setup(&job);
    if (job.code == 0) {
        job.nodes->ops->start(job.nodes);
        if (job.state != DONE)
            store_server_run(job.meet.server, job.base);
    }
    pass_on(&job);
    tear_down(&job);
    return job.code;
}
