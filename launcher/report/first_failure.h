/* SPDX-License-Identifier: Apache-2.0 */
/* first_failure.h - in which order the workers died, and which of them failed first. */
#ifndef LAUNCHER_REPORT_FIRST_FAILURE_H
#define LAUNCHER_REPORT_FIRST_FAILURE_H

#include "launcher/stdio/log_dir.h"
#include "launcher/workers/worker.h"

struct first_failure {
    struct worker *workers;
    int size;
    int epoll;   /* -1: this kernel has no pidfd; then the order is that of the ranks */
    int *pidfds; /* by worker; -1 */
    void (*died)(void *arg, const struct worker *worker);
    void *arg;
    int *ended; /* workers that were found dead, the first one first */
};

/* died is called for each at once, before anything is waited for.
 * -1 with errno.  first_failure_close() is owed in both cases. */
int first_failure_open(struct first_failure *failures, struct worker *workers, int size,
                       void (*died)(void *arg, const struct worker *worker), void *arg);
void first_failure_close(struct first_failure *failures);

/* Right after its start. */
void first_failure_watch(struct first_failure *failures, const struct worker *worker);

/* Fills ->ended with the workers that have ended since the last call.  Returns how many. */
int first_failure_collect(struct first_failure *failures);

/* 1: a program does not die of that signal because another worker died. */
int signal_is_unprovoked(int number);

/* When it noted its error in error.json, since 1970; 0: it did not. */
int64_t worker_noted_ns(const struct worker *worker, const struct run_folder *files);

/* It died of a signal that is no answer to another worker's death. */
int worker_was_killed(const struct worker *worker);

/* Before ctrun stops the workers: waits 1 s at most for those that are dying of such a signal at
 * this moment, and adds them to ->ended.  Returns how many are there now. */
int first_failure_await_killed(struct first_failure *failures, int count);

/* Puts the worker of ->ended that failed first in front, before ctrun stops any.  May wait for
 * workers and add them: those that are being killed (1 s at most); after a Python exception all
 * (100 ms), and those that had one earlier (2 s).  Returns how many are there now. */
int first_failure_to_front(struct first_failure *failures, int count,
                           const struct run_folder *files);

#endif
