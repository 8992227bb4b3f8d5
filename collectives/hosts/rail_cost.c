/* SPDX-License-Identifier: Apache-2.0 */
/* rail_cost.c - the time of each way between hosts, by a formula.
 *
 * The rails of a host share its wire.  So the time depends on the bytes of the whole call, not on
 * the number of rails.  The work inside the hosts is the same for all ways of an operation, and is
 * left out. */
#include <math.h>

#include "collectives/core/pipeline_segment.h"
#include "collectives/hosts/rail.h"
#include "runtime/messaging/messages.h"

/* Messages from several hosts that arrive at once delay each other in the switch: measured with 3
 * and 8 hosts behind links of 500 Mbit/s. */
#define AT_ONCE 1.1
#define LARGE_AT_ONCE 1.3

static double wire(const struct call *c, double bytes)
{
    return bytes * c->network->us_per_byte;
}

/* Returns the time of `count` messages of `bytes` bytes, one after the other.  A large message
 * takes 3 alpha, since the sender first asks the receiver. */
static double cost_steps(const struct call *c, double count, double bytes)
{
    const double alpha = c->network->alpha_us;

    return count * (bytes > EAGER_MOST ? 3 * alpha : alpha);
}

/* Returns the time of one step in which a rank sends to all other hosts, or receives from them. */
static double fan(const struct call *c, double bytes)
{
    return cost_steps(c, 1, bytes) + c->network->overhead_us * (c->group->order.hosts - 2);
}

/* Returns the number of levels of the tree.  *pairs is 1 if the tree begins with pairs, else 0. */
static int levels(const struct call *c, int *pairs)
{
    int levels = 0;

    while (2 << levels <= c->group->order.hosts)
        levels++;
    *pairs = fold_pairs(c->group->order.hosts) > 0;
    return levels;
}

double rail_all_reduce_cost(const struct call *c, enum rail_way way, size_t bytes)
{
    const double n = (double)bytes, h = c->group->order.hosts, rest = (h - 1) / h;
    int pairs;
    const int depth = levels(c, &pairs);

    switch (way) {
    case RAIL_DIRECT: /* data goes in pieces, which are sent eagerly */
        return rail_takes_one_step(c->group->order.hosts, bytes)
                   ? fan(c, n) + wire(c, (h - 1) * n)
                   : 2 * fan(c, 0) + (h > 2 ? AT_ONCE : 1) * wire(c, 2 * n * rest);
    case RAIL_DOUBLING:
        return cost_steps(c, depth + 2 * pairs, n) + wire(c, (depth + 2 * pairs) * n);
    default:
        return cost_steps(c, 2 * depth, n / h) + cost_steps(c, 2 * pairs, n)
               + wire(c, 2 * n * rest + 2 * pairs * n);
    }
}

double rail_reduce_cost(const struct call *c, enum rail_way way, size_t bytes)
{
    const struct pipeline parts = pipeline_of_parts(c->group->order.hosts);
    const double n = (double)bytes, h = c->group->order.hosts, rest = (h - 1) / h;
    int pairs;
    const int depth = levels(c, &pairs);

    switch (way) {
    case RAIL_DIRECT: /* data goes in pieces, which are sent eagerly */
        return fan(c, 0) + wire(c, (h - 1) * n);
    case RAIL_DOUBLING:
        return cost_steps(c, depth + pairs, n) + wire(c, (depth + pairs) * n);
    case RAIL_PARTS:
        return 2 * fan(c, 0)
               + pipeline_cost(c->network, parts, bytes,
                               pipeline_segment(c->network, parts, bytes));
    default:
        return cost_steps(c, 2 * depth, n / h) + cost_steps(c, pairs, n)
               + wire(c, 2 * n * rest + pairs * n);
    }
}

double rail_broadcast_cost(const struct call *c, enum rail_way way, size_t bytes)
{
    const double n = (double)bytes, h = c->group->order.hosts, rest = (h - 1) / h;
    const struct pipeline chain = pipeline_of_chain(c->group->order.hosts);
    int pairs;
    const int depth = levels(c, &pairs);

    switch (way) {
    case RAIL_DIRECT:
        return fan(c, n) + wire(c, (h - 1) * n);
    case RAIL_DOUBLING: /* no pairs, but ceil(log2 h) steps */
        return cost_steps(c, depth + pairs, n) + wire(c, (depth + pairs) * n);
    case RAIL_HALVING:
        return cost_steps(c, 2 * depth, n / h) + cost_steps(c, pairs, n)
               + wire(c, 2 * n * rest + pairs * n);
    default: /* a segment does not wait until the segment before it has arrived */
        return cost_steps(c, h - 1, 0)
               + pipeline_cost(c->network, chain, bytes,
                               pipeline_segment(c->network, chain, bytes));
    }
}

/* Returns the time of rail_exchange() with messages of n bytes.  Messages that arrive at once slow
 * each other down, in simulation by LARGE_AT_ONCE. */
static double cost_exchange(const struct call *c, double n)
{
    const double others = c->group->order.hosts - 1;
    const double together = ceil(rail_bytes_together(c->network) / n);

    return together < others
               ? cost_steps(c, ceil(others / together), n) + wire(c, AT_ONCE * n * others)
               : fan(c, n) + wire(c, (n > EAGER_MOST ? LARGE_AT_ONCE : 1) * n * others);
}

double rail_all_gather_cost(const struct call *c, enum rail_way way, size_t bytes)
{
    const double n = (double)bytes, all = n * (c->group->order.hosts - 1);
    int pairs;
    const int depth = levels(c, &pairs);

    switch (way) {
    case RAIL_DIRECT:
        return cost_exchange(c, n);
    case RAIL_DOUBLING: /* each byte that arrives is copied twice more */
        return cost_steps(c, depth + pairs, n) + wire(c, all) + 2e-4 * all;
    default:
        return cost_steps(c, c->group->order.hosts - 1, n) + wire(c, all);
    }
}
