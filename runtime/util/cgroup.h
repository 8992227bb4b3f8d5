/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - the limits of control groups. */
#ifndef RUNTIME_UTIL_CGROUP_H
#define RUNTIME_UTIL_CGROUP_H

/* The limit of this process's control groups in thousandths of a CPU; 0: none.  root: "" for this
 * machine. */
long long cgroup_milli_cpus(const char *root);
/* The same in CPUs, rounded up. */
int cgroup_cpus(const char *root);

/* How many processes and threads, and how many bytes of memory, they may get beside what they have,
 * at least 1; 0: no limit.  Of version 2 only. */
long long cgroup_pids_left(const char *root);
long long cgroup_memory_left(const char *root);

#endif
