/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - the CPU limit of control groups. */
#ifndef RUNTIME_UTIL_CGROUP_H
#define RUNTIME_UTIL_CGROUP_H

/* The limit of this process's control groups in thousandths of a CPU; 0: none.  root: "" for this
 * machine. */
long long cgroup_milli_cpus(const char *root);
/* The same in CPUs, rounded up. */
int cgroup_cpus(const char *root);

#endif
