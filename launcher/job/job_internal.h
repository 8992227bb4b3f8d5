/* SPDX-License-Identifier: Apache-2.0 */
/* job_internal.h - what the files of a job share: job.c takes in events and decides, worker_ends.c
 * and from_nodes.c bring events, job_round.c starts the workers of a round and clears what is left
 * of them, stop_workers.c stops them, should_stop.c asks them to stop at the same step, job_run.c
 * sets up and tears down. */
#ifndef LAUNCHER_JOB_JOB_INTERNAL_H
#define LAUNCHER_JOB_JOB_INTERNAL_H

#include "launcher/job/job.h"

enum job_event {
    ROUND,         /* the nodes are there: start the workers */
    WORKER_FAILED, /* the first failure of a round */
    WORKER_LOST,   /* a worker failed, and the others go on */
    WORKER_LEFT,   /* a worker left at the step at which all were asked to stop: the others will
                      leave, too */
    TOLD_TO_STOP,  /* another node stops the round, or a rank failed that has not ended */
    SIGNALLED,     /* a signal, or the deadline, tells ctrun to stop */
    SPARE_OVER,    /* a worker that could end by itself still runs */
    GRACE_OVER,    /* workers that were asked to stop still run */
    LAST_WORKER_GONE,
    OVER, /* the job is over on all nodes */
    JOB_EVENTS
};

/* Calls a hook of each observer that has it. */
#define JOB_TELL(job, hook, ...)                    \
    for (int i_ = 0; i_ < (job)->watch.count; i_++) \
        if (!(job)->watch.rows[i_]->hook)           \
            continue;                               \
        else                                        \
            (job)->watch.rows[i_]->hook((job)->watch.states[i_], __VA_ARGS__)

/* Likewise, but sets code to what the hook returns and stops when that is not 0. */
#define JOB_ASK(job, code, hook, ...)                              \
    for (int i_ = 0; i_ < (job)->watch.count && (code) == 0; i_++) \
        if (!(job)->watch.rows[i_]->hook)                          \
            continue;                                              \
        else                                                       \
            (code) = (job)->watch.rows[i_]->hook((job)->watch.states[i_], __VA_ARGS__)

/* job.c */
void job_event(struct job *job, enum job_event event);
/* 0: success; else ctrun's exit code, and the error is logged. */
int job_listen(struct job *job);

/* worker_ends.c */
void job_worker_died(void *job, const struct worker *worker); /* tells the other workers, at once */
void job_set_first_failed(struct job *job, struct worker *worker);
void job_take_pending_deaths(struct job *job);
void job_reap(struct job *job, pid_t first);

/* from_nodes.c */
extern const struct nodes_hooks job_nodes_hooks;

/* stop_workers.c: the actions of moves[][] in job.c. */
void stop_for_failure(struct job *job);
void stop_tell_loss(struct job *job);
void stop_give_time(struct job *job);
void stop_late(struct job *job);
void stop_workers(struct job *job);
void stop_for_signal(struct job *job);
void stop_tell_signal(struct job *job);
void stop_hurry(struct job *job);
void stop_by_kill(struct job *job);
void stop_spared(struct job *job);
void stop_signal_workers(struct job *job, int number);

/* job_round.c: what job.c does when a round begins, when its last worker is gone, and when the job
 * is over. */
void job_start_round(struct job *job);
void job_end_round(struct job *job);
void job_finish(struct job *job);
struct failed_round job_failed_round(struct job *job, struct worker *first_failed);

/* should_stop.c */
void job_ask_stop(struct job *job, const char *why, int for_good);
void job_stop_begin(struct job *job);         /* a round starts, and has its control page */
void job_stop_end(struct job *job);           /* before the control page is removed */
void job_stop_asked(void *job, int for_good); /* another node asks all ranks to stop */
void job_look_for_signalled(struct job *job); /* asks all to stop if one worker got SIGTERM */
/* Gives the number of the call of ct_should_stop() that told this worker to stop, if the worker
 * then ended by itself; else 0. */
uint64_t job_stopped_at(const struct job *job, const struct worker *worker);
/* Says whether the program calls ct_should_stop() and was asked to stop: it then ends without a
 * signal. */
int job_stops_itself(const struct job *job);
/* Gives the workers' exit code if all ended because ct_should_stop() told them to; else -1. */
int job_code_of_stopped(const struct job *job);
void job_deadline_open(struct job *job);

#endif
