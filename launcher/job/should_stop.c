/* SPDX-License-Identifier: Apache-2.0 */
/* should_stop.c - asks all workers to stop at the same step.
 *
 * ctrun asks when it gets a signal, before it forwards the signal.  It asks when a worker gets
 * SIGTERM; the worker then sets a flag in its page and writes to the eventfd.  It asks when another
 * node asks, at --deadline, and near the end of the job's time in Slurm.  To ask, ctrun only sets a
 * flag in the control page.  The ranks see the flag at their next vote and stop together
 * (runtime/group/should_stop.c).  Each rank then writes in its page that it was told to stop, so
 * that ctrun does not treat its exit as a failure. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "config/values/parse_deadline.h"
#include "launcher/job/job_internal.h"
#include "runtime/util/log.h"

/* Sets the flag in the control page.  Returns 1 if the request is new. */
static int note_request(struct job *job, int for_good)
{
    job->stop.for_good |= for_good;
    if (!job->control.head || job->stop.asked > for_good)
        return 0;
    job->stop.asked = for_good + 1;
    atomic_store(&job->control.head->stop_asked, 1);
    return 1;
}

void job_ask_stop(struct job *job, const char *why, int for_good)
{
    const int first = !job->stop.asked;

    if (!note_request(job, for_good))
        return;
    if (first && *why && job->state != STOPPING) /* while STOPPING, ctrun sent the SIGTERM */
        log_line(LOG_WARN, "%s: the ranks are asked to stop at the same step", why);
    job->nodes->ops->ask_stop(job->nodes, for_good);
}

void job_stop_asked(void *arg, int for_good)
{
    note_request(arg, for_good);
}

/* ---- Workers --------------------------------------------------------------- */

void job_look_for_signalled(struct job *job)
{
    for (int i = 0; job->control.head && i < job->size && !job->stop.asked; i++)
        if (atomic_load(&control_rank_at(job->control.head, i)->stop_wanted)) {
            char why[64];

            snprintf(why, sizeof why, "rank %d was told to stop by SIGTERM", job->workers[i].rank);
            job_ask_stop(job, why, 0);
        }
}

static void on_worker_signalled(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    job_look_for_signalled(arg);
}

void job_stop_begin(struct job *job)
{
    job->stop.asked = 0;
    job->stop.for_good =
        job->stop.after_deadline; /* a round that begins before the deadline may be restarted */
    if (!job->control.head)
        return;
    event_assign(&job->stop.wanted, job->base, job->control.event, EV_READ | EV_ET | EV_PERSIST,
                 on_worker_signalled, job);
    event_add(&job->stop.wanted, NULL);
    if (job->stop.after_deadline) /* the deadline was reached between two rounds */
        job_ask_stop(job, "the deadline has passed", 1);
}

void job_stop_end(struct job *job)
{
    if (job->control.head && event_initialized(&job->stop.wanted))
        event_del(&job->stop.wanted);
}

/* Also returns 1 if the ranks were asked to stop, but the pages only say that the program calls
 * ct_should_stop().  Ranks of another node may have ended while ranks here are still in the last
 * vote, and that vote will tell the ranks here to stop. */
int job_stops_itself(const struct job *job)
{
    struct control_head *head = job->control.head;

    for (int i = 0; head && i < job->size; i++) {
        const struct control_rank *page = control_rank_at(head, i);

        if (atomic_load(&page->stopped_at) || (job->stop.asked && atomic_load(&page->stop_checked)))
            return 1;
    }
    return 0;
}

uint64_t job_stopped_at(const struct job *job, const struct worker *worker)
{
    struct control_head *head = job->control.head;

    return head && !worker->running && worker->how == CLD_EXITED
               ? atomic_load(&control_rank_at(head, worker->local_rank)->stopped_at)
               : 0;
}

int job_code_of_stopped(const struct job *job)
{
    int code = 0;

    for (int i = 0; i < job->size; i++) {
        if (job->workers[i].lost) /* this worker failed earlier, and the others continued */
            continue;
        if (!job_stopped_at(job, &job->workers[i]))
            return -1;
        if (code == 0)
            code = job->workers[i].code;
    }
    return code;
}

/* ---- The deadline ---------------------------------------------------------- */

static void wait_until(struct job *job, int64_t moment)
{
    struct timeval now, left = { 0, 0 };

    gettimeofday(&now, NULL);
    if (moment > now.tv_sec)
        left = (struct timeval){ moment - now.tv_sec - 1, 1000000 - now.tv_usec };
    event_add(&job->stop.deadline, &left);
}

/* Asks the workers to stop.  With --deadline, ctrun sends SIGTERM after the grace period.  Without
 * --deadline, Slurm sends SIGTERM. */
static void deadline_reached(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    char why[96];

    (void)fd;
    (void)what;
    snprintf(why, sizeof why, "--deadline is reached, and SIGTERM follows in %d s",
             job->options->shutdown_timeout);
    if (time(NULL) < job->stop.due) { /* the clock was set back */
        wait_until(job, job->stop.due);
    } else if (!job->stop.after_deadline) {
        job->stop.after_deadline = 1;
        job_ask_stop(job, job->options->deadline ? why : "the job's time in Slurm is nearly over",
                     1);
        if (job->options->deadline)
            wait_until(job, job->stop.due + job->options->shutdown_timeout);
    } else if (job->state != STOPPING && !job->told.signal) {
        job->told.signal = SIGTERM;
        job->told.by = BY_DEADLINE;
        job_event(job, SIGNALLED);
    }
}

void job_deadline_open(struct job *job)
{
    const char *slurm = getenv("SLURM_JOB_END_TIME");
    const int is_given = job->options->settings[OPTION_DEADLINE_MARGIN].from != FROM_DEFAULT;
    const int64_t now = time(NULL);
    int64_t end;

    evtimer_assign(&job->stop.deadline, job->base, deadline_reached, job);
    if (job->options->deadline)
        deadline_of_words(job->options->deadline, now, &job->stop.due);
    else if (slurm && deadline_of_epoch(slurm, &end) == 0 && end > now)
        job->stop.due = is_given ? end - job->options->deadline_margin : deadline_before(end, now);
    else if (slurm && *slurm)
        log_line(
            LOG_WARN,
            "SLURM_JOB_END_TIME=%.60s is not in the future, so the job has no deadline: `unset "
            "SLURM_JOB_END_TIME` if this shell has it from a job that is over",
            slurm);
    if (job->stop.due)
        wait_until(job, job->stop.due);
}
