/* SPDX-License-Identifier: Apache-2.0 */
/* wait_graph.h - the calls that ranks are in, and whom each of them needs. */
#ifndef LAUNCHER_INSPECT_WAIT_GRAPH_H
#define LAUNCHER_INSPECT_WAIT_GRAPH_H

#include "launcher/inspect/groups.h"
#include "launcher/inspect/sentences.h"

struct waiting {
    const struct group_view *view;
    const struct member *member;
    int explained; /* a sentence says it */
};

struct waits {
    const struct groups *groups;
    struct waiting *wait; /* [count], those of a group together, in the order of its members */
    int count;
};

/* Those that have lasted for least_ns.  0; -1: out of memory.  waits_close() is owed. */
int waits_open(struct waits *waits, const struct groups *groups, uint64_t least_ns);
void waits_close(struct waits *waits);

static inline const struct call_snapshot *wait_call(const struct waiting *wait)
{
    return &wait->member->line->now;
}

static inline int wait_is_message(const struct waiting *wait)
{
    return wait_call(wait)->seq == 0;
}

/* Both are in the same call of the same group. */
int wait_is_with(const struct waiting *a, const struct waiting *b);

/* The member that a message needs; NULL: any, or one that was not found. */
const struct member *wait_peer(const struct waiting *wait);

/* That member is in the message too: sends what is received here, or receives what is sent. */
int wait_peer_is_in(const struct waiting *wait);

/* Can it go on only when rank job->rank[at] has come? */
int wait_needs(const struct waiting *wait, int at);

/* Finds ranks that wait for each other in a circle and says so, once: 1; then those waits, and who
 * waits behind them, are explained.  0: there is none (any more).  -1: out of memory. */
int waits_deadlock(struct waits *waits, struct sentence *sentence);

#endif
