/* SPDX-License-Identifier: Apache-2.0 */
/* clock_readings.h - readings of the coordinator's clock, from heartbeats, and the clock that they
 * give for the times of a round.  Does no input or output.
 *
 * The coordinator reads its clock between two moments: the node asks, and the node gets the answer.
 * So the difference between the clocks is the reading less the middle of the two moments, with an
 * error of at most half the time between them (Cristian 1989).  Clocks drift, so a long job needs
 * two such readings.  A clock that jumps, because its machine was paused, begins anew.  The moment
 * of the jump is not known, so a round that began before it has the whole jump as an error.
 *
 * ctrun may be killed at any moment.  Then its guard reads the readings as they are. */
#ifndef LAUNCHER_TRACE_CLOCK_READINGS_H
#define LAUNCHER_TRACE_CLOCK_READINGS_H

#include <stdatomic.h>

#include "launcher/nodes/nodes.h"
#include "runtime/trace/trace_json.h"

#define CLOCK_RECENT 17 /* the last sixteen, and one that may be half written */

struct clock_readings {
    _Atomic unsigned count; /* since the clock began; stored after the reading */
    struct clock_offset {
        int64_t at_ns, offset_ns, error_ns;
    } kept[CLOCK_ASKS + CLOCK_RECENT]; /* the readings of the start are never replaced */
    double jumps_ns;                   /* sum of the jumps */
    int64_t jumped_ns;                 /* when the last jump was noticed */
    char clock[TRACE_CLOCK_TEXT];
};

/* Takes a reading.  A reading of another clock begins anew. */
void clock_readings_add(struct clock_readings *readings, const struct clock_reading *reading);

/* Gives the clock for a round from from_ns to to_ns, by the node's own clock: the straight line
 * that gives the coordinator's clock with the least error at both ends. */
struct trace_clock clock_readings_clock(const struct clock_readings *readings, int64_t from_ns,
                                        int64_t to_ns);

#endif
