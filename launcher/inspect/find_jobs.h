/* SPDX-License-Identifier: Apache-2.0 */
/* find_jobs.h - the jobs of this host: ours, or everybody's if we are root. */
#ifndef LAUNCHER_INSPECT_FIND_JOBS_H
#define LAUNCHER_INSPECT_FIND_JOBS_H

#include "launcher/inspect/snapshot.h"

struct job_list {
    int count;
    struct job_snapshot *job; /* [count], the oldest first */
};

/* 0; -1 and errno: out of memory.  job_list_free() is owed in both cases. */
int job_list_find(struct job_list *jobs);
void job_list_free(struct job_list *jobs);

/* Below: for tests. */

/* The variables of a process -> what its job is called, the same for all ranks of it. */
void job_key(const char *environment, size_t size, pid_t parent, char *key, size_t room);

/* Puts pages of ranks without ctrun that have the same key together. */
void job_list_merge(struct job_list *jobs);

#endif
