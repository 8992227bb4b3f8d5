/* SPDX-License-Identifier: Apache-2.0 */
/* subreaper.h - ends the processes that workers started and left behind, in whatever session. */
#ifndef LAUNCHER_WORKERS_SUBREAPER_H
#define LAUNCHER_WORKERS_SUBREAPER_H

#include <sys/types.h>

struct subreaper {
    int has_foreign_children; /* some may be not the job's */
};

/* From here on a descendant whose parent ends becomes ctrun's child. */
void subreaper_start(struct subreaper *subreaper);

/* Reaps children that have died, but for those that is_known() knows. */
void subreaper_reap(int (*is_known)(const void *arg, pid_t pid), const void *arg);

/* At the end of a round, with no worker left: kills all children but the guard, and their
 * descendants; where there are foreign children only those with this generation in their
 * environment. Returns how many do not die. */
int subreaper_kill(const struct subreaper *subreaper, pid_t guard, const char *generation);

#endif
