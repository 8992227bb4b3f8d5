/* SPDX-License-Identifier: Apache-2.0 */
/* find_jobs.h - finds the jobs on this host.  A user finds only the user's own jobs, and root finds
 * the jobs of all users. */
#ifndef LAUNCHER_INSPECT_FIND_JOBS_H
#define LAUNCHER_INSPECT_FIND_JOBS_H

#include "launcher/inspect/snapshot.h"

struct job_list {
    int count;
    struct job_snapshot *job; /* [count], the oldest job first */
};

/* Finds all jobs.  Returns 0, or -1 with errno set if memory is exhausted.  In both cases the
 * caller must call job_list_free(). */
int job_list_find(struct job_list *jobs);
void job_list_free(struct job_list *jobs);

/* The functions below are public for tests only. */

/* Writes the key of a job, derived from the environment of one of its processes.  All ranks of a
 * job have the same key. */
void job_key(const char *environment, size_t size, pid_t parent, char *key, size_t room);

/* Merges the entries of each job.  Ranks without ctrun that have the same key become one job.  A
 * rank with its own page joins the job of its ctrun. */
void job_list_merge(struct job_list *jobs);

#endif
