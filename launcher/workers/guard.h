/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - the process that kills what ctrun's workers started, if ctrun is killed. */
#ifndef LAUNCHER_WORKERS_GUARD_H
#define LAUNCHER_WORKERS_GUARD_H

#include <sys/types.h>

#include "launcher/stdio/log_dir.h"

struct guard {
    pid_t pid; /* 0: no guard */
    int pipe;  /* the guard has its other end; -1: no pipe */
    int most;
    _Atomic pid_t *groups; /* [local rank], in memory shared with the guard; 0: no group */
};

/* What the guard does after it has killed the groups.  It has ctrun's memory as it was when the
 * guard started, and no descriptors. */
struct guard_last {
    const struct run_folder *folder; /* is removed first */
    void (*words)(void *arg);        /* is called then */
    void *arg;
};

/* Starts the guard with room for `most` groups.  Call it before ctrun's first thread starts.  0:
 * success; -1: see errno. */
int guard_start(struct guard *guard, int most, const struct guard_last *last);

/* Gives the place where a worker announces its group before its exec. */
_Atomic pid_t *guard_place(const struct guard *guard, int local_rank);

/* Removes a group that is gone: the kernel may give its number to another process. */
void guard_remove(const struct guard *guard, int local_rank);

/* Says, once, whether the guard ended other than by guard_stop(), and reaps it. */
int guard_was_killed(struct guard *guard);

/* Ends the guard without killing the groups. */
void guard_stop(struct guard *guard);

#endif
