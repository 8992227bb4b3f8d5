/* SPDX-License-Identifier: Apache-2.0 */
/* observer.h - what a job tells those that watch it: --events, --trace, the status page, PMI ...
 *
 * An observer is a row of the table that main() gives to job_run().  Each hook is called for each
 * row in the order of the table; a row has only the hooks that it needs.  An observer may read the
 * whole job (job.h) and send messages by job->nodes->ops.  What it finds out about the job it says
 * by the functions at the end of this file. */
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
    struct failed_round round; /* first_failed NULL: the job did not end by a worker here */
    const char *fault;         /* what ctrun said last; "": nothing */
};

struct job_observer {
    size_t bytes; /* of its state, the first argument of each hook; all zeros before open() */

    /* Called before ctrun looks for the program; the loop comes later.  Gives 0, or logs the error
     * and gives ctrun's exit code, as all hooks do that give an int. */
    int (*open)(void *state, struct job *job);
    /* job->base and job->meet are there. */
    int (*job_began)(void *state, struct job *job);
    /* Once, if open() was called, whatever failed then.  The loop does not turn any more, but its
     * events may be pending. */
    void (*close)(void *state, const struct job_end *end);
    /* In the guard, if ctrun was killed.  The guard has the memory of ctrun as it was when the
     * guard started, and memory that was shared before, but no descriptors. */
    void (*save)(void *state);

    /* Also of a node without workers.  May add to what all workers get. */
    int (*round_begins)(void *state, struct job *job, struct round *round);
    /* What this worker alone inherits. */
    int (*inherits)(void *state, int local_rank, struct inherited *inherited);
    void (*worker_started)(void *state, const struct worker *worker);
    /* Its workers run; fewer than all, if a signal came meanwhile. */
    void (*round_began)(void *state, struct job *job);
    /* After the other ranks have been told.  It may note a fault of the worker. */
    void (*worker_died)(void *state, struct worker *worker);
    /* The job takes it into account.  its_own: it did not follow another's failure. */
    void (*worker_ended)(void *state, const struct failed_round *round, const struct worker *worker,
                         int its_own);
    void (*stopping)(void *state, int signal, const char *why); /* workers get that */
    /* Its workers have ended, or will be killed now since not all could start. */
    void (*round_ended)(void *state, struct job *job);
    /* Nothing of the workers is left.  May go on at turns of the loop; calls job_drained() once. */
    void (*drain)(void *state, struct job *job);

    /* What nodes say (struct nodes_hooks). */
    void (*member)(void *state, int node, int there);
    void (*died_elsewhere)(void *state, const struct control_death *death);
    void (*puts)(void *state, const char *puts, size_t bytes);
    void (*fenced)(void *state, struct job *job);
    void (*slow)(void *state, const struct slow_rank *slow, const char *node);
    void (*look)(void *state, unsigned look);
    void (*rows)(void *state, int node, unsigned look, const char *rows, size_t bytes);
    void (*clock)(void *state, const struct clock_reading *reading);

    /* What one observer finds and others write. */
    void (*stalled)(void *state, const struct verdict_list *list);
};

/* A worker failed although it runs, or has ended with exit code 0: worker->fault says why.  Only
 * while the job is RUNNING. */
void job_found_fault(struct job *job, struct worker *worker);
/* All ranks have to stop for this rank, here or elsewhere, although it has not ended as a failure.
 * Logs failure.what and `also`, the end of that line. */
void job_found_failure(struct job *job, struct failure failure, const char *also);
void job_stalled(struct job *job, const struct verdict_list *list);
void job_drained(struct job *job);

#endif
