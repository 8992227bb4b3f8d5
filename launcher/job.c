/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - the workers of one node, from start to verdict.
 *
 * job_run() finds the program, opens the store, starts the guard and every
 * worker.  From then on the event loop drives: a worker's end, a signal to
 * ctrun or the grace timer becomes one event, and moves[][] says what follows.
 * The first failure stops the others: SIGTERM, then SIGKILL when the grace
 * period is over; with restarts left they all start again, in a new generation.
 * The job ends when the last worker is reaped and its process group is killed,
 * never earlier, so no process outlives ctrun. */
#include "launcher/job.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/arrivals.h"
#include "launcher/rendezvous.h"
#include "launcher/report.h"
#include "launcher/signals.h"
#include "launcher/worker.h"
#include "runtime/log.h"

enum job_state { STAY, RUNNING, RESTARTING, STOPPING, DONE, JOB_STATES };
enum job_event {
    WORKER_FAILED, /* the first of a round; restarts are left */
    JOB_FAILED,    /* the same, and none is */
    SIGNALLED,     /* ctrun was told to stop */
    GRACE_OVER,    /* workers that were asked to stop still run */
    LAST_WORKER_GONE,
    JOB_EVENTS
};

struct job {
    const struct options *options;
    struct event_base *base;
    struct event signals, grace;
    int signal_fd;
    sigset_t ignored; /* dispositions that workers must not inherit */
    struct program program;
    struct rendezvous meet;
    struct error_files error_files;
    struct guard guard;
    struct terminal terminal;
    struct arrivals arrivals;
    enum job_state state;
    struct worker *workers;
    int size, running;
    struct worker *culprit; /* of this round */
    int restarts;           /* so far */
    int signal;             /* the one that stopped the job; 0: none */
    int impatience;         /* signals since the workers were asked to stop */
    int code;               /* ctrun's */
};

static void stop_workers(struct job *job);
static void stop_for_restart(struct job *job);
static void forward_and_stop(struct job *job);
static void hurry(struct job *job);
static void kill_workers(struct job *job);
static void start_again(struct job *job);
static void finish(struct job *job);

