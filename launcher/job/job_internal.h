/* SPDX-License-Identifier: Apache-2.0 */
/* job_internal.h - the functions by which the files of a job call each other.
 *
 * job_run.c sets the job up and tears it down.  job.c handles each event with the table moves[][].
 * worker_ends.c and from_nodes.c make events of workers' ends and of other nodes' messages.
 * job_round.c starts the workers of a round and cleans up after them.  stop_workers.c stops the
 * workers.  should_stop.c asks the workers to stop at the same step. */
#ifndef LAUNCHER_JOB_JOB_INTERNAL_H
#define LAUNCHER_JOB_JOB_INTERNAL_H

#include "launcher/job/job.h"

enum job_event {
    ROUND,         /* all nodes are ready, so this node must start its workers */
    WORKER_FAILED, /* a worker failed, so the other workers must stop */
    WORKER_LOST,   /* a worker failed, but the other workers continue */
    WORKER_LEFT,   /* workers are leaving at the step at which all ranks were asked to stop */
    TOLD_TO_STOP,  /* another node stops the round, or a rank failed that has not ended */
    SIGNALLED,     /* a signal or the deadline tells ctrun to stop */
    SPARE_OVER,    /* the time is over that the culprit got to end by itself */
    GRACE_OVER,    /* the grace period is over, and some workers still run */
    LAST_WORKER_GONE,
    OVER, /* the job is over on all nodes */
    JOB_EVENTS
};

/* Calls the hook of each observer that has this hook. */
#define JOB_TELL(job, hook, ...)                    \
    for (int i_ = 0; i_ < (job)->watch.count; i_++) \
        if (!(job)->watch.rows[i_]->hook)           \
            continue;                               \
        else                                        \
            (job)->watch.rows[i_]->hook((job)->watch.states[i_], __VA_ARGS__)

/* Calls the hook of each observer that has this hook, until a hook returns nonzero.  Sets code to
 * the value that the last called hook returned. */
#define JOB_ASK(job, code, hook, ...)                              \
    for (int i_ = 0; i_ < (job)->watch.count && (code) == 0; i_++) \
        if (!(job)->watch.rows[i_]->hook)                          \
            continue;                                              \
        else                                                       \
            (code) = (job)->watch.rows[i_]->hook((job)->watch.states[i_], __VA_ARGS__)

/* job.c */
void job_event(struct job *job, enum job_event event);
/* Creates the event loop and its events.  Returns 0, or logs the error and returns ctrun's exit
 * code. */
int job_listen(struct job *job);

/* worker_ends.c */
void job_worker_died(void *job, const struct worker *worker); /* tells the other workers at once */
void job_set_first_failed(struct job *job, struct worker *worker);
void job_take_pending_deaths(struct job *job);
void job_reap(struct job *job, pid_t first);

/* from_nodes.c */
extern const struct nodes_hooks job_nodes_hooks;

/* stop_workers.c.  moves[][] in job.c calls these functions. */
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

/* job_round.c.  moves[][] in job.c calls the first three functions. */
void job_start_round(struct job *job);
void job_end_round(struct job *job); /* called when the last worker of the round has ended */
void job_finish(struct job *job);    /* called when the job is over on all nodes */
struct failed_round job_failed_round(struct job *job, struct worker *first_failed);

/* should_stop.c */
void job_ask_stop(struct job *job, const char *why, int for_good);
void job_stop_begin(struct job *job);         /* called when a round has got its control page */
void job_stop_end(struct job *job);           /* called before the control page is removed */
void job_stop_asked(void *job, int for_good); /* called when another node asks all ranks to stop */
void job_look_for_signalled(struct job *job); /* asks all ranks to stop if a worker got SIGTERM */
/* Returns the number of the call of ct_should_stop() that told this worker to stop, if the worker
 * has exited since; else 0. */
uint64_t job_stopped_at(const struct job *job, const struct worker *worker);
/* Returns 1 if the program calls ct_should_stop() and was asked to stop.  Such a program ends
 * without a signal. */
int job_stops_itself(const struct job *job);
/* Returns the workers' exit code if all of them exited because ct_should_stop() told them to stop;
 * else -1. */
int job_code_of_stopped(const struct job *job);
void job_deadline_open(struct job *job);

#endif
