/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - the process that kills what ctrun's workers started, if ctrun is killed. */
#ifndef LAUNCHER_WORKERS_GUARD_H
#define LAUNCHER_WORKERS_GUARD_H

#include <sys/types.h>

#include "launcher/stdio/log_dir.h"

struct guard {
    pid_t pid; /* 0: none */
    int pipe;  /* its other end is the guard's; -1 */
    int most;
    _Atomic pid_t *groups; /* by local rank, in memory that the guard sees too; 0: none */
};

/* What it does when the groups are killed.  Of ctrun's memory it has what was there when it
 * started, and no descriptors. */
struct guard_last {
    const struct run_folder *folder; /* is removed */
    void (*words)(void *arg);        /* then */
    void *arg;
};

/* Room for `most` groups at a time; before ctrun's first thread.  0 or -1 with errno. */
int guard_start(struct guard *guard, int most, const struct guard_last *last);

/* Where a worker announces its group, before its exec. */
_Atomic pid_t *guard_place(const struct guard *guard, int local_rank);

/* The group is gone: the kernel may give its number to another process. */
void guard_remove(const struct guard *guard, int local_rank);

/* 1, once: it ended, and not by guard_stop(); it is reaped then. */
int guard_was_killed(struct guard *guard);

/* Ends it; the groups it knows are left alone. */
void guard_stop(struct guard *guard);

#endif
