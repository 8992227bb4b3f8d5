/* SPDX-License-Identifier: Apache-2.0 */
/* oom_kill.h - says whether the kernel killed a worker because memory ran out: the memory cgroup
 * counts such kills. */
#ifndef LAUNCHER_REPORT_OOM_KILL_H
#define LAUNCHER_REPORT_OOM_KILL_H

#include <stddef.h>

struct oom_watch {
    char root[128];  /* where the hierarchy is mounted */
    char group[512]; /* the cgroup in which workers start, below root: "/a/b" */
    int v1;
    long kills; /* until now; -1: unknown */
};

/* Finds our cgroup, in which workers start.  mounts: "/sys/fs/cgroup"; self: "/proc/self/cgroup";
 * tests pass other paths. */
void oom_watch_open(struct oom_watch *oom, const char *mounts, const char *self);

/* Starts to count anew: earlier kills do not count any more. */
void oom_watch_reset(struct oom_watch *oom);

/* 1: the kernel has killed since then; why: "cgroup limit 32.0 GiB, peak 31.9 GiB" */
int oom_killed(const struct oom_watch *oom, char *why, size_t size);

#endif
