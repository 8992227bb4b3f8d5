/* SPDX-License-Identifier: Apache-2.0 */
/* stop_schedule.h - which calls of ct_should_stop() vote.
 *
 * The ranks of a group agree by a small all-reduce, which can take longer than a short step.  So
 * only each k-th call votes; the calls between only count.  Votes should take less than 1 % of the
 * time.  In each vote a rank proposes the k with which votes take 0.5 % of its own time.  The
 * smallest proposal is taken, so the other ranks spend somewhat more.  The vote itself carries the
 * proposals, so all ranks know which call votes next.
 *
 * Nothing here waits or reads a clock: should_stop.c passes the times. */
#ifndef RUNTIME_GROUP_STOP_SCHEDULE_H
#define RUNTIME_GROUP_STOP_SCHEDULE_H

#include <stdint.h>

enum {
    /* the longest interval: calls without a vote, and the vote after them */
    STOP_INTERVAL_MOST = 100,
    STOP_VOTES_SHARE = 200 /* a rank proposes that votes take 1 / 200 of its time */
};
/* the calls between two votes should not take longer */
#define STOP_SILENCE_MOST_NS INT64_C(1000000000)

struct stop_schedule {
    uint64_t calls; /* how many calls the group has made */
    /* number of the next call that votes; 0: there was no vote, so the first call does */
    uint64_t next;
    int interval;               /* calls from the last vote to the next; 0: there was no vote */
    int64_t vote_ns;            /* average time of the last votes; 0: not known yet */
    int64_t begun_ns, ended_ns; /* of the last vote, by a monotonic clock */
    int stopped;                /* a vote has decided to stop: the result stays 1 */
};

/* Counts the next call if it does not vote.  1: it does not. */
static inline int stop_schedule_skip(struct stop_schedule *schedule)
{
    if (schedule->calls + 1 >= schedule->next)
        return 0;
    schedule->calls++;
    return 1;
}

/* Begins a vote and returns the interval that this rank proposes.  If the vote fails, the next call
 * votes again. */
int stop_schedule_begin(struct stop_schedule *schedule, int64_t now_ns);
/* Ends the vote and counts it as a call.  interval: what the ranks agreed on. */
void stop_schedule_end(struct stop_schedule *schedule, int64_t now_ns, int interval);

/* Gives the proposed interval if votes take vote_ns, steps take step_ns, and the last interval was
 * `last`. */
int stop_interval(int64_t vote_ns, int64_t step_ns, int last);

#endif
