/* SPDX-License-Identifier: Apache-2.0 */
/* job_stop.c - the workers are asked to stop, all at the same step (runtime/monitor/stop_step.h).
 *
 * Asked by a signal to ctrun, before that is forwarded; by a worker that got one alone, which
 * notes it in its page and writes the eventfd; by --deadline, or Slurm's end of the job.  How the
 * nodes agree is nodes.h's; here the words of the ranks are closed, and the step is told. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "config/parse_deadline.h"
#include "launcher/job/job_internal.h"
#include "runtime/monitor/stop_step.h"
#include "runtime/util/log.h"

void job_ask_stop(struct job *job, const char *why, int for_good)
{
    struct control_head *head = job->control.head;

    job->for_good |= for_good;
    if (!head || job->asked_to_stop > for_good)
        return;
    if (!job->asked_to_stop && *why && job->state != STOPPING) /* by a SIGTERM of ours */
        log_line(LOG_WARN, "%s: the ranks are asked to stop at the same step", why);
    job->asked_to_stop = for_good + 1;
    atomic_store(&head->stop_asked, 1);
    job->nodes->ops->ask_stop(job->nodes, for_good);
    job_stop_asked(job, for_good);
}

/* ---- Workers --------------------------------------------------------------- */

static void look_for_wishes(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;

    (void)fd;
    (void)what;
    for (int i = 0; i < job->size && !job->asked_to_stop; i++)
        if (atomic_load(&control_rank_at(job->control.head, i)->stop_wanted)) {
            char why[64];

            snprintf(why, sizeof why, "rank %d was told to stop by SIGTERM", job->workers[i].rank);
            job_ask_stop(job, why, 0);
        }
}

void job_stop_begin(struct job *job)
{
    job->asked_to_stop = 0;
    if (!job->control.head)
        return;
    job->control.head->may_agree = 1;
    atomic_store(&job->control.head->stop_by_ns, job->stop_by * INT64_C(1000000000));
    event_assign(&job->wishes, job->base, job->control.event, EV_READ | EV_ET | EV_PERSIST,
                 look_for_wishes, job);
    event_add(&job->wishes, NULL);
}

void job_stop_end(struct job *job)
{
    if (job->control.head && event_initialized(&job->wishes))
        event_del(&job->wishes);
}

/* ---- TEMPORARY */
void job_stop_asked(void *arg, int for_good)
{
    struct job *job = arg;
    struct control_head *head = job->control.head;
    uint64_t last = 0;

    job->for_good |= for_good;
    if (!head || atomic_load(&head->stop_at))
        return;
    for (int i = 0; job->control.head && i < job->size; i++) {
        const uint64_t steps = stop_close(control_rank_at(job->control.head, i));

        last = steps > last ? steps : last;
    }
    atomic_store(&head->stop_asked, 1);
    atomic_store(&head->stop_at, last + 1);
    control_host_wake(&job->control);
}

int job_stops_itself(const struct job *job)
{
    struct control_head *head = job->control.head;

    for (int i = 0; head && atomic_load(&head->stop_at) > 0 && i < job->size; i++)
        if (stop_steps(control_rank_at(head, i)) > 0)
            return 1;
    return 0;
}

uint64_t job_stopped_at(const struct job *job, const struct worker *worker)
{
    struct control_head *head = job->control.head;
    const uint64_t stop_at = head ? atomic_load(&head->stop_at) : 0;

    return stop_at && !worker->running && worker->how == CLD_EXITED
                   && stop_steps(control_rank_at(head, worker->local_rank)) >= stop_at
               ? stop_at
               : 0;
}

int job_code_of_stopped(const struct job *job)
{
    int code = 0;

    for (int i = 0; i < job->size; i++) {
        if (job->workers[i].lost) /* before that: the others went on without it */
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
    event_add(&job->deadline, &left);
}

/* First they are asked; and what --deadline says, is made to hold after the grace.  Slurm
 * sees to that itself. */
static void deadline_reached(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    char why[96];

    (void)fd;
    (void)what;
    snprintf(why, sizeof why, "--deadline is reached, and SIGTERM follows in %d s",
             job->options->shutdown_timeout);
    if (time(NULL) < job->stop_by) { /* the clock was set */
        wait_until(job, job->stop_by);
    } else if (!job->after_deadline) {
        job->after_deadline = 1;
        job_ask_stop(job, job->options->deadline ? why : "the job's time in Slurm is nearly over",
                     1);
        if (job->options->deadline)
            wait_until(job, job->stop_by + job->options->shutdown_timeout);
    } else if (job->state != STOPPING) {
        job->signal = SIGTERM;
        job->by_deadline = 1;
        job_event(job, SIGNALLED);
    }
}

void job_deadline_open(struct job *job)
{
    const char *slurm = getenv("SLURM_JOB_END_TIME");

    evtimer_assign(&job->deadline, job->base, deadline_reached, job);
    if (job->options->deadline)
        deadline_of_words(job->options->deadline, time(NULL), &job->stop_by);
    else if (slurm && deadline_of_epoch(slurm, &job->stop_by) == 0)
        job->stop_by -= job->options->deadline_margin;
    if (job->stop_by)
        wait_until(job, job->stop_by);
}
