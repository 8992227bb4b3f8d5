/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast_hier.c - from the root to a rank of each host, and from there to the ranks of the host.
 *
 * Many bytes: the root's host shares the buffer first, so that each of its ranks can send a slice
 * to the ranks of its number on the other hosts, which then share their slices.
 * Cost: the lane's (lane.h), and n written and read on each host. */
#include "collectives/core/shm_exchange.h"
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/lane.h"

#define PIECE ((size_t)8 << 20) /* of the buffer at a time: hosts share one while others come */
#define ONE_SLICE ((size_t)256 << 10) /* bytes: up to here one rank of each host does it all */

typedef ct_status broadcast_way(const struct lane *lane, int host, struct span data);

static int broadcast_hier_fits(const struct call *c)
{
    return c->group->hosts > 1;
}

static int few_hosts_fit(const struct call *c)
{
    return c->group->hosts > 1 && c->group->hosts <= HOSTS_MOST_DIRECT;
}

static ct_status one_piece(struct call *c, const struct level *l, struct span data,
                           broadcast_way *way)
{
    const int slices = host_slices_of(c->group, data.bytes, ONE_SLICE);
    const struct lane rooted = lane_of_root(c, l);
    const struct lane lane = slices > 1 ? lane_of(c, l) : rooted;
    const int on_root_host = l->host == rooted.root_host;
    const struct host_slices all = { data.data, data.bytes / c->element, 1 };
    const struct host_slices cut = { data.data, data.bytes / c->element, slices };
    const struct host_parts whole = { .owners = 1,
                                      .first =
                                          on_root_host ? level_of(c->group, rooted.root).rank : 0,
                                      .spans = 1,
                                      .span = host_slice,
                                      .arg = &all };
    const struct host_parts parts = {
        .owners = slices, .spans = 1, .span = host_slice, .arg = &cut
    };
    ct_status status = CT_OK;

    if (slices == 1) {
        if (host_owner(l, &whole) == 0)
            status = way(&rooted, rooted.root_host, data);
        return status == CT_OK ? host_share(c, l, &whole) : status;
    }
    if (on_root_host)
        status = host_share(c, l, &whole);
    if (status == CT_OK && l->rank < slices)
        status = way(&lane, rooted.root_host, host_slice(c, &cut, l->rank, 0));
    return status == CT_OK && !on_root_host ? host_share(c, l, &parts) : status;
}

static ct_status run(struct call *c, broadcast_way *way)
{
    const struct span data = block_at(c, &c->recv, 0);
    const struct level l = level_of(c->group, c->group->rank);
    const struct lane lane = lane_of_root(c, &l);
    size_t at = 0;
    ct_status status;

    if (c->group->size == c->group->hosts)
        return way(&lane, lane.root_host, data);
    do {
        const size_t n = piece_of(data.bytes, at, PIECE);

        status = one_piece(c, &l, span_of(data.data + at, n), way);
        at += PIECE;
    } while (status == CT_OK && at < data.bytes);
    return status;
}

/* ---- Rows ----------------------------------------------------------------------- */

static ct_status direct_run(struct call *c)
{
    return run(c, lane_broadcast_direct);
}

static ct_status doubling_run(struct call *c)
{
    return run(c, lane_broadcast_doubling);
}

static ct_status halving_run(struct call *c)
{
    return run(c, lane_broadcast_halving);
}

static ct_status chain_run(struct call *c)
{
    return run(c, lane_broadcast_chain);
}

static double direct_cost(const struct call *c)
{
    return lane_broadcast_cost(c, LANE_DIRECT, call_bytes(c));
}

static double doubling_cost(const struct call *c)
{
    return lane_broadcast_cost(c, LANE_DOUBLING, call_bytes(c));
}

static double halving_cost(const struct call *c)
{
    return lane_broadcast_cost(c, LANE_HALVING, call_bytes(c));
}

static double chain_cost(const struct call *c)
{
    return lane_broadcast_cost(c, LANE_CHAIN, call_bytes(c));
}

const struct algorithm broadcast_nodes = { "nodes", few_hosts_fit, direct_run, 0, direct_cost };
const struct algorithm broadcast_nodes_doubling = { "nodes_doubling", broadcast_hier_fits,
                                                    doubling_run, 0, doubling_cost };
const struct algorithm broadcast_nodes_halving = { "nodes_halving", broadcast_hier_fits,
                                                   halving_run, 0, halving_cost };
const struct algorithm broadcast_nodes_chain = { "nodes_chain", broadcast_hier_fits, chain_run, 0,
                                                 chain_cost };
