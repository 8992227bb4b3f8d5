/* SPDX-License-Identifier: Apache-2.0 */
/* clock_readings.h - what the coordinator's clock showed, as heartbeats told, and the clock that
 * follows for the times of a round.  Pure.
 *
 * The coordinator read its clock between the moments at which the node asked and heard.  So the
 * clocks differ by what it showed less the middle of these, and that is wrong by at most half of
 * the time between (Cristian 1989).  Clocks drift, so a long job needs two such readings.  A clock
 * that jumps, because its machine was paused, begins anew.  The moment of the jump is not known, so
 * all of it is an error of a round that had begun before.
 *
 * ctrun may be killed at any moment, and its guard reads what is there then. */
#ifndef LAUNCHER_TRACE_CLOCK_READINGS_H
#define LAUNCHER_TRACE_CLOCK_READINGS_H

#include <stdatomic.h>

#include "launcher/nodes/nodes.h"
#include "runtime/trace/trace_json.h"

#define CLOCK_RECENT 17 /* readings: the last sixteen, and one that may be half written */

struct clock_readings {
    _Atomic unsigned count; /* of all that came since the clock began; stored behind them */
    struct clock_offset {
        int64_t at_ns, offset_ns, error_ns;
    } kept[CLOCK_ASKS + CLOCK_RECENT]; /* those of the start stay */
    double jumps_ns;                   /* together */
    int64_t jumped_ns;                 /* when the last jump was noticed */
    char clock[TRACE_CLOCK_TEXT];
};

/* Another clock begins anew. */
void clock_readings_add(struct clock_readings *readings, const struct clock_reading *reading);

/* For a round that lasted that long by the node's own clock: the straight line by which the
 * coordinator's clock is known best at both ends. */
struct trace_clock clock_readings_clock(const struct clock_readings *readings, int64_t from_ns,
                                        int64_t to_ns);

#endif
