/* SPDX-License-Identifier: Apache-2.0 */
/* blocker.h - finds what a rank does that keeps others waiting. */
#ifndef LAUNCHER_INSPECT_BLOCKER_H
#define LAUNCHER_INSPECT_BLOCKER_H

#include "launcher/inspect/snapshot.h"

enum activity_kind {
    RANK_IN_CALL,       /* it waits in the call of the verdict, so it blocks no rank */
    RANK_IN_CIRCLE,     /* it waits in a circle of ranks that wait for each other */
    RANK_RETURNED,      /* it made another call under this number, and has returned from it */
    RANK_ENDED,         /* ctrun reaped it, or lost its host */
    RANK_DIED,          /* its process is gone, but no ctrun has reaped it */
    RANK_STOPPED,       /* a signal has stopped it */
    RANK_TRACED,        /* a debugger has stopped it */
    RANK_LEFT,          /* it left the group */
    RANK_IN_OTHER_CALL, /* it is in another call, of this group or of another */
    RANK_AT_STORE,      /* it waits for the store, or for what it named by control_waiting() */
    RANK_FAILED,        /* its last call in the group failed */
    RANK_NOT_STARTED,   /* ctrun has not started it yet: ranks are started one by one */
    RANK_NO_INIT,       /* it has not called ct_init_process_group() */
    RANK_INIT_FAILED,   /* ct_init_process_group() failed, and the program goes on */
    RANK_IN_INIT,       /* it is in ct_init_process_group() */
    RANK_NOT_IN_GROUP,  /* it has other groups, but not this one */
    RANK_IDLE,          /* it is in no call */
    RANK_NO_CALL,       /* it is in no call, and has made none */
    RANK_NOT_HERE,      /* no process of this host has an entry for it */
    RANK_BLOCKED,       /* it waits for a rank that waits in the same verdict */
    ALL_RANKS_STOPPED,
    CTRUN_STOPPED,
    ACTIVITIES
};

#define PEER_UNSAID (-2) /* the circle of the verdict already names the peer */

struct activity {
    enum activity_kind kind;
    uint64_t after; /* its last call in the group; 0: it made none */
    int in_call;    /* it is in the call, but can't go on */
    int waits;      /* it has waited in the call of the verdict for waited_ns */
    uint64_t waited_ns;
    const struct group_snapshot *line; /* the entry that ->call is from */
    const struct call_snapshot *call;  /* the call that it is in, or that failed; NULL: none */
    int peer;           /* the call's root, or the peer of a message; -1: any; PEER_UNSAID */
    char waits_for[96]; /* "key x of the store", "rank 3"; "": not known */
    const struct death_snapshot *death; /* RANK_ENDED */
};

/* Says whether all living ranks are stopped.  Then no rank waits because another one is stopped. */
int all_stopped(const struct job_snapshot *job);

/* Says whether the rank can't go on by itself. */
static inline int activity_is_held(const struct activity *does)
{
    return does->kind == RANK_STOPPED || does->kind == RANK_TRACED || does->kind == RANK_DIED
           || does->kind == RANK_ENDED;
}

/* Finds what job->rank[at] does while others wait for it in call number seq of a group (0: in a
 * message).  line: the rank's entry for the group; NULL: it has none. */
struct activity activity_of(const struct job_snapshot *job, int at,
                            const struct group_snapshot *line, int left, uint64_t seq);

/* Describes a wait that the rank announced by control_waiting(). */
struct activity activity_noted(enum activity_kind kind, const struct rank_snapshot *rank,
                               uint64_t waited_ns);

/* Gives "train.c:88 (step)"; "" if the place is not known. */
static inline const char *activity_where(const struct activity *does)
{
    return does->line && does->call == &does->line->now ? does->line->where : "";
}

#endif
