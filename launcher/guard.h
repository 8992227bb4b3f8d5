/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - the process that outlives ctrun by a moment, if ctrun is killed. */
#ifndef LAUNCHER_GUARD_H
#define LAUNCHER_GUARD_H

#include <sys/types.h>

#include "launcher/error_files.h"

struct guard {
    pid_t pid; /* 0: none */
    int pipe;  /* a socket; its other end is the guard's; -1 */
};

/* Room for `most` groups at a time.  0 or -1 with errno. */
int guard_start(struct guard *guard, int most, const struct error_files *files);

/* Workers announce their groups themselves, by a send() to ->pipe of their pid. */
void guard_remove(const struct guard *guard, pid_t group);

/* Ends it; the groups it knows are left alone. */
void guard_stop(struct guard *guard);

#endif
