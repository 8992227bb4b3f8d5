/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - the limits of this process's control groups (cgroups) on CPU time, processes and
 * memory. */
#ifndef RUNTIME_UTIL_CGROUP_H
#define RUNTIME_UTIL_CGROUP_H

/* Returns the CPU limit of this process's control groups in thousandths of a CPU, or 0 if there is
 * no limit.  `root` is put before /proc and /sys.  Only tests pass a root other than "". */
long long cgroup_milli_cpus(const char *root);
/* Returns the same limit in CPUs, rounded up. */
int cgroup_cpus(const char *root);

/* Return how many more processes and threads, or bytes of memory, this process's control groups may
 * get.  The result is at least 1, or 0 if there is no limit.  Only limits of version 2 are read. */
long long cgroup_pids_left(const char *root);
long long cgroup_memory_left(const char *root);

#endif
