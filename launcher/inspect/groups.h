/* SPDX-License-Identifier: Apache-2.0 */
/* groups.h - the groups of a job, put together from the lines of its ranks, and which of their
 * members wait for each other. */
#ifndef LAUNCHER_INSPECT_GROUPS_H
#define LAUNCHER_INSPECT_GROUPS_H

#include "launcher/inspect/snapshot.h"

struct member {
    const struct group_view *view;
    int at; /* index in job->rank */
    const struct group_snapshot *line;
    int left;                    /* the line is what is left of it */
    int waits;                   /* in line->now, for least_ns and longer */
    const struct member *needed; /* in a deadlock: one that it needs and that is in it, too */
};

struct group_view {
    uint64_t id;
    const char *name;
    int size;
    struct member *member; /* [count], those with a line; part of groups->members */
    int count, in;         /* the first `in` have not left; each kind is in the order of ranks */
    int is_world;          /* ranks in it are the ranks of the job */
    int by_group_rank;     /* members share a rank of the job (threads): they are named by theirs */
};

struct groups {
    const struct job_snapshot *job;
    struct group_view *view; /* [count] */
    int count;
    struct member *members;
    int members_used;
};

/* 0; -1: out of memory.  The caller owes groups_close() in both cases. */
int groups_open(struct groups *groups, const struct job_snapshot *job, uint64_t least_ns);
void groups_close(struct groups *groups);

/* The member that is number `rank` in the group; NULL: it has no line. */
const struct member *member_numbered(const struct group_view *view, int rank);

/* The number by which verdicts name the member: its rank in the job. */
int member_name(const struct groups *groups, const struct member *member);

/* The same of rank `rank` in the group of that line; `rank` itself if it has no line here. */
int groups_name(const struct groups *groups, const struct group_snapshot *line, int rank);

/* It is in its collective call number seq, maybe on a thread of its own. */
static inline int member_is_in(const struct member *member, uint64_t seq)
{
    const struct group_snapshot *line = member->line;

    return !member->left && line->begun == seq && line->done < seq
           && (line->now.seq != seq || line->now.phase == CONTROL_IN);
}

/* The member's call number seq as it noted it; NULL: it has left, or that is forgotten. */
const struct call_snapshot *member_call(const struct groups *groups, const struct member *member,
                                        uint64_t seq);

static inline int member_in_message(const struct member *member)
{
    return member->waits && member->line->now.seq == 0;
}

/* The other end of the message that the member waits in, if it is there, too; else NULL. */
const struct call_snapshot *member_other_end(const struct member *member);

/* What the member waits in can't end before rank job->rank[at] makes that call, too. */
int member_needs(const struct member *member, int at);

#endif
