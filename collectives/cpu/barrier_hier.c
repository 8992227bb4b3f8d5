/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_hier.c - the first rank of each host waits for the ranks of its host and for the other
 * hosts, and then lets its host go on.
 *
 * Cost: a round with a gate on the host, and ceil(log2 h) alpha for h hosts, between which one
 * message goes instead of one for each rank. */
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/lane.h"

static int barrier_hier_fits(const struct call *c)
{
    return c->group->hosts > 1;
}

static ct_status barrier_hier_run(struct call *c)
{
    const struct level l = level_of(c->group, c->group->rank);
    const struct lane lane = lane_of(c, &l);
    const struct span nothing = { NULL, 0 };
    struct host_trip trip;
    ct_status status = host_trip_begin(&trip, c, &l, 0, 0, 0);

    if (status == CT_OK)
        status = host_show(&trip, nothing);
    if (status == CT_OK && l.rank == 0)
        status = lane_barrier(&lane);
    if (status == CT_OK)
        status = host_answer(&trip, nothing);
    host_trip_end(&trip);
    return status;
}

const struct algorithm barrier_nodes = { "nodes", barrier_hier_fits, barrier_hier_run, 0, NULL };
