/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - one process: a session of its own, dies with ctrun. */
#ifndef LAUNCHER_SPAWN_H
#define LAUNCHER_SPAWN_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/types.h>

struct spawn_args {
    const char *path; /* executed as it is: no look-up */
    char *const *argv;
    char *const *envp;
    int out, err;                     /* to be descriptors 1 and 2; -1: ours are inherited */
    _Atomic pid_t *announce;          /* where the child announces its group; NULL: nowhere */
    const sigset_t *ignored;          /* signals to set back to their defaults */
    const struct rlimit *descriptors; /* how many it may have open; NULL: as many as we */
};

/* Returns when the program is running: its pid, which is also its session and
 * process group.  Else -1; errno is that of exec and *execed is 1, or that of
 * fork and *execed is 0.  A failed child is reaped here, so that nobody meets
 * an unknown pid.  The caller has all its signals blocked. */
pid_t spawn(const struct spawn_args *args, int *execed);

#endif
