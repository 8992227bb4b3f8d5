/* SPDX-License-Identifier: Apache-2.0 */
/* stop_schedule.h - determines which calls of ct_should_stop() vote.
 *
 * The ranks of a group agree by a small all-reduce, a vote, which can take longer than a short step
 * of the program.  So only every k-th call votes, and the calls between two votes only increment a
 * counter.  Votes should take less than 1 % of the time.  In each vote, a rank proposes the k with
 * which votes take 0.5 % of its own time.  The smallest proposal is used, so the other ranks spend
 * somewhat more.  The vote itself carries the proposals, so all ranks know which call votes next.
 *
 * These functions neither wait nor read a clock, since should_stop.c passes the times. */
#ifndef RUNTIME_GROUP_STOP_SCHEDULE_H
#define RUNTIME_GROUP_STOP_SCHEDULE_H

#include <stdint.h>

enum {
    /* The longest interval, in calls.  Of 100 calls in a row, at least one votes. */
    STOP_INTERVAL_MOST = 100,
    STOP_VOTES_SHARE = 200 /* a rank proposes that votes take 1 / 200 of its time */
};
/* The longest time, in ns, that the calls between two votes should take. */
#define STOP_SILENCE_MOST_NS INT64_C(1000000000)

struct stop_schedule {
    uint64_t calls;  /* number of calls of ct_should_stop() on this group */
    uint64_t next;   /* number of the next call that votes; 0 makes the first call vote */
    int interval;    /* number of calls from the last vote to the next; 0 before the first vote */
    int64_t vote_ns; /* average time of the last votes; 0 until the second vote has ended */
    int64_t begun_ns, ended_ns; /* start and end of the last vote, by a monotonic clock */
    int stopped;                /* 1 once a vote has decided to stop */
};

/* Returns 1 and counts the next call if that call does not vote.  Returns 0 if it votes. */
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
/* Ends the vote and counts it as a call.  `interval` is the interval on which the ranks agreed. */
void stop_schedule_end(struct stop_schedule *schedule, int64_t now_ns, int interval);

/* Returns the interval that a rank proposes if votes take vote_ns, steps take step_ns, and the last
 * interval was `last`. */
int stop_interval(int64_t vote_ns, int64_t step_ns, int last);

#endif
