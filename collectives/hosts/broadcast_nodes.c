/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast_nodes.c - broadcast over several hosts.  The root sends to one rank of each host, which
 * passes the data on to the ranks of its host.
 *
 * Many bytes: the ranks of the root's host share the buffer first.  Then each of them sends a slice
 * to the ranks that have its number on the other hosts, and the ranks of these hosts share their
 * slices.
 * Cost: the cost of the rail (rail.h), and n bytes written and read on each host. */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/rail.h"

/* Bytes that one step handles.  A host shares a piece while the next piece arrives. */
#define PIECE ((size_t)8 << 20)
/* Minimum size of a slice in bytes.  A smaller buffer goes through one rank of each host. */
#define ONE_SLICE ((size_t)256 << 10)

static int broadcast_nodes_fits(const struct call *c)
{
    return c->group->order.hosts > 1;
}

static int broadcast_few_hosts_fit(const struct call *c)
{
    return c->group->order.hosts > 1 && c->group->order.hosts <= HOSTS_MOST_DIRECT;
}

static ct_status broadcast_one_piece(struct call *c, const struct level *l, struct span data)
{
    const enum rail_way way = (enum rail_way)c->algorithm->way;
    const int slices = host_slices_of(c->group, data.bytes, ONE_SLICE);
    const struct rail rooted = rail_of_root(c, l);
    const struct rail rail = slices > 1 ? rail_of(c, l) : rooted;
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
            status = rail_broadcast(&rooted, way, rooted.root_host, data);
        return status == CT_OK ? host_share(c, l, &whole) : status;
    }
    if (on_root_host)
        status = host_share(c, l, &whole);
    if (status == CT_OK && l->rank < slices)
        status = rail_broadcast(&rail, way, rooted.root_host, host_slice(c, &cut, l->rank, 0));
    return status == CT_OK && !on_root_host ? host_share(c, l, &parts) : status;
}

static ct_status broadcast_nodes_run(struct call *c)
{
    const struct span data = block_at(c, &c->recv, 0);
    const struct level l = level_of(c->group, c->group->rank);
    const struct rail rail = rail_of_root(c, &l);
    size_t at = 0;
    ct_status status;

    if (c->group->order.host_most == 1)
        return rail_broadcast(&rail, (enum rail_way)c->algorithm->way, rail.root_host, data);
    do {
        const size_t n = piece_of(data.bytes, at, PIECE);

        status = broadcast_one_piece(c, &l, span_of(data.data + at, n));
        at += PIECE;
    } while (status == CT_OK && at < data.bytes);
    return status;
}

static double broadcast_nodes_cost(const struct call *c, int way)
{
    return rail_broadcast_cost(c, (enum rail_way)way, call_bytes(c));
}

const struct algorithm broadcast_nodes = { .name = "nodes",
                                           .fits = broadcast_few_hosts_fit,
                                           .run = broadcast_nodes_run,
                                           .cost = broadcast_nodes_cost,
                                           .way = RAIL_DIRECT };
const struct algorithm broadcast_nodes_doubling = { .name = "nodes_doubling",
                                                    .fits = broadcast_nodes_fits,
                                                    .run = broadcast_nodes_run,
                                                    .cost = broadcast_nodes_cost,
                                                    .way = RAIL_DOUBLING };
const struct algorithm broadcast_nodes_halving = { .name = "nodes_halving",
                                                   .fits = broadcast_nodes_fits,
                                                   .run = broadcast_nodes_run,
                                                   .cost = broadcast_nodes_cost,
                                                   .way = RAIL_HALVING };
const struct algorithm broadcast_nodes_chain = { .name = "nodes_chain",
                                                 .fits = broadcast_nodes_fits,
                                                 .run = broadcast_nodes_run,
                                                 .cost = broadcast_nodes_cost,
                                                 .way = RAIL_CHAIN };
