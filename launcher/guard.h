/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - the process that outlives ctrun by a moment, if ctrun is killed. */
#ifndef LAUNCHER_GUARD_H
#define LAUNCHER_GUARD_H

#include <sys/types.h>

#include "launcher/run_folder.h"

struct guard {
    pid_t pid; /* 0: none */
    int pipe;  /* its other end is the guard's; -1 */
    int most;
    _Atomic pid_t *groups; /* by local rank, in memory that the guard sees too; 0: none */
};

/* Room for `most` groups at a time.  With the folder it removes `also`, a path, if it is not "".
 * 0 or -1 with errno. */
int guard_start(struct guard *guard, int most, const struct run_folder *folder, const char *also);

/* Where a worker announces its group, before its exec. */
_Atomic pid_t *guard_place(const struct guard *guard, int local_rank);

/* The group is gone: its number may be somebody else's soon. */
void guard_remove(const struct guard *guard, int local_rank);

/* Ends it; the groups it knows are left alone. */
void guard_stop(struct guard *guard);

#endif
