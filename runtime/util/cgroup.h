/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_UTIL_CGROUP_H
#define RUNTIME_UTIL_CGROUP_H

/* How much CPU time this process may use at most, by the control groups that it is in, in
 * thousandths of a CPU; 0: there is no limit.  root: "" for this machine. */
long long cgroup_milli_cpus(const char *root);
/* The same in CPUs, a part of one counted as one. */
int cgroup_cpus(const char *root);

#endif
