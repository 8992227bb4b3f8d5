/* SPDX-License-Identifier: Apache-2.0 */
/* clock_readings.h - stores readings of the coordinator's clock from heartbeats.  For the times of
 * a round, it computes from the readings how to convert the node's clock to the coordinator's
 * clock.  It does no input or output.
 *
 * The coordinator reads its clock between two moments: the node asks, and the node receives the
 * answer.  So the difference between the clocks is the reading minus the middle of the two moments,
 * with an error of at most half the time between them (Cristian 1989).  Clocks drift, so a long job
 * needs two such readings.  A clock jumps if its machine was paused, and then its old readings are
 * discarded.  The moment of the jump is not known.  So for a round that began before the jump, the
 * error includes the whole jump.
 *
 * ctrun may be killed at any moment.  Then ctrun's guard reads the readings as they are. */
#ifndef LAUNCHER_TRACE_CLOCK_READINGS_H
#define LAUNCHER_TRACE_CLOCK_READINGS_H

#include <stdatomic.h>

#include "launcher/nodes/nodes.h"
#include "runtime/trace/trace_json.h"

/* slots for the last sixteen readings, and for one reading that may be incomplete */
#define CLOCK_RECENT 17

struct clock_readings {
    /* number of readings since the last jump or change of clock; stored after the reading */
    _Atomic unsigned count;
    struct clock_offset {
        int64_t at_ns, offset_ns, error_ns;
    } kept[CLOCK_ASKS + CLOCK_RECENT]; /* the first CLOCK_ASKS readings stay until a jump */
    double jumps_ns;                   /* sum of the jumps, in ns */
    int64_t jumped_ns; /* time of the node's clock at which the last jump was noticed, in ns */
    char clock[TRACE_CLOCK_TEXT];
};

/* Adds a reading.  A reading of another clock discards all earlier readings. */
void clock_readings_add(struct clock_readings *readings, const struct clock_reading *reading);

/* Returns the clock for a round from from_ns to to_ns by the node's own clock.  The clock is a
 * straight line that converts the node's clock to the coordinator's clock.  Of all such lines
 * through one or two readings, it has the smallest error at both ends of the round. */
struct trace_clock clock_readings_clock(const struct clock_readings *readings, int64_t from_ns,
                                        int64_t to_ns);

#endif
