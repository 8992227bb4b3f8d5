/* SPDX-License-Identifier: Apache-2.0 */
/* subreaper.h - what workers started and left behind, in whatever session it is by now. */
#ifndef LAUNCHER_WORKERS_SUBREAPER_H
#define LAUNCHER_WORKERS_SUBREAPER_H

#include <sys/types.h>

struct subreaper {
    int strangers; /* others' children may be given to us too */
};

/* From here on who loses his parent among our descendants becomes our child. */
void subreaper_start(struct subreaper *subreaper);

/* Children that died and are nobody's whom is_known() knows: nobody else takes their exit codes. */
void subreaper_reap(int (*is_known)(const void *arg, pid_t pid), const void *arg);

/* At the end of a round, with no worker left: kills the children that we have but for the
 * guard, and theirs.  Where there are strangers, only those that were given this generation.
 * Returns how many do not die. */
int subreaper_kill(const struct subreaper *subreaper, pid_t guard, const char *generation);

#endif
