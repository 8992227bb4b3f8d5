/* SPDX-License-Identifier: Apache-2.0 */
/* clock_align.h - the clocks of several nodes on one, by the messages that the nodes exchanged.
 * Pure.
 *
 * A message is taken after it was sent.  So each message from A to B bounds what must be added to
 * B's clock from below, each one from B to A from above, and the line of that offset over time,
 * straight since clocks drift evenly, runs between all bounds (Duda et al. 1987).  See
 * clock_align.c. */
#ifndef LAUNCHER_TRACE_CLOCK_ALIGN_H
#define LAUNCHER_TRACE_CLOCK_ALIGN_H

#include <stddef.h>
#include <stdint.h>

struct clock_line {
    /* Given: the first and last time that matters, and CLOCK_REALTIME less this clock. */
    int64_t first, last, wall;
    int has_wall;
    /* Found: what to add for clock 0, at both times; in between it lies on the line. */
    int64_t base;
    double at_first, at_last;
    int64_t error_ns; /* by which it may be wrong; -1: messages do not link it to clock 0 */
};

struct clock_message {
    int64_t sent, taken; /* by the clocks `from` and `to`, which differ */
    int from, to;
};

/* The time of clock 0. */
int64_t clock_line_map(const struct clock_line *line, int64_t ns);

/* Finds all lines.  Clock 0 stays as it is; a clock that no messages both ways link to it, through
 * others or not, is placed by its wall clock.  Times are at least 0 and at most CLOCK_MOST_NS, wall
 * clocks from -CLOCK_MOST_NS to twice that.  Reorders the messages.  Returns how far a message
 * still is taken before it was sent, at most; 0: none is; CLOCKS_NO_MEMORY, or CLOCKS_FAR_APART: a
 * line leads to times that no clock shows, since the messages contradict each other or wall clocks
 * differ by decades. */
#define CLOCK_MOST_NS (2 * INT64_C(1001000000000000000))
enum { CLOCKS_NO_MEMORY = -1, CLOCKS_FAR_APART = -2 };
int64_t clocks_align(struct clock_line *clocks, int count, struct clock_message *messages,
                     size_t message_count);

#endif
