/* SPDX-License-Identifier: Apache-2.0 */
/* clock_readings.c - see clock_readings.h. */
#include "launcher/trace/clock_readings.h"

#include <math.h>
#include <string.h>

#define AT_START 30        /* readings */
#define DRIFT_USUAL 100e-6 /* of one quartz by another one's clock, at most */
#define DRIFT_MOST 0.1     /* of a clock that is being set */

void clock_readings_add(struct clock_readings *readings, const struct clock_reading *reading)
{
    const int64_t half_ns = (reading->heard_ns - reading->asked_ns + 1) / 2;
    const int64_t at_ns = reading->asked_ns + half_ns;
    const struct clock_offset offset = { at_ns, reading->shown_ns - at_ns, half_ns };

    if (strncmp(readings->clock, reading->clock, sizeof readings->clock - 1) != 0) {
        *readings = (struct clock_readings){ .count = 0 };
        strncpy(readings->clock, reading->clock, sizeof readings->clock - 1);
    }
    if (readings->count == 0
        || (readings->count < AT_START && offset.error_ns < readings->first.error_ns))
        readings->first = offset;
    readings->recent[readings->count++ % CLOCK_RECENT] = offset;
}

/* Of the line through two readings: between them at most theirs, and behind them it grows.  Through
 * the same reading twice: of a clock that does not drift, as the coordinator's own does not. */
static double error_at(const struct clock_offset *a, const struct clock_offset *b, int64_t ns)
{
    const double passed = (double)(ns - a->at_ns), drift = a->error_ns > 0 ? DRIFT_USUAL : 0;
    double share;

    if (a == b)
        return (double)a->error_ns + drift * fabs(passed);
    share = passed / (double)(b->at_ns - a->at_ns);
    return fabs(1 - share) * (double)a->error_ns + fabs(share) * (double)b->error_ns;
}

static void take_if_better(struct trace_clock *best, const struct clock_offset *a,
                           const struct clock_offset *b, int64_t from_ns, int64_t to_ns)
{
    const double rise = (double)(b->offset_ns - a->offset_ns), run = (double)(b->at_ns - a->at_ns);
    const double drift = a == b ? 0 : rise / run;
    const double error_ns = fmax(error_at(a, b, from_ns), error_at(a, b, to_ns));

    if (fabs(drift) > DRIFT_MOST || (best->error_ns >= 0 && error_ns >= (double)best->error_ns))
        return;
    best->offset_ns = a->offset_ns - (int64_t)(drift * (double)a->at_ns);
    best->drift = drift;
    best->error_ns = (int64_t)ceil(error_ns);
}

struct trace_clock clock_readings_clock(const struct clock_readings *readings, int64_t from_ns,
                                        int64_t to_ns)
{
    const unsigned kept = readings->count < CLOCK_RECENT ? readings->count : CLOCK_RECENT;
    const struct clock_offset *const first = &readings->first;
    struct trace_clock clock = { .error_ns = -1 };

    memcpy(clock.name, readings->clock, sizeof clock.name);
    for (unsigned i = 0; i < kept; i++) {
        const struct clock_offset *const recent = &readings->recent[i];

        take_if_better(&clock, first, first, from_ns, to_ns);
        take_if_better(&clock, recent, recent, from_ns, to_ns);
        if (recent->at_ns > first->at_ns)
            take_if_better(&clock, first, recent, from_ns, to_ns);
    }
    return clock;
}
