/* SPDX-License-Identifier: Apache-2.0 */
/* groups.h - puts the groups of a job together from the entries of its ranks, and finds which
 * members wait for each other. */
#ifndef LAUNCHER_INSPECT_GROUPS_H
#define LAUNCHER_INSPECT_GROUPS_H

#include "launcher/inspect/snapshot.h"

struct group_member {
    const struct group_view *view;
    int at;                            /* index in job->rank */
    const struct group_snapshot *line; /* its entry */
    int left;                          /* it left the group, and its entry was not used again */
    int waits;                         /* in line->now, for least_ns or longer */
    int deadlock;                      /* number of its deadlock, from 1; 0: not in a deadlock */
    const struct group_member *needed; /* the member of the same deadlock for which it waits */
    int in_circle; /* 1: it is part of the circle of waits; 0: it waits for a part of it */
};

struct group_view {
    uint64_t id;
    const char *name;
    int size;
    struct group_member *member; /* [count], the members with an entry; part of groups->members */
    int count, in;     /* the first `in` have not left; both parts are in the order of ranks */
    int is_world;      /* its ranks are all ranks of the job */
    int by_group_rank; /* threads: members share a rank of the job; group ranks name them */
};

struct groups {
    const struct job_snapshot *job;
    struct group_view *view; /* [count] */
    int count;
    struct group_member *members; /* [members_used] */
    int members_used;
    int deadlocks;
};

/* 0; -1: out of memory.  In both cases the caller must call groups_close(). */
int groups_open(struct groups *groups, const struct job_snapshot *job, uint64_t least_ns);
void groups_close(struct groups *groups);

/* Finds the member that is rank `rank` of the group; NULL: it has no entry. */
const struct group_member *member_numbered(const struct group_view *view, int rank);

/* Gives the number by which verdicts name the member: usually its rank in the job. */
int member_name(const struct groups *groups, const struct group_member *member);

/* Gives the number by which verdicts name rank `rank` of the group of that entry; `rank` itself if
 * it has no entry here. */
int groups_name(const struct groups *groups, const struct group_snapshot *line, int rank);

/* Says whether the member is in collective call number seq, perhaps on another thread. */
static inline int member_is_in(const struct group_member *member, uint64_t seq)
{
    const struct group_snapshot *line = member->line;

    return !member->left && line->begun == seq && line->done < seq
           && (line->now.seq != seq || line->now.phase == CONTROL_IN);
}

/* Gives the member's record of call number seq; NULL: it left, or the ring has dropped the call. */
const struct call_snapshot *member_call(const struct groups *groups,
                                        const struct group_member *member, uint64_t seq);

static inline int member_in_message(const struct group_member *member)
{
    return member->waits && member->line->now.seq == 0;
}

/* Gives the peer's call in the member's message; NULL: the peer is not in it. */
const struct call_snapshot *member_other_end(const struct group_member *member);

/* Says whether the member's call can't end before job->rank[at] makes its call. */
int member_needs(const struct group_member *member, int at);

#endif
