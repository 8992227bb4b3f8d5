/* SPDX-License-Identifier: Apache-2.0 */
/* find_jobs.h - the jobs of this host: ours, or everybody's if we are root. */
#ifndef LAUNCHER_INSPECT_FIND_JOBS_H
#define LAUNCHER_INSPECT_FIND_JOBS_H

#include "launcher/inspect/snapshot.h"

struct look_jobs {
    int count;
    struct look_job *job; /* [count], the oldest first */
};

/* 0; -1 and errno: out of memory.  look_jobs_free() is owed in both cases. */
int look_jobs_find(struct look_jobs *jobs);
void look_jobs_free(struct look_jobs *jobs);

/* Below: for tests. */

/* The variables of a process -> what its job is called, the same for all ranks of it. */
void look_key(const char *environment, size_t size, pid_t parent, char *key, size_t room);

/* Puts pages of ranks without ctrun that have the same key together. */
void look_jobs_merge(struct look_jobs *jobs);

#endif
