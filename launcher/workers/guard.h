/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - the process that kills what ctrun's workers started, if ctrun is killed. */
#ifndef LAUNCHER_WORKERS_GUARD_H
#define LAUNCHER_WORKERS_GUARD_H

#include <sys/types.h>

#include "launcher/stdio/log_dir.h"

struct guard {
    pid_t pid;             /* pid of the guard; 0 if none */
    int pipe;              /* write end of the pipe that the guard reads; -1 if none */
    int most;              /* number of entries in `groups` */
    _Atomic pid_t *groups; /* groups[local rank]; 0 if no group; in memory shared with the guard */
};

/* What the guard does after it has killed the groups.  The guard has a copy of ctrun's memory from
 * the guard's start, and no descriptors. */
struct guard_last {
    const struct run_folder *folder; /* folder that the guard removes first */
    void (*words)(void *arg);        /* function that the guard calls then */
    void *arg;
};

/* Starts the guard with room for `most` groups.  Must be called before ctrun's first thread starts.
 * Returns 0, or -1 with errno set. */
int guard_start(struct guard *guard, int most, const struct guard_last *last);

/* Returns where a worker writes its process group before its exec; NULL if there is no place. */
_Atomic pid_t *guard_place(const struct guard *guard, int local_rank);

/* Removes a process group that has ended, since the kernel may reuse its number. */
void guard_remove(const struct guard *guard, int local_rank);

/* Returns 1 once, and reaps the guard, if the guard ended without guard_stop(); else 0. */
int guard_was_killed(struct guard *guard);

/* Ends the guard without killing the groups. */
void guard_stop(struct guard *guard);

#endif
