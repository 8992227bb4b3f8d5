/* SPDX-License-Identifier: Apache-2.0 */
/* proc_info.h - what the kernel says of the processes behind the ranks. */
#ifndef LAUNCHER_INSPECT_PROC_INFO_H
#define LAUNCHER_INSPECT_PROC_INFO_H

#include "launcher/inspect/snapshot.h"

/* Of one process; ->state is 0 when there is none. */
struct process_snapshot process_read(pid_t pid);

/* Fills in the processes and commands of all ranks of the job. */
void process_read_all(struct job_snapshot *job);

/* A file of /proc/<pid>/ as text; "" if it can't be read.  How many bytes. */
size_t process_file(pid_t pid, const char *name, char *text, size_t size);

/* Every process, until visit says 1: pid and its uid.  The same is returned, else 0. */
int process_each(int (*visit)(void *arg, pid_t pid, uid_t uid), void *arg);

#endif
