/* SPDX-License-Identifier: Apache-2.0 */
/* stop_schedule.c - the interval between votes, from what they take and how long a step is.
 *
 * The interval at most doubles from vote to vote, since the first steps of a program may be short
 * and its later ones long.  For the same reason it has a fixed bound.  Without it, a program whose
 * steps grow a thousandfold right after a vote would not stop for hours. */
#include "runtime/group/stop_schedule.h"

#define AVERAGED_VOTES 8 /* some of the last ones */

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int stop_interval(int64_t vote_ns, int64_t step_ns, int last)
{
    const int64_t step = step_ns > 0 ? step_ns : 1;
    const int64_t affordable = (STOP_VOTES_SHARE * vote_ns + step - 1) / step;
    const int64_t bound =
        lesser(lesser(2 * (int64_t)last, STOP_INTERVAL_MOST), STOP_SILENCE_MOST_NS / step);
    const int64_t interval = lesser(affordable, bound);

    return interval > 1 ? (int)interval : 1;
}

int stop_schedule_begin(struct stop_schedule *schedule, int64_t now_ns)
{
    const int64_t since = now_ns - schedule->ended_ns;

    schedule->begun_ns = now_ns;
    if (schedule->vote_ns == 0)
        return 1;
    return stop_interval(schedule->vote_ns, since / schedule->interval, schedule->interval);
}

/* An average with the wait for later ranks, which is most of a vote where ranks share processors.
 * A rank that always waits for a slower one would propose too much; but the slower one does not
 * wait, and the smallest proposal counts.  The first vote is left out: it makes connections. */
void stop_schedule_end(struct stop_schedule *schedule, int64_t now_ns, int interval)
{
    const int64_t taken = now_ns - schedule->begun_ns;

    if (schedule->vote_ns > 0)
        schedule->vote_ns += (taken - schedule->vote_ns) / AVERAGED_VOTES;
    else if (schedule->interval > 0)
        schedule->vote_ns = taken;
    schedule->calls++;
    schedule->next = schedule->calls + (uint64_t)interval;
    schedule->interval = interval;
    schedule->ended_ns = now_ns;
}
