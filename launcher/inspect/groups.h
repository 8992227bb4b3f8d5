/* SPDX-License-Identifier: Apache-2.0 */
/* groups.h - the groups of a job, put together from the lines of its ranks. */
#ifndef LAUNCHER_INSPECT_GROUPS_H
#define LAUNCHER_INSPECT_GROUPS_H

#include "launcher/inspect/snapshot.h"

struct member {
    int at; /* whose: index in job->rank */
    const struct group_snapshot *line;
    int left; /* the line is what is left of it */
};

struct group_view {
    uint64_t id;
    const char *name;
    int size;
    struct member *member; /* [count], those that were found; part of groups->members */
    int count, in;         /* the first `in` have not left; each kind is in the order of ranks */
    int is_world;          /* ranks in it are the ranks of the job */
    int by_group_rank; /* several members are one rank of the job (threads): rank N is of the group
                        */
};

struct groups {
    const struct job_snapshot *job;
    struct group_view *view; /* [count] */
    int count;
    struct member *members;
    int members_used;
};

/* 0; -1: out of memory.  groups_close() is owed in both cases. */
int groups_open(struct groups *groups, const struct job_snapshot *job);
void groups_close(struct groups *groups);

/* What the member is called in sentences. */
int member_name(const struct groups *groups, const struct group_view *view,
                const struct member *member);

/* Is it in its collective call number seq, maybe on a thread of its own? */
static inline int member_is_in(const struct member *member, uint64_t seq)
{
    const struct group_snapshot *line = member->line;

    return !member->left && line->begun == seq && line->done < seq
           && (line->now.seq != seq || line->now.phase == CONTROL_IN);
}

/* The line of rank job->rank[at] in the group; NULL: it has none. */
const struct member *member_of(const struct group_view *view, int at);

/* The member that is number `rank` in the group; NULL: it was not found. */
const struct member *member_numbered(const struct group_view *view, int rank);

/* The member's call number seq as it noted it; NULL: that is forgotten. */
const struct call_snapshot *member_call(const struct groups *groups, const struct member *member,
                                        uint64_t seq);

#endif
