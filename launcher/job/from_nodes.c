/* SPDX-License-Identifier: Apache-2.0 */
/* from_nodes.c - handles what the nodes tell the job, and passes some of it to the observers. */
#include <stdio.h>
#include <sys/wait.h>

#include "launcher/job/job_internal.h"

static struct worker *worker_of_rank(struct job *job, int rank)
{
    const int local = rank - job->plan.base;

    return local >= 0 && local < job->size ? &job->workers[local] : NULL;
}

static void on_round(void *arg, const struct plan *plan)
{
    struct job *job = arg;

    output_progress(&job->output, "");
    job->round.restarted = job->plan.generation && plan->restarts > job->plan.restarts;
    job->plan = *plan;
    job_event(job, ROUND);
}

/* Sets the failure of the round.  If why is "", `rank` of this node failed.  Otherwise why says
 * what failed on another node. */
static void take_root_cause(struct job *job, int rank, const char *why)
{
    struct worker *worker = *why ? NULL : worker_of_rank(job, rank);

    snprintf(job->round.elsewhere, sizeof job->round.elsewhere, "%s", why);
    if (worker && worker->pid > 0)
        job_set_first_failed(job, worker);
}

static void on_stop(void *arg, int number, int rank, const char *why)
{
    struct job *job = arg;
    const int round = job->plan.round;

    job_take_pending_deaths(job);
    if (job->plan.round != round) /* the last worker had died, and the next round has begun */
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

/* ---- Messages for the observers --------------------------------------------------- */

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
