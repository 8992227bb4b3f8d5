/* SPDX-License-Identifier: Apache-2.0 */
/* groups.h - the groups of a job, put together from the entries of its ranks, and which of their
 * members wait for each other. */
#ifndef LAUNCHER_INSPECT_GROUPS_H
#define LAUNCHER_INSPECT_GROUPS_H

#include "launcher/inspect/snapshot.h"

struct group_member {
    const struct group_view *view;
    int at;                            /* index in job->rank */
    const struct group_snapshot *line; /* its entry */
    int left;                          /* it left the group; the entry has not been used again */
    int waits;                         /* in line->now, for least_ns or longer */
    int deadlock;                      /* number of its deadlock, from 1; 0: not in a deadlock */
    const struct group_member *needed; /* the member of the same deadlock that it waits for */
    int in_circle; /* 1: it is part of the circle of waits; 0: it waits for a part of it */
};

struct group_view {
    uint64_t id;
    const char *name;
    int size;
    struct group_member *member; /* [count], those with an entry; part of groups->members */
    int count, in;     /* the first `in` have not left; each kind is in the order of ranks */
    int is_world;      /* its ranks are the ranks of the job */
    int by_group_rank; /* members share a rank of the job (threads): their ranks in the group
                       name them */
};

struct groups {
    const struct job_snapshot *job;
    struct group_view *view; /* [count] */
    int count;
    struct group_member *members; /* [members_used] */
    int members_used;
    int deadlocks;
};

/* 0; -1: out of memory.  The caller owes groups_close() in both cases. */
int groups_open(struct groups *groups, const struct job_snapshot *job, uint64_t least_ns);
void groups_close(struct groups *groups);

/* The member that is rank `rank` of the group; NULL: it has no entry. */
const struct group_member *member_numbered(const struct group_view *view, int rank);

/* The number by which verdicts name the member: its rank in the job. */
int member_name(const struct groups *groups, const struct group_member *member);

/* The same for rank `rank` of the group of that entry; `rank` itself if it has no entry here. */
int groups_name(const struct groups *groups, const struct group_snapshot *line, int rank);

/* The member is in collective call number seq, maybe on a thread of its own. */
static inline int member_is_in(const struct group_member *member, uint64_t seq)
{
    const struct group_snapshot *line = member->line;

    return !member->left && line->begun == seq && line->done < seq
           && (line->now.seq != seq || line->now.phase == CONTROL_IN);
}

/* What the member recorded for call number seq; NULL: it left, or the ring has dropped the call. */
const struct call_snapshot *member_call(const struct groups *groups,
                                        const struct group_member *member, uint64_t seq);

static inline int member_in_message(const struct group_member *member)
{
    return member->waits && member->line->now.seq == 0;
}

/* The call of the peer in the member's message, if the peer is in it, too; else NULL. */
const struct call_snapshot *member_other_end(const struct group_member *member);

/* The member's call can't end before rank job->rank[at] makes it, too. */
int member_needs(const struct group_member *member, int at);

#endif
