/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_nodes.c - barrier over several hosts.  The first rank of each host waits for the ranks of
 * its host and for the other hosts, and then releases the ranks of its host.
 *
 * Cost: one round with a gate on the host (rounds.h), and ceil(log2 h) alpha between h hosts.  Each
 * host sends one message in a step, not one for each rank. */
#include "collectives/core/algorithms.h"
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/rail.h"

static int barrier_nodes_fits(const struct call *c)
{
    return c->group->order.hosts > 1;
}

static ct_status barrier_nodes_run(struct call *c)
{
    const struct level l = level_of(c->group, c->group->rank);
    const struct rail rail = rail_of(c, &l);
    struct host_trip trip;
    ct_status status = host_trip_begin(&trip, c, &l, 0, 0);

    if (status == CT_OK)
        status = host_show(&trip, NULL);
    if (status == CT_OK && host_is_gate(&trip))
        status = rail_barrier(&rail);
    if (status == CT_OK)
        status = host_answer(&trip, NULL);
    host_trip_end(&trip);
    return status;
}

const struct algorithm barrier_nodes = { .name = "nodes",
                                         .fits = barrier_nodes_fits,
                                         .run = barrier_nodes_run };
