/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_CGROUP_H
#define LAUNCHER_CGROUP_H

/* How many CPUs' time this process may use at most, by the control groups that it
 * is in, rounded up; 0: there is no limit.  root: "" for this machine. */
int cgroup_cpus(const char *root);

#endif
