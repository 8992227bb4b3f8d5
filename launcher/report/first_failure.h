/* SPDX-License-Identifier: Apache-2.0 */
/* first_failure.h - in which order the workers died, and which of them failed first. */
#ifndef LAUNCHER_REPORT_FIRST_FAILURE_H
#define LAUNCHER_REPORT_FIRST_FAILURE_H

#include "launcher/stdio/log_dir.h"
#include "launcher/workers/worker.h"

struct deaths {
    struct worker *workers;
    int size;
    int epoll;   /* -1: this kernel has no pidfd; then the order is that of the ranks */
    int *pidfds; /* by worker; -1 */
    void (*died)(void *arg, const struct worker *worker);
    void *arg;
    int *ended; /* workers that were found dead, the first one first */
};

/* died is called for each at once, before anything is waited for.
 * -1 with errno.  deaths_close() is owed in both cases. */
int deaths_open(struct deaths *deaths, struct worker *workers, int size,
                void (*died)(void *arg, const struct worker *worker), void *arg);
void deaths_close(struct deaths *deaths);

/* Right after its start. */
void deaths_watch(struct deaths *deaths, const struct worker *worker);

/* Fills ->ended with those that were not there at the last call; how many. */
int deaths_collect(struct deaths *deaths);

/* Died of a signal that is no answer to another's death. */
int deaths_struck(const struct worker *worker);

/* Before ctrun asks workers to stop: those that are dying of such a signal at this moment are
 * waited for, 1 s at most, and added to ->ended.  How many there are now. */
int deaths_await_struck(struct deaths *deaths, int count);

/* Of ->ended, puts the worker that failed first in front.  Others may be waited for and
 * are added: those that are being killed (1 s at most), after a Python exception all (100 ms)
 * and those that had one earlier (2 s).  Before anybody was asked to stop.  How many there are now.
 */
int deaths_put_culprit_first(struct deaths *deaths, int count, const struct run_folder *files);

#endif