static const struct move {
    enum job_state next;
    void (*act)(struct job *job);
} moves[JOB_STATES][JOB_EVENTS] = {
    [RUNNING] = {
        [WORKER_FAILED] = { RESTARTING, stop_for_restart },
        [JOB_FAILED] = { STOPPING, stop_workers },
        [SIGNALLED] = { STOPPING, forward_and_stop },
        [LAST_WORKER_GONE] = { DONE, finish },
    },
    [RESTARTING] = {
        [SIGNALLED] = { STOPPING, forward_and_stop },
        [GRACE_OVER] = { STAY, kill_workers },
        [LAST_WORKER_GONE] = { RUNNING, start_again },
    },
    [STOPPING] = {
        [SIGNALLED] = { STAY, hurry },
        [GRACE_OVER] = { STAY, kill_workers },
        [LAST_WORKER_GONE] = { DONE, finish },
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
    signal_workers(job, SIGTERM);
    grace(job, job->options->shutdown_timeout);
}

static void stop_for_restart(struct job *job)
{
    stop_workers(job);
}

static void forward_and_stop(struct job *job)
{
    char name[32];

    terminal_wipe(&job->terminal);
    report_signal(job->signal, name, sizeof name);
    log_line(LOG_WARN,
             "Received %d death signal, %s: forwarded to %d %s; SIGKILL in %d s (once "
             "more: in 2 s)",
             job->signal, name, job->running, job->running == 1 ? "worker" : "workers",
             job->options->shutdown_timeout);
    job->code = 128 + job->signal;
    job->culprit = NULL;
    signal_workers(job, job->signal);
    grace(job, job->options->shutdown_timeout);
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
    event_del(&job->grace);
    arrivals_stop(&job->arrivals);
    for (int i = 0; i < job->size; i++)
        worker_clear(&job->workers[i], &job->guard);
    terminal_wipe(&job->terminal);
}

static void finish(struct job *job)
{
    clear_workers(job);
    if (job->culprit) {
        report_failure(job->workers, job->size, job->culprit, "");
        job->code = worker_exit_code(job->culprit);
    }
    event_base_loopbreak(job->base);
}

/* ---- Start ------------------------------------------------------------- */

/* 0, or an exit code; then no worker runs. */
static int start_workers(struct job *job)
{
    struct round round = { .size = job->size, .restarts = job->restarts };
    struct worker_env env;
    int code = 0;

    rendezvous_new_round(&job->meet);
    error_files_attempt(&job->error_files, job->restarts);
    round.address = job->meet.address;
    round.port = job->meet.port;
    round.run_id = job->meet.run_id;
    round.generation = job->meet.generation;
    round.error_files = &job->error_files;
    if (worker_env_create(&env, job->options, &round) < 0) {
        log_line(LOG_ERROR, "out of memory");
        return 1;
    }
    job->running = 0;
    for (int i = 0; i < job->size && code == 0; i++) {
        code = worker_start(&job->workers[i], &job->program, &env, &job->ignored,
                            job->size > 1 ? &job->terminal : NULL, &job->guard);
        job->running += code == 0;
    }
    worker_env_destroy(&env);
    if (code == 0)
        arrivals_start(&job->arrivals);
    else
        clear_workers(job);
    return code;
}

static void start_again(struct job *job)
{
    char next[64];

    clear_workers(job);
    job->restarts++;
    snprintf(next, sizeof next, "; restart %d of %d", job->restarts, job->options->max_restarts);
    report_failure(job->workers, job->size, job->culprit, next);
    job->culprit = NULL;
    job->code = start_workers(job);
    if (job->code != 0) {
        job->state = DONE;
        event_base_loopbreak(job->base);
    }
}

/* ---- Events ------------------------------------------------------------ */

static void worker_ended(struct job *job, struct worker *worker)
{
    job->running--;
    if (worker_failed(worker) && job->state == RUNNING && !job->culprit) {
        job->culprit = worker;
        worker->first_failed = 1;
        job_event(job, job->restarts < job->options->max_restarts ? WORKER_FAILED : JOB_FAILED);
    }
    if (job->running == 0)
        job_event(job, LAST_WORKER_GONE);
}

/* Signals of one kind merge while they wait, and the first one's sender is
 * kept: of several deaths, `first` is the one that came first. */
static void reap(struct job *job, pid_t first)
{
    for (int i = 0; i < job->size; i++)
        if (job->workers[i].pid == first && worker_check(&job->workers[i]))
            worker_ended(job, &job->workers[i]);
    for (int i = 0; i < job->size && job->state != DONE; i++)
        if (worker_check(&job->workers[i]))
            worker_ended(job, &job->workers[i]);
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
    terminal_setup(&job->terminal, job->base);
    arrivals_setup(&job->arrivals, job->base, &job->meet, job->workers, job->size);
    return 0;
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
    signals_ignored(&job->ignored);
    if ((code = program_find(&job->program, job->options)) != 0
        || (code = rendezvous_open(&job->meet, job->options)) != 0 || (code = setup_loop(job)) != 0
        || (code = rendezvous_serve(&job->meet, job->base)) != 0)
        return code;
    error_files_create(&job->error_files, job->size, job->options->max_restarts);
    if (guard_start(&job->guard, job->size, &job->error_files) < 0) {
        log_line(LOG_ERROR, "cannot start the guard process: %s", strerror(errno));
        return 1;
    }
    return start_workers(job);
}

static void tear_down(struct job *job)
{
    for (int i = 0; job->workers && i < job->size; i++)
        worker_free(&job->workers[i]);
    error_files_remove(&job->error_files);
    guard_stop(&job->guard);
    rendezvous_close(&job->meet);
    if (job->base) {
        arrivals_stop(&job->arrivals);
        terminal_free(&job->terminal);
        event_base_free(job->base);
    }
    if (job->signal_fd >= 0)
        close(job->signal_fd);
    free(job->workers);
}

int job_run(const struct options *options, int size)
{
    struct job job = { .options = options,
                       .size = size,
                       .state = RUNNING,
                       .signal_fd = -1,
                       .meet.listener = -1,
                       .guard = { 0, -1 } };

    job.code = setup(&job);
    if (job.code == 0)
        event_base_dispatch(job.base);
    tear_down(&job);
    return job.code;
}
