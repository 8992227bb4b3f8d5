/* SPDX-License-Identifier: Apache-2.0 */
/* find_jobs.h - finds the jobs of this host: the user's own jobs, and for root those of all users.
 */
#ifndef LAUNCHER_INSPECT_FIND_JOBS_H
#define LAUNCHER_INSPECT_FIND_JOBS_H

#include "launcher/inspect/snapshot.h"

struct job_list {
    int count;
    struct job_snapshot *job; /* [count], the oldest job first */
};

/* 0; -1 and errno: out of memory.  In both cases the caller must call job_list_free(). */
int job_list_find(struct job_list *jobs);
void job_list_free(struct job_list *jobs);

/* Below: for tests. */

/* Makes the key of a job from the environment of a process.  All ranks of a job have the same key.
 */
void job_key(const char *environment, size_t size, pid_t parent, char *key, size_t room);

/* Merges entries that are one job: ranks without ctrun that have the same key, and ranks that have
 * their own pages with the job of their ctrun. */
void job_list_merge(struct job_list *jobs);

#endif
