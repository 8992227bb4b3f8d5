/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - the state machine of a job on this node.
 *
 * job_run.c sets everything up and connects to the other nodes, if any (nodes.h).  Then the event
 * loop drives the job.  The start of a round, a worker's end, a signal to ctrun, a message of
 * another node or a timer becomes an event, and moves[][] gives the next state and the action.  The
 * first failure stops the other workers (stop_workers.c).  If a restart is left, all workers start
 * again in a new generation.  When the last worker of a round has ended, ctrun kills the processes
 * that the workers started (job_round.c). */
#include "launcher/job/job_internal.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "config/values/hosts_node.h"
#include "launcher/workers/signals.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

static const struct move {
    enum job_state next;
    void (*act)(struct job *job);
} moves[JOB_STATES][JOB_EVENTS] = {
    [MEETING] = {
        [ROUND] = { RUNNING, job_start_round },
        [SIGNALLED] = { STAY, stop_tell_signal },
        [OVER] = { DONE, job_finish },
    },
    [RUNNING] = {
        [WORKER_FAILED] = { STOPPING, stop_for_failure },
        [WORKER_LOST] = { STAY, stop_tell_loss },
        [WORKER_LEFT] = { STAY, stop_give_time },
        [GRACE_OVER] = { STOPPING, stop_late },
        [TOLD_TO_STOP] = { STOPPING, stop_workers },
        [SIGNALLED] = { STOPPING, stop_for_signal },
        [LAST_WORKER_GONE] = { ENDED, job_end_round },
    },
    [STOPPING] = {
        [SIGNALLED] = { STAY, stop_hurry },
        [SPARE_OVER] = { STAY, stop_spared },
        [GRACE_OVER] = { STAY, stop_by_kill },
        [LAST_WORKER_GONE] = { ENDED, job_end_round },
    },
    [ENDED] = {
        [ROUND] = { RUNNING, job_start_round },
        [SIGNALLED] = { STAY, stop_tell_signal },
        [OVER] = { DONE, job_finish },
    },
};

/* Takes the state and the action of moves[][].  An empty cell changes nothing. */
void job_event(struct job *job, enum job_event event)
{
    const struct move *move = &moves[job->state][event];

    if (move->next != STAY)
        job->state = move->next;
    if (move->act)
        move->act(job);
}

void job_stalled(struct job *job, const struct verdict_list *list)
{
    JOB_TELL(job, stalled, list);
}

/* ---- Signals, timers, watches ------------------------------------------------ */

/* Returns the reason for a stop signal.  If --hosts started this ctrun, the relay on this host may
 * have sent the signal because the connection is lost.  Nothing reads ctrun's output then. */
static enum told_by sender_of(const struct job *job, const struct signalfd_siginfo *info)
{
    return job->options->surroundings.is_host_of_job && info->ssi_code == SI_QUEUE
                   && info->ssi_int == HOSTS_CONNECTION_LOST
               ? BY_LOST_CONNECTION
               : BY_SIGNAL;
}

/* Handles a signal that stops ctrun.  Ignores a first signal that another node has passed on
 * already, since one Ctrl-C reaches the ctruns of all nodes. */
static void take_stop_signal(struct job *job, int number, enum told_by by)
{
    const int is_same = !job->told.signal && number == job->told.passed_on;

    if (job->state != STOPPING || !job->told.signal) { /* later signals only call stop_hurry() */
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
            take_stop_signal(job, number, sender_of(job, &info));
        else
            stop_signal_workers(job, number);
    }
}

/* Returns the name by which ctctl knows the job.  The workers of a one-node job see another id,
 * which is new for each job even if the user gave an id, as under torchrun. */
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
    if (job->size == 0 && job->plan.generation) /* all workers are on other nodes */
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

/* Logs a message of libevent as a line of ctrun. */
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
