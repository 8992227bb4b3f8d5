/* SPDX-License-Identifier: Apache-2.0 */
/* groups.h - assembles the groups of a job from the entries of its ranks, and finds which members
 * wait for each other. */
#ifndef LAUNCHER_INSPECT_GROUPS_H
#define LAUNCHER_INSPECT_GROUPS_H

#include "launcher/inspect/snapshot.h"

struct group_member {
    const struct group_view *view;
    int at;                            /* index in job->rank */
    const struct group_snapshot *line; /* the member's entry for the group */
    int left;     /* 1 if the member left the group, and no other group uses the entry yet */
    int waits;    /* 1 if the member has waited in line->now for least_ns or longer */
    int deadlock; /* number of the member's deadlock, from 1; 0 if it is not in a deadlock */
    /* the member of the same deadlock for which this member waits; NULL if in no deadlock */
    const struct group_member *needed;
    /* 1 if the member is part of the circle of waits; 0 if it waits for a member of the circle */
    int in_circle;
};

struct group_view {
    uint64_t id;
    const char *name;
    int size;
    struct group_member *member; /* [count] members with an entry; part of groups->members */
    /* number of members; the first `in` are in the group, the rest have left; both parts are sorted
     * by rank */
    int count, in;
    int is_world; /* 1 if the group has all ranks of the job in the same order */
    /* 1 if members are threads with the same rank in the job, so group ranks name them */
    int by_group_rank;
};

struct groups {
    const struct job_snapshot *job;
    struct group_view *view; /* [count] */
    int count;
    struct group_member *members; /* [members_used] */
    int members_used;
    int deadlocks;
};

/* Finds the groups and the deadlocks of waits that last least_ns or longer.  Returns 0, or -1 if
 * memory is exhausted.  In both cases the caller must call groups_close(). */
int groups_open(struct groups *groups, const struct job_snapshot *job, uint64_t least_ns);
void groups_close(struct groups *groups);

/* Finds the member with rank `rank` in the group; NULL if that rank has no entry. */
const struct group_member *member_numbered(const struct group_view *view, int rank);

/* Returns the number by which verdicts name the member, usually its rank in the job. */
int member_name(const struct groups *groups, const struct group_member *member);

/* Returns the number by which verdicts name the member with rank `rank` in the group of entry
 * `line`.  Returns `rank` itself if that member has no entry here. */
int groups_name(const struct groups *groups, const struct group_snapshot *line, int rank);

/* True if the member is in collective call number seq, perhaps on another thread. */
static inline int member_is_in(const struct group_member *member, uint64_t seq)
{
    const struct group_snapshot *line = member->line;

    return !member->left && line->begun == seq && line->done < seq
           && (line->now.seq != seq || line->now.phase == CONTROL_IN);
}

/* Returns the member's record of call number seq; NULL if the member left, or the ring has dropped
 * the call. */
const struct call_snapshot *member_call(const struct groups *groups,
                                        const struct group_member *member, uint64_t seq);

static inline int member_in_message(const struct group_member *member)
{
    return member->waits && member->line->now.seq == 0;
}

/* Returns the peer's call that is the other end of the member's message; NULL if the peer is not in
 * such a call. */
const struct call_snapshot *member_other_end(const struct group_member *member);

/* True if the member's call can't end before job->rank[at] makes its own call. */
int member_needs(const struct group_member *member, int at);

#endif
