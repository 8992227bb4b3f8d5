/* SPDX-License-Identifier: Apache-2.0 */
/* observer.h - what a job tells those that watch it: --events, --trace, the status page, PMI ...
 *
 * An observer is a row of the table that main() gives to job_run().  Each hook is called for each
 * row in the order of the table; a row has only the hooks that it needs.  An observer reads the job
 * (job.h); of what it does to it there are only the functions at the end of this file. */
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

    /* Nothing that has to be undone is there yet: what can be refused is.  0, or ctrun's exit code
     * and the error is logged; so all that give an int. */
    int (*open)(void *state, struct job *job);
    /* job->base and job->meet are there. */
    int (*job_began)(void *state, struct job *job);
    /* Whatever it was that failed.  The loop does not turn any more, but its events may be pending.
     */
    void (*close)(void *state, const struct job_end *end);
    /* In the guard, if ctrun was killed: with the memory that ctrun had when the guard started, and
     * what it has shared since, but no descriptors. */
    void (*save)(void *state, struct job *job);

    /* Also of a node without workers.  May add to what all workers get. */
    int (*round_begins)(void *state, struct job *job, struct round *round);
    /* What this worker alone inherits. */
    int (*inherits)(void *state, int local_rank, struct inherited *inherited);
    void (*worker_started)(void *state, struct worker *worker);
    void (*round_began)(void *state, struct job *job); /* its workers run */
    /* After the other ranks have been told.  It may note a fault of the worker. */
    void (*worker_died)(void *state, struct worker *worker);
    /* The job takes it into account.  its_own: it did not follow another's failure. */
    void (*worker_ended)(void *state, const struct failed_round *round, struct worker *worker,
                         int its_own);
    void (*stopping)(void *state, int signal, const char *why); /* workers get that */
    void (*round_ended)(void *state, struct job *job); /* no worker is left, or none could start */
    /* What takes time after that, at turns of the loop: it calls job_drained(job) at the end. */
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

/* A worker that runs, or that ended with exit code 0 before it was one, has worker->fault. */
void job_found_fault(struct job *job, struct worker *worker);
/* What a rank does, here or elsewhere, makes the others stop, though it has not failed by itself.
 * The caller has said it.  failure.may_restart: as far as that failure goes. */
void job_found_failure(struct job *job, struct failure failure);
void job_stalled(struct job *job, const struct verdict_list *list);
void job_drained(void *job);

#endif
