/* SPDX-License-Identifier: Apache-2.0 */
/* stop_vote.h - the nodes agree on the step at which all ranks stop (runtime/monitor/stop_step.h).
 *
 * One of them counts: it has all nodes close the words of their ranks, hears how far each came,
 * and tells the step behind the furthest.  Meanwhile ranks wait, so a node that does not
 * answer within a second is left out, as if its ranks were dead. */
#ifndef LAUNCHER_NODES_STOP_VOTE_H
#define LAUNCHER_NODES_STOP_VOTE_H

#include <event2/event_struct.h>

#include "launcher/nodes/node_messages.h"

struct vote {
    enum { VOTE_NOT_ASKED, VOTE_CLOSING, VOTE_DECIDED } state;
    char generation[NODE_GENERATION]; /* of the round that it is about */
    int missing;                      /* answers */
    uint64_t last;                    /* the furthest so far */
    int for_good;                     /* the job does not begin again */
    struct event patience;
    void (*decided)(void *arg); /* more than once, if it becomes for good later */
    void *arg;
};

void vote_setup(struct vote *vote, struct event_base *base, void (*decided)(void *arg), void *arg);
void vote_reset(struct vote *vote); /* a new round; also to end with */

/* 1: it begins; then comes vote_expect() for each node that was asked to close, and vote_go().
 * 0: it has begun before. */
int vote_begin(struct vote *vote, const struct node_wish *wish, uint64_t last_here);
void vote_expect(struct vote *vote);
void vote_go(struct vote *vote);
void vote_take(struct vote *vote, const struct node_steps *closed); /* or was lost: with 0 */

/* The decision, to be told. */
struct node_steps vote_result(const struct vote *vote);

#endif
