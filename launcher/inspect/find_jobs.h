/* SPDX-License-Identifier: Apache-2.0 */
/* find_jobs.h - the jobs of this host: those of our user, or of all users for root. */
#ifndef LAUNCHER_INSPECT_FIND_JOBS_H
#define LAUNCHER_INSPECT_FIND_JOBS_H

#include "launcher/inspect/snapshot.h"

struct job_list {
    int count;
    struct job_snapshot *job; /* [count], the oldest job first */
};

/* 0; -1 and errno: out of memory.  The caller owes job_list_free() in both cases. */
int job_list_find(struct job_list *jobs);
void job_list_free(struct job_list *jobs);

/* Below: for tests. */

/* The environment of a process -> a key of its job, the same for all its ranks. */
void job_key(const char *environment, size_t size, pid_t parent, char *key, size_t room);

/* Merges jobs that are one: ranks without ctrun by their key, ranks with pages of their own into
 * the job of their ctrun. */
void job_list_merge(struct job_list *jobs);

#endif
