/* SPDX-License-Identifier: Apache-2.0 */
/* first_failure.h - finds the order in which workers died, and the one that failed first. */
#ifndef LAUNCHER_REPORT_FIRST_FAILURE_H
#define LAUNCHER_REPORT_FIRST_FAILURE_H

#include "launcher/stdio/log_dir.h"
#include "launcher/workers/worker.h"

struct first_failure {
    struct worker *workers;
    int size;
    int epoll;   /* epoll set of the pidfds */
    int *pidfds; /* [worker]; -1: no pidfd, so its place in the order is that of its rank */
    void (*died)(void *arg, const struct worker *worker);
    void *arg;
    int *ended; /* workers that were found dead, in the order of their deaths */
};

/* died() is called for each dead worker at once, before ctrun waits for anything.  -1: see errno.
 * first_failure_close() must follow in both cases. */
int first_failure_open(struct first_failure *failures, struct worker *workers, int size,
                       void (*died)(void *arg, const struct worker *worker), void *arg);
void first_failure_close(struct first_failure *failures);

/* Watches a worker; call it right after the worker's start. */
void first_failure_watch(struct first_failure *failures, const struct worker *worker);

/* Fills ->ended with the workers that have ended since the last call.  Returns how many. */
int first_failure_collect(struct first_failure *failures);

/* 1: a program that dies of that signal does not do so because another worker died. */
int signal_is_unprovoked(int number);

/* Gives the time of the error in the worker's error.json, since 1970; 0: it wrote no error. */
int64_t worker_noted_ns(const struct worker *worker, const struct run_folder *files);

/* Says whether the worker died of a signal that can't be the answer to another worker's death. */
int worker_was_killed(const struct worker *worker);

/* Waits at most 1 s for workers that are dying of such a signal now, and adds them to ->ended.
 * Called before ctrun stops the workers.  Returns how many ->ended has now. */
int first_failure_await_killed(struct first_failure *failures, int count);

/* Puts the worker of ->ended that failed first in front.  Called before ctrun stops any worker.
 * May wait for workers and add them: at most 1 s for workers that are being killed; after a Python
 * exception 100 ms for all, and 2 s for workers with an earlier exception.  Returns how many
 * ->ended has now. */
int first_failure_to_front(struct first_failure *failures, int count,
                           const struct run_folder *files);

#endif
