/* SPDX-License-Identifier: Apache-2.0 */
/* subreaper.h - kills the processes that workers started and left running, in any session. */
#ifndef LAUNCHER_WORKERS_SUBREAPER_H
#define LAUNCHER_WORKERS_SUBREAPER_H

#include <sys/types.h>

struct subreaper {
    int has_foreign_children; /* true if some of ctrun's children may not belong to the job */
};

/* Makes ctrun the parent of each descendant whose parent ends from now on. */
void subreaper_start(struct subreaper *subreaper);

/* Reaps dead children, except children for which is_known() returns a value other than 0. */
void subreaper_reap(int (*is_known)(const void *arg, pid_t pid), const void *arg);

/* Kills all of ctrun's children except the guard, and the children's descendants.  Called at the
 * end of a round, when no worker is left.  If some children may be foreign, kills only processes
 * with this generation in their environment.  Returns the number of processes that did not die. */
int subreaper_kill(const struct subreaper *subreaper, pid_t guard, const char *generation);

#endif
