/* SPDX-License-Identifier: Apache-2.0 */
/* blocker.h - finds what a rank does while other ranks wait for it. */
#ifndef LAUNCHER_INSPECT_BLOCKER_H
#define LAUNCHER_INSPECT_BLOCKER_H

#include "launcher/inspect/snapshot.h"

enum activity_kind {
    RANK_IN_CALL,   /* the rank waits in the call of the verdict, so it blocks no other rank */
    RANK_IN_CIRCLE, /* the rank waits in a circle of ranks that wait for each other */
    /* the rank made a different call under the same number, and has returned from it */
    RANK_RETURNED,
    RANK_ENDED,         /* ctrun reaped the rank, or lost the rank's host */
    RANK_DIED,          /* the rank's process is gone, but no ctrun has reaped it */
    RANK_STOPPED,       /* a signal has stopped the rank */
    RANK_TRACED,        /* a debugger has stopped the rank */
    RANK_SILENT,        /* the rank's observer does not answer */
    RANK_LEFT,          /* the rank left the group */
    RANK_IN_OTHER_CALL, /* the rank is in another call, of this group or of another group */
    RANK_AT_STORE, /* the rank waits for the store, or for what it named with control_waiting() */
    RANK_FAILED,   /* the rank's last call in the group failed */
    RANK_NOT_STARTED,  /* ctrun, which starts ranks one by one, has not started this rank yet */
    RANK_NO_INIT,      /* the rank has not called ct_init_process_group() */
    RANK_INIT_FAILED,  /* ct_init_process_group() failed, but the program continues */
    RANK_IN_INIT,      /* the rank is in ct_init_process_group() */
    RANK_NOT_IN_GROUP, /* the rank has other groups, but not this one */
    RANK_IDLE,         /* the rank is in no call, but has made calls */
    RANK_NO_CALL,      /* the rank is in no call, and has made no call yet */
    RANK_NOT_HERE,     /* no control page of this host has an entry for the rank */
    RANK_BLOCKED,      /* the rank waits for another rank that waits in the same verdict */
    RANK_QUIET,        /* the rank's processes have not used a processor or written output */
    ALL_RANKS_STOPPED,
    CTRUN_STOPPED,
    ACTIVITIES
};

/* value of activity.peer if the text omits the peer, since the verdict's circle already names it */
#define PEER_UNSAID (-2)

struct activity {
    enum activity_kind kind;
    uint64_t after; /* number of the rank's last call in the group; 0 if the rank made no call */
    int in_call;    /* 1 if the rank is in the call, but is stopped or gone */
    int waits;      /* 1 if the rank has waited in the call of the verdict for waited_ns */
    uint64_t waited_ns;
    const struct group_snapshot *line; /* the group entry that contains *call */
    /* the call that the rank is in, or that failed; NULL if there is no such call */
    const struct call_snapshot *call;
    int peer; /* rank of the call's root or of a message's peer; -1 for any rank; or PEER_UNSAID */
    /* what the rank waits for, "key x of the store" or "rank 3"; "" if not known */
    char waits_for[96];
    /* the death of a RANK_ENDED rank; NULL for the other kinds */
    const struct death_snapshot *death;
};

/* True if signals have stopped more than one rank, and all other ranks are gone.  Then no rank
 * waits because another rank is stopped. */
int all_stopped(const struct job_snapshot *job);

/* True if the rank can't continue by itself. */
static inline int activity_is_held(const struct activity *does)
{
    return does->kind == RANK_STOPPED || does->kind == RANK_TRACED || does->kind == RANK_DIED
           || does->kind == RANK_ENDED;
}

/* Returns what job->rank[at] does while others wait for it in call number seq of a group.  seq is 0
 * if they wait in a message.  `line` is the rank's entry for the group, or NULL if the rank has no
 * entry.  `left` is 1 if the rank has left the group. */
struct activity activity_of(const struct job_snapshot *job, int at,
                            const struct group_snapshot *line, int left, uint64_t seq);

/* Returns an activity for a wait that the rank announced with control_waiting(). */
struct activity activity_noted(enum activity_kind kind, const struct rank_snapshot *rank,
                               uint64_t waited_ns);

/* Returns the place of the call, such as "train.c:88 (step)"; "" if the place is not known. */
static inline const char *activity_where(const struct activity *does)
{
    return does->line && does->call == &does->line->now ? does->line->where : "";
}

#endif
