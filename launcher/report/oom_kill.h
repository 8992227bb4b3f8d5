/* SPDX-License-Identifier: Apache-2.0 */
/* oom_kill.h - finds out whether the kernel killed a worker because memory ran out.  The memory
 * cgroup of the worker counts such kills. */
#ifndef LAUNCHER_REPORT_OOM_KILL_H
#define LAUNCHER_REPORT_OOM_KILL_H

#include <stddef.h>

struct oom_watch {
    char root[128];  /* folder at which the cgroup hierarchy is mounted */
    char group[512]; /* cgroup in which workers start, below root, such as "/a/b" */
    int v1;
    long kills; /* value of the cgroup's kill counter at the last reset; -1 if it can't be read */
};

/* Finds ctrun's cgroup, in which workers start, and reads its kill counter.  `mounts` is
 * "/sys/fs/cgroup" and `self` is "/proc/self/cgroup", except in tests. */
void oom_watch_open(struct oom_watch *oom, const char *mounts, const char *self);

/* Reads the kill counter again, so that earlier kills no longer count. */
void oom_watch_reset(struct oom_watch *oom);

/* Returns 1 if the kernel has killed a process of the cgroup since the last reset, else 0.  Writes
 * the reason into `why`, such as "cgroup limit 32.0 GiB, peak 31.9 GiB". */
int oom_killed(const struct oom_watch *oom, char *why, size_t size);

#endif
