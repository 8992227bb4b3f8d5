/* SPDX-License-Identifier: Apache-2.0 */
/* job_events.c - where the events of a job come from: a descriptor for signals, which
 * SIGCHLD is one of, and timers. */
#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/inspect/verdict_text.h"
#include "launcher/job/job_internal.h"
#include "launcher/workers/signals.h"
#include "runtime/util/log.h"

/* Before it is settled who failed first: the others may be waiting for it. */
void job_worker_died(void *arg, const struct worker *worker)
{
    struct job *job = arg;
    struct control_death death;

    control_host_describe(&job->control, worker, &death);
    control_host_died(&job->control, &death);
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

    events_worker_ended(&job->events, &round, worker,
                        !job->first_failed || job->options->on_failure.go_on);
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

/* Another one would be a fork of a process that has threads by now. */
static void look_after_guard(struct job *job)
{
    const int pid = (int)job->guard.pid;

    if (guard_was_killed(&job->guard))
        log_line(LOG_WARN,
                 "the guard (process %d) was killed; the job goes on, but if ctrun is killed now, "
                 "too, what the workers started may stay behind",
                 pid);
}

static void take_deaths(struct job *job, int count)
{
    struct first_failure *failures = &job->failures;

    job->takes_deaths = 1;
    if (count > 0)
        job_look_for_signalled(job); /* they may have stopped because of it */
    if (job->state == RUNNING && !job->first_failed && !job->options->on_failure.go_on)
        count = first_failure_to_front(failures, count, &job->folder);
    for (int i = 0; i < count; i++)
        worker_ended(job, &job->workers[failures->ended[i]]);
    job->takes_deaths = 0;
}

/* Their SIGCHLD may still wait, as the word of the other node did.  If a death that is being taken
 * led here, since too few are left, those that came after it are taken with their own SIGCHLD:
 * failures.ended is in use. */
void job_take_deaths(struct job *job)
{
    if (job->state == RUNNING && !job->takes_deaths)
        take_deaths(
            job, first_failure_await_killed(&job->failures, first_failure_collect(&job->failures)));
}

/* SIGCHLDs merge while they wait: there may be several, or none any more; `first` is whose
 * was kept. */
static void reap(struct job *job, pid_t first)
{
    take_deaths(job, first_failure_collect(&job->failures));
    look_after_guard(job);
    if (!is_known(job, first))
        subreaper_reap(is_known, job);
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
            if (job->state != STOPPING || !job->signal) /* later ones only hurry */
                job->signal = number;
            job_event(job, SIGNALLED);
        } else
            job_signal_workers(job, number);
    }
}

static void found_stuck(void *arg, int local_rank)
{
    struct job *job = arg;

    job->failed = &job->workers[local_rank];
    job_event(job, WORKER_STUCK);
}

/* A place in a program has only its address here: the tool that knows its line may hang, too. */
static void say_stall(const char *text)
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
        say_stall(text);
    }
    if (list->count > most)
        log_line(LOG_WARN, "%d more like these: ctctl status %d", list->count - most,
                 (int)getpid());
    events_stalled(&job->events, list);
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
    stall_setup(&job->stall, job->base, job->options->stall, &job->control, found_stall, job);
    return 0;
}
