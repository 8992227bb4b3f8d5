/* SPDX-License-Identifier: Apache-2.0 */
/* first_failure.h - finds the order in which workers died, and the worker that failed first. */
#ifndef LAUNCHER_REPORT_FIRST_FAILURE_H
#define LAUNCHER_REPORT_FIRST_FAILURE_H

#include "launcher/stdio/log_dir.h"
#include "launcher/workers/worker.h"

struct first_failure {
    struct worker *workers;
    int size;
    int epoll; /* epoll set of the pidfds */
    /* Pidfd of each worker, or -1 if the worker has no pidfd.  Workers without a pidfd are
     * collected last, in the order of their ranks. */
    int *pidfds;
    void (*died)(void *arg, const struct worker *worker);
    void *arg;
    int *ended; /* indexes of workers that were found dead, in the order of their deaths */
};

/* Prepares the struct for `size` workers.  ctrun calls died() for each dead worker as soon as it
 * finds the death, before it waits for anything else.  Returns 0, or -1 with errno set.  The caller
 * must call first_failure_close() in both cases. */
int first_failure_open(struct first_failure *failures, struct worker *workers, int size,
                       void (*died)(void *arg, const struct worker *worker), void *arg);
void first_failure_close(struct first_failure *failures);

/* Watches a worker.  Must be called right after the worker's start. */
void first_failure_watch(struct first_failure *failures, const struct worker *worker);

/* Fills ->ended with the workers that have ended since the last call.  Returns the number of these
 * workers. */
int first_failure_collect(struct first_failure *failures);

/* Returns 1 if a program that died of this signal did not die because another worker died, else
 * 0. */
int signal_is_unprovoked(int number);

/* Returns the time of the error in the worker's error.json, in ns since 1970, or 0 if the worker
 * wrote no error. */
int64_t worker_noted_ns(const struct worker *worker, const struct run_folder *files);

/* True if the worker died of a signal for which signal_is_unprovoked() returns 1. */
int worker_was_killed(const struct worker *worker);

/* Waits at most 1 s for workers that an unprovoked signal is killing now (signal_is_unprovoked()),
 * and adds these workers to ->ended.  Must be called before ctrun stops the workers.  Returns the
 * new number of entries in ->ended. */
int first_failure_await_killed(struct first_failure *failures, int count);

/* Moves the worker that failed first to the front of ->ended.  Must be called before ctrun stops
 * any worker.
 *
 * May wait for workers and add them to ->ended.  Waits at most 1 s for workers that are being
 * killed.  After a Python exception, waits 100 ms for all workers, and at most 2 s for workers with
 * an earlier exception.  Returns the new number of entries in ->ended. */
int first_failure_to_front(struct first_failure *failures, int count,
                           const struct run_folder *files);

#endif
