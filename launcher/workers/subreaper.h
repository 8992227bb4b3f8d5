/* SPDX-License-Identifier: Apache-2.0 */
/* subreaper.h - ends the processes that workers started and left behind, in any session. */
#ifndef LAUNCHER_WORKERS_SUBREAPER_H
#define LAUNCHER_WORKERS_SUBREAPER_H

#include <sys/types.h>

struct subreaper {
    int has_foreign_children; /* some children may not belong to the job */
};

/* Makes ctrun the parent of each descendant whose parent ends from now on. */
void subreaper_start(struct subreaper *subreaper);

/* Reaps dead children, except those for which is_known() is not 0. */
void subreaper_reap(int (*is_known)(const void *arg, pid_t pid), const void *arg);

/* Kills all children except the guard, and their descendants.  Called at the end of a round, when
 * no worker is left.  If there may be foreign children, kills only those with this generation in
 * their environment.  Returns how many do not die. */
int subreaper_kill(const struct subreaper *subreaper, pid_t guard, const char *generation);

#endif
