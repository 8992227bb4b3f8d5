/* SPDX-License-Identifier: Apache-2.0 */
/* stop_vote.c - the furthest step of all ranks, and the one behind it. */
#include "launcher/nodes/stop_vote.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/log.h"

#define PATIENCE_SECONDS 1

static void decide(struct vote *vote)
{
    event_del(&vote->patience);
    vote->state = VOTE_DECIDED;
    vote->decided(vote->arg);
}

static void patience_over(evutil_socket_t fd, short what, void *arg)
{
    struct vote *vote = arg;

    (void)fd;
    (void)what;
    log_line(LOG_WARN,
             "%d %s not say within %d s how far the ranks there came: the others stop without them",
             vote->missing, vote->missing == 1 ? "node does" : "nodes do", PATIENCE_SECONDS);
    decide(vote);
}

void vote_setup(struct vote *vote, struct event_base *base, void (*decided)(void *arg), void *arg)
{
    *vote = (struct vote){ .decided = decided, .arg = arg };
    evtimer_assign(&vote->patience, base, patience_over, vote);
}

void vote_reset(struct vote *vote)
{
    event_del(&vote->patience);
    vote->state = VOTE_NOT_ASKED;
    vote->generation[0] = 0;
}

int vote_begin(struct vote *vote, const struct node_wish *wish, uint64_t last_here)
{
    if (vote->state != VOTE_NOT_ASKED && !strcmp(vote->generation, wish->generation)) {
        const int more = wish->for_good && !vote->for_good;

        vote->for_good |= wish->for_good;
        if (more && vote->state == VOTE_DECIDED)
            vote->decided(vote->arg);
        return 0;
    }
    vote_reset(vote);
    vote->state = VOTE_CLOSING;
    snprintf(vote->generation, sizeof vote->generation, "%s", wish->generation);
    vote->last = last_here;
    vote->for_good = wish->for_good;
    vote->missing = 0;
    return 1;
}

void vote_expect(struct vote *vote)
{
    vote->missing++;
}

void vote_go(struct vote *vote)
{
    const struct timeval patience = { PATIENCE_SECONDS, 0 };

    if (vote->missing == 0)
        decide(vote);
    else
        event_add(&vote->patience, &patience);
}

void vote_take(struct vote *vote, const struct node_steps *closed)
{
    if (vote->state != VOTE_CLOSING || strcmp(vote->generation, closed->generation) != 0)
        return;
    if (closed->step > vote->last)
        vote->last = closed->step;
    if (--vote->missing == 0)
        decide(vote);
}

struct node_steps vote_result(const struct vote *vote)
{
    struct node_steps result = { .step = vote->last + 1, .for_good = vote->for_good };

    memcpy(result.generation, vote->generation, sizeof result.generation);
    return result;
}
