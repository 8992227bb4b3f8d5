/* SPDX-License-Identifier: Apache-2.0 */
/* stop_schedule.h - which calls of ct_should_stop() vote.
 *
 * The ranks of a group agree by a small all-reduce, which can take longer than a short step.  So
 * only every k-th call makes one; a call in between is counted and no more.  Votes shall take less
 * than 1 % of the time.  At each vote a rank proposes the k that makes it 0.5 % of its own.  The
 * smallest proposal counts, so the other ranks spend somewhat more.  The ranks learn it by the vote
 * itself, and all know which call votes next.
 *
 * Nothing here waits or looks at a clock: should_stop.c brings the times. */
#ifndef RUNTIME_GROUP_STOP_SCHEDULE_H
#define RUNTIME_GROUP_STOP_SCHEDULE_H

#include <stdint.h>

enum {
    STOP_INTERVAL_MOST = 100, /* calls without a vote and the one behind them */
    STOP_VOTES_SHARE = 200    /* a rank proposes that votes take one part in so many of its time */
};
#define STOP_SILENCE_MOST_NS INT64_C(1000000000) /* calls without a vote shall not take longer */

struct stop_schedule {
    uint64_t calls;             /* that the group has made */
    uint64_t next;              /* the number of the call that votes; 0: none has, the first does */
    int interval;               /* calls from the last vote to the next; 0: there was no vote */
    int64_t vote_ns;            /* what the last votes took on average; 0: not known yet */
    int64_t begun_ns, ended_ns; /* of the last vote, by a monotonic clock */
    int stopped;                /* a vote has decided it: the answer stays 1 */
};

/* 1: the next call is one without a vote, and counts now. */
static inline int stop_schedule_skip(struct stop_schedule *schedule)
{
    if (schedule->calls + 1 >= schedule->next)
        return 0;
    schedule->calls++;
    return 1;
}

/* A vote begins: gives the interval that this rank proposes.  If the vote fails, the next call
 * makes it again. */
int stop_schedule_begin(struct stop_schedule *schedule, int64_t now_ns);
/* It is over and counts as a call; the ranks agreed on this interval. */
void stop_schedule_end(struct stop_schedule *schedule, int64_t now_ns, int interval);

/* The rule: votes take vote_ns and steps step_ns, and the last interval was `last`. */
int stop_interval(int64_t vote_ns, int64_t step_ns, int last);

#endif
