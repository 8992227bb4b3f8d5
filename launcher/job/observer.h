/* SPDX-License-Identifier: Apache-2.0 */
/* observer.h - what a job tells those that watch it: --events, --trace, the status page, PMI ...
 *
 * An observer is a row of the table that main() gives to job_run().  Each hook is called for each
 * row in the order of the table; a row has only the hooks that it needs.  An observer may read the
 * whole job (job.h) and send messages by job->nodes->ops.  It reports what it finds out about the
 * job with the functions at the end of this file. */
#ifndef LAUNCHER_JOB_OBSERVER_H
#define LAUNCHER_JOB_OBSERVER_H

#include "launcher/nodes/nodes.h"
#include "launcher/report/report.h"
#include "launcher/workers/worker.h"
#include "launcher/workers/worker_env.h"

struct job;
struct verdict_list;

struct job_end {
    int code;
    struct failed_round round; /* first_failed is NULL if no worker of this node ended the job */
    const char *fault;         /* ctrun's last error; "": no error */
};

struct job_observer {
    size_t bytes; /* of its state, which is the first argument of each hook and all zeros before
                     open() */

    /* Called before ctrun looks for the program; the loop comes later.  Gives 0, or logs the error
     * and gives ctrun's exit code, as all hooks do that give an int. */
    int (*open)(void *state, struct job *job);
    /* Called when job->base and job->meet exist. */
    int (*job_began)(void *state, struct job *job);
    /* Called once if open() was called, even if open() or a later step failed.  The event loop has
     * ended, but its events may still be pending. */
    void (*close)(void *state, const struct job_end *end);
    /* Called in the guard process if ctrun was killed.  The guard has a copy of ctrun's memory from
     * when the guard started, and memory that was shared before, but no descriptors. */
    void (*save)(void *state);

    /* Called also on a node without workers.  May change *round to add to what all workers get. */
    int (*round_begins)(void *state, struct job *job, struct round *round);
    /* Adds what only this worker inherits. */
    int (*inherits)(void *state, int local_rank, struct inherited *inherited);
    void (*worker_started)(void *state, const struct worker *worker);
    /* Called when the workers run: not all of them, if a signal came meanwhile. */
    void (*round_began)(void *state, struct job *job);
    /* Called after the other ranks were told.  May set worker->fault. */
    void (*worker_died)(void *state, struct worker *worker);
    /* Called when the job takes the worker's end into account.  its_own: the end did not follow
     * another rank's failure. */
    void (*worker_ended)(void *state, const struct failed_round *round, const struct worker *worker,
                         int its_own);
    void (*stopping)(void *state, int signal, const char *why); /* workers get `signal` */
    /* Called when the workers have ended, or will be killed now because not all could start. */
    void (*round_ended)(void *state, struct job *job);
    /* Called when no process of the workers is left.  Calls job_drained() once, now or in a later
     * turn of the event loop. */
    void (*drain)(void *state, struct job *job);

    /* Called for messages from other nodes (struct nodes_hooks). */
    void (*member)(void *state, int node, int there);
    void (*died_elsewhere)(void *state, const struct control_death *death);
    void (*puts)(void *state, const char *puts, size_t bytes);
    void (*fenced)(void *state, struct job *job);
    void (*slow)(void *state, const struct slow_rank *slow, const char *node);
    void (*look)(void *state, unsigned look);
    void (*rows)(void *state, int node, unsigned look, const char *rows, size_t bytes);
    void (*clock)(void *state, const struct clock_reading *reading);

    /* Called when an observer has found a stall, so that others write it. */
    void (*stalled)(void *state, const struct verdict_list *list);
};

/* Handles the failure of a worker that still runs, or that ended with exit code 0.  worker->fault
 * says why it failed.  Does nothing unless the job is RUNNING. */
void job_found_fault(struct job *job, struct worker *worker);
/* Stops all ranks because of failure.rank, on any node, which has not ended as a failure.  Logs
 * failure.what and `also` in one line. */
void job_found_failure(struct job *job, struct failure failure, const char *also);
void job_stalled(struct job *job, const struct verdict_list *list);
void job_drained(struct job *job);

#endif
