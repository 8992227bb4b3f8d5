/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_hier.c - the ranks of a host send to its first rank, the first ranks exchange as in
 * dissemination, and then send to the ranks of their hosts.
 *
 * Cost: two steps on the host and ceil(log2 h) alpha for h hosts, between which one message goes
 * instead of one for each rank. */
#include "collectives/core/host_topology.h"

static const struct span nothing = { NULL, 0 };

static int barrier_hier_fits(const struct call *c)
{
    return has_two_levels(c->group);
}

static ct_status exchange_with_host(struct call *c, const struct level *l, int send)
{
    struct batch batch;
    const ct_status status = batch_begin(&batch, c, l->ranks);

    if (status != CT_OK)
        return status;
    for (int i = 1; i < l->ranks; i++)
        if (send)
            batch_send(&batch, host_rank(c->group, l->host, i), nothing);
        else
            batch_recv(&batch, host_rank(c->group, l->host, i), nothing);
    return batch_wait(&batch);
}

static ct_status barrier_hier_run(struct call *c)
{
    const struct level l = level_of(c->group, c->group->rank);
    const int first = host_rank(c->group, l.host, 0);
    ct_status status;

    if (l.rank > 0) {
        status = send_to(c, first, nothing);
        return status == CT_OK ? recv_from(c, first, nothing) : status;
    }
    status = exchange_with_host(c, &l, 0);
    for (int distance = 1; distance < l.hosts && status == CT_OK; distance *= 2)
        status = exchange(c, host_rank(c->group, (l.host + distance) % l.hosts, 0), nothing,
                          host_rank(c->group, (l.host - distance + l.hosts) % l.hosts, 0), nothing);
    return status == CT_OK ? exchange_with_host(c, &l, 1) : status;
}

const struct algorithm barrier_nodes = { "nodes", barrier_hier_fits, barrier_hier_run, 0 };
