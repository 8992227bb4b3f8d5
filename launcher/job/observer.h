/* SPDX-License-Identifier: Apache-2.0 */
/* observer.h - the hooks by which a job tells its observers what happens.  Observers implement
 * --events, --trace, the status page, PMI and more.
 *
 * An observer is a row of the table that main() passes to job_run().  The job calls a hook of all
 * rows in the order of the table.  Hooks that an observer does not need are NULL.  An observer may
 * read the whole job (job.h) and send messages by job->nodes->ops.  An observer that finds
 * something out about the job reports it with the functions at the end of this file. */
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
    const char *fault;         /* ctrun's last error; "" if there was no error */
};

struct job_observer {
    /* Size of the observer's state, which is the first argument of each hook.  The state is all
     * zeros before open(). */
    size_t bytes;

    /* Called before ctrun looks for the program and creates the event loop.  Returns 0, or logs the
     * error and returns ctrun's exit code.  The same holds for all hooks that return an int. */
    int (*open)(void *state, struct job *job);
    /* Called when job->base and job->meet exist. */
    int (*job_began)(void *state, struct job *job);
    /* Called once if open() was called, even if open() or a later step failed.  The event loop has
     * ended, but its events may still be pending. */
    void (*close)(void *state, const struct job_end *end);
    /* Called in the guard process if ctrun was killed.  The guard has the memory that ctrun shared
     * before it started the guard, and a copy of ctrun's other memory from that moment.  The guard
     * has none of ctrun's descriptors. */
    void (*save)(void *state);

    /* Called at the start of a round, also on a node without workers.  May set fields of *round,
     * which all workers get. */
    int (*round_begins)(void *state, struct job *job, struct round *round);
    /* Called before a worker starts.  May set the descriptors that only this worker inherits. */
    int (*inherits)(void *state, int local_rank, struct inherited *inherited);
    void (*worker_started)(void *state, const struct worker *worker);
    /* Called when the workers run.  If a signal came during the start, some workers do not run. */
    void (*round_began)(void *state, struct job *job);
    /* Called after the other ranks were told of the worker's death.  May set worker->fault. */
    void (*worker_died)(void *state, struct worker *worker);
    /* Called when the job handles the worker's end.  its_own is 1 if the end did not follow another
     * rank's failure. */
    void (*worker_ended)(void *state, const struct failed_round *round, const struct worker *worker,
                         int its_own);
    /* Called before ctrun sends `signal` to the workers to stop them. */
    void (*stopping)(void *state, int signal, const char *why);
    /* Called when the workers have ended.  Also called before ctrun kills them because some could
     * not start. */
    void (*round_ended)(void *state, struct job *job);
    /* Called when no process of the workers is left.  The hook must call job_drained() once, either
     * at once or in a later turn of the event loop. */
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

    /* Called when an observer has found a stall, so that other observers can report it. */
    void (*stalled)(void *state, const struct verdict_list *list);
};

/* Handles the failure of a worker that still runs or that ended with exit code 0.  The caller has
 * set worker->fault.  Does nothing unless the job is RUNNING. */
void job_found_fault(struct job *job, struct worker *worker);
/* Stops all ranks because of failure.rank, which may be on any node.  That rank still runs or has
 * ended with exit code 0.  Logs failure.what and `also` in one line. */
void job_found_failure(struct job *job, struct failure failure, const char *also);
/* Calls the hook stalled() of all observers. */
void job_stalled(struct job *job, const struct verdict_list *list);
/* Tells the job that an observer has finished its drain(). */
void job_drained(struct job *job);

#endif
