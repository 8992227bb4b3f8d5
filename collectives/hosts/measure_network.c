/* SPDX-License-Identifier: Apache-2.0 */
/* measure_network.c - measures the speed of the network in calls of the program.
 *
 * The driver of a network card tells the speed of its link.  A switch, a hypervisor or a virtual
 * link may be slower, and a processor may be too slow for the link.  So the ranks measure the first
 * ENOUGH calls of many bytes.  They measure again when calls have at least twice as many.
 *
 * The cost model of the call's algorithm tells how many bytes a host sends, and how long the call
 * would take without these bytes.  The bytes take the rest of the time.  A rank that comes
 * early waits for the last one, whose time is the shortest.  So the ranks agree on the least time,
 * in the last of these calls: an all-reduce of 8 bytes, log2(p) messages.  A late rank may receive
 * results while it still sends, so the speed may come out up to twice too high.  It is never higher
 * than what the driver tells. */
#include "collectives/hosts/measure_network.h"

#include <math.h>

#include "collectives/core/algorithm_overrides.h"
#include "collectives/hosts/rail.h"
#include "runtime/util/clock.h"

#define ENOUGH 4         /* calls of a measurement */
#define LEAST (16 << 10) /* bytes; with fewer, latency is nearly all of the time */

static double time_on(const struct call *c, struct network_model network)
{
    struct call other = *c;

    other.network = &network;
    return c->algorithm->cost(&other, c->algorithm->way);
}

/* Returns how many bytes a host sends, by the cost model. */
static double wire_bytes_of(const struct call *c)
{
    return time_on(c, (struct network_model){ .us_per_byte = 1 })
           - time_on(c, (struct network_model){ 0 });
}

/* Sets *us to the least of all ranks. */
static ct_status agree_least(struct call *c, double *us)
{
    struct call least = *c;
    const struct rail ranks = rail_of_ranks(&least);
    const struct span span = { (char *)us, sizeof *us };

    least.whole = call_compared(c);
    least.signature.count = 1;
    least.signature.dtype = CT_F64;
    least.signature.op = CT_MIN;
    least.element = sizeof *us;
    return rail_all_reduce_doubling(&ranks, span, span);
}

/* Adds the call's time to the measurement.  The latency is subtracted twice, since that of the
 * model may be too low.  Otherwise a call of few bytes would show too slow a network. */
static ct_status note_time(struct call *c, double us)
{
    struct network *const n = c->group->algorithms.network;
    const struct network_model instant = { n->model.alpha_us, n->model.overhead_us, 0 };
    ct_status status;

    n->us_per_byte = fmin(n->us_per_byte, (us - 2 * time_on(c, instant)) / wire_bytes_of(c));
    if (++n->calls < ENOUGH)
        return CT_OK;
    status = agree_least(c, &n->us_per_byte);
    if (status != CT_OK)
        return status;
    n->model.us_per_byte = fmax(n->us_per_byte, n->claimed);
    n->is_measured = 1;
    for (int i = 0; i < OPERATION_COUNT; i++) /* CT_EXPLAIN tells the new choices */
        atomic_store(&c->group->algorithms.choices->explained[0][i], 0);
    return CT_OK;
}

/* Returns 1 if a measurement begins with this call. */
static int begins_measurement(const struct call *c)
{
    const struct network *const n = c->group->algorithms.network;
    const size_t bytes = call_bytes(c);

    return !n->is_given && bytes >= LEAST
           && (n->bytes == 0 || (n->is_measured && bytes >= 2 * n->bytes));
}

/* Returns 1 if this call is a part of the measurement that has begun.  The first measurement also
 * takes smaller calls.  Otherwise it might never end. */
static int continues_measurement(const struct call *c)
{
    const struct network *const n = c->group->algorithms.network;

    return n->bytes > 0 && n->calls < ENOUGH
           && call_bytes(c) >= (n->is_measured ? n->bytes : LEAST);
}

int network_is_due(const struct call *c)
{
    return begins_measurement(c) || continues_measurement(c);
}

ct_status run_measured(struct call *c, ct_status (*run)(struct call *c))
{
    struct network *const n = c->group->algorithms.network;
    int64_t before;
    ct_status status;

    if (begins_measurement(c)) {
        n->bytes = call_bytes(c);
        n->us_per_byte = INFINITY;
        n->calls = 0;
    }
    if (!continues_measurement(c))
        return run(c);
    before = clock_ns(CLOCK_MONOTONIC);
    status = run(c);
    return status == CT_OK ? note_time(c, 1e-3 * (double)(clock_ns(CLOCK_MONOTONIC) - before))
                           : status;
}
