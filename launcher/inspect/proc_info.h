/* SPDX-License-Identifier: Apache-2.0 */
/* proc_info.h - reads what /proc shows about the processes of ranks. */
#ifndef LAUNCHER_INSPECT_PROC_INFO_H
#define LAUNCHER_INSPECT_PROC_INFO_H

#include "launcher/inspect/snapshot.h"

/* Reads the state of a process.  ->state is 0 if no process has that pid. */
struct process_snapshot process_read(pid_t pid);

/* Fills in the processes and commands of all ranks of the job, and the state of its ctrun. */
void process_read_all(struct job_snapshot *job);

/* Reads a file of /proc/<pid>/ as text, which is "" if the file can't be read.  Returns the length
 * of the text. */
size_t process_file(pid_t pid, const char *name, char *text, size_t size);

/* Opens descriptor fd of a process for reading, if it is a memfd of that name.  Returns the
 * descriptor, or -1. */
int process_memfd(pid_t pid, int fd, const char *name);

/* What processes have done since they were started. */
struct process_work {
    uint64_t cpu_ms;  /* processor time */
    uint64_t written; /* bytes written to files, pipes and sockets */
};
/* Adds the work of all descendants of a process.  Returns 0, or -1 if the kernel does not list the
 * children of processes (CONFIG_PROC_CHILDREN), or if the process is gone. */
int process_work_below(pid_t pid, struct process_work *sum);

/* Calls visit for each process until visit returns a value other than 0.  Returns the value of the
 * last call, or 0 if there was no call. */
int process_each(int (*visit)(void *arg, pid_t pid, uid_t uid), void *arg);

#endif
