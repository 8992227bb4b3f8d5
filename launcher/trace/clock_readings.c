/* SPDX-License-Identifier: Apache-2.0 */
/* clock_readings.c - implements clock_readings.h: computes the coordinator's clock from readings.
 */
#include "launcher/trace/clock_readings.h"

#include <math.h>
#include <string.h>

#define DRIFT_USUAL 100e-6 /* largest usual drift between the quartz oscillators of two clocks */
/* if the drift between two clocks is larger, a clock has jumped */
#define DRIFT_MOST 1000e-6

/* Returns the index in kept[] of the reading with that number. */
static unsigned clock_slot(unsigned number)
{
    return number < CLOCK_ASKS ? number : CLOCK_ASKS + (number - CLOCK_ASKS) % CLOCK_RECENT;
}

/* Returns how many ns at most a jump has moved the clocks apart; 0 if neither clock jumped. */
static double clock_jump(const struct clock_offset *from, const struct clock_offset *to)
{
    const double apart = fabs((double)(to->offset_ns - from->offset_ns));
    const double drift = DRIFT_MOST * fabs((double)(to->at_ns - from->at_ns));
    const double errors = (double)from->error_ns + (double)to->error_ns;

    return apart > errors + drift ? apart + errors : 0;
}

void clock_readings_add(struct clock_readings *readings, const struct clock_reading *reading)
{
    const int64_t half_ns = (reading->heard_ns - reading->asked_ns + 1) / 2;
    const int64_t at_ns = reading->asked_ns + half_ns;
    const struct clock_offset offset = { at_ns, reading->shown_ns - at_ns, half_ns };
    unsigned count = atomic_load(&readings->count);
    double jump;

    if (strncmp(readings->clock, reading->clock, sizeof readings->clock - 1) != 0) {
        atomic_store(&readings->count, count = 0);
        strncpy(readings->clock, reading->clock, sizeof readings->clock - 1);
    } else if (count > 0
               && (jump = clock_jump(&readings->kept[clock_slot(count - 1)], &offset)) > 0) {
        readings->jumps_ns += jump;
        readings->jumped_ns = at_ns;
        atomic_store(&readings->count, count = 0);
    }
    readings->kept[clock_slot(count)] = offset;
    atomic_store(&readings->count, count + 1);
}

/* Returns the error, in ns, at time `ns`, of the line through two readings.  Between the readings,
 * the error is at most the larger of the two readings' errors.  Outside, the error grows.  If a and
 * b are the same reading, the drift is not known, so the usual drift is added to the error.  No
 * drift is added for the coordinator's own clock, which has readings with error 0. */
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

/* Ignores the next slot, which may be incomplete if ctrun was killed while it wrote the slot. */
struct trace_clock clock_readings_clock(const struct clock_readings *readings, int64_t from_ns,
                                        int64_t to_ns)
{
    const unsigned count = atomic_load(&readings->count), next = clock_slot(count);
    struct trace_clock clock = { .error_ns = -1 };

    if (count == 0)
        return clock;
    memcpy(clock.name, readings->clock, sizeof clock.name);
    for (unsigned i = 0; i < count && i < CLOCK_ASKS + CLOCK_RECENT; i++) {
        const struct clock_offset *const kept = &readings->kept[i];

        if (i == next)
            continue;
        take_if_better(&clock, kept, kept, from_ns, to_ns);
        for (unsigned j = 0; j < i && j < CLOCK_ASKS; j++)
            if (readings->kept[j].at_ns < kept->at_ns)
                take_if_better(&clock, &readings->kept[j], kept, from_ns, to_ns);
    }
    if (from_ns < readings->jumped_ns)
        clock.error_ns = (int64_t)fmin((double)clock.error_ns + readings->jumps_ns, 9e18);
    return clock;
}
