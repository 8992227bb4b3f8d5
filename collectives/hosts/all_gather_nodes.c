/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_nodes.c - all-gather over several hosts.  Each block crosses the network once to each
 * other host, not once to each rank there.
 *
 * Few bytes: the first rank of each host collects the blocks of its host, exchanges them with the
 * first ranks of the other hosts, and hands all blocks to the ranks of its host.  Many bytes: each
 * rank exchanges its block with the ranks that have its number on the other hosts, and then the
 * ranks of a host share the blocks that arrived.
 * Cost: the cost of the rail (rail.h) for n bytes of each rank.  On the host the call takes one
 * round for few bytes; for many bytes each rank reads p n bytes.
 * [multi-level: Open MPI HAN] */
#include "collectives/core/algorithms.h"
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/rail.h"

static int all_gather_nodes_fits(const struct call *c)
{
    return c->group->order.hosts > 1 && hosts_are_alike(c->group);
}

static int all_gather_few_hosts_fit(const struct call *c)
{
    return all_gather_nodes_fits(c) && c->group->order.hosts <= HOSTS_MOST_DIRECT;
}

static int equal_blocks_fit(const struct call *c)
{
    return all_gather_nodes_fits(c) && c->signature.operation != OPERATION_ALL_GATHER_V;
}

/* ---- Few bytes ------------------------------------------------------------------- */

/* The blocks of all ranks, host by host. */
struct packed {
    char *all;
    size_t host_bytes;
};

static struct span packed_block(const struct call *c, const void *arg, int host)
{
    const struct packed *p = arg;

    (void)c;
    return span_of(p->all + (size_t)host * p->host_bytes, p->host_bytes);
}

static int is_trip(const struct call *c)
{
    return c->signature.operation != OPERATION_ALL_GATHER_V
           && call_bytes(c) * (size_t)c->group->size <= HOST_TRIP_MOST;
}

static ct_status all_gather_one_trip(struct call *c, const struct level *l)
{
    const struct span mine = block_at(c, &c->send, 0);
    const size_t n = mine.bytes, all = n * (size_t)c->group->size;
    const struct packed packed = { call_scratch(c, all), n * (size_t)l->ranks };
    const struct rail_blocks blocks = { packed_block, &packed };
    const struct rail rail = rail_of(c, l);
    struct host_trip trip;
    ct_status status = host_trip_begin(&trip, c, l, n, all);

    if (status == CT_OK && !packed.all)
        status = ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d ranks", c->group->size);
    if (status == CT_OK)
        status = host_show(&trip, mine.data);
    if (status == CT_OK && host_is_gate(&trip)) {
        for (int i = 0; i < l->ranks; i++)
            copy_span(span_of(packed_block(c, &packed, l->host).data + (size_t)i * n, n),
                      trip.shown[i]);
        status = rail_all_gather(&rail, (enum rail_way)c->algorithm->way, &blocks);
    }
    if (status == CT_OK)
        status = host_answer(&trip, packed.all);
    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        copy_span(block_at(c, &c->recv, c->group->order.fold_rank[i]), packed.all + (size_t)i * n);
    host_trip_end(&trip);
    call_scratch_end(c, packed.all);
    return status;
}

/* ---- Many bytes ------------------------------------------------------------------- */

/* Returns the block of the rank that has this rank's number on `host`. */
static struct span rail_block(const struct call *c, const void *arg, int host)
{
    const struct level *l = arg;

    return block_at(c, &c->recv, host_rank(c->group, host, l->rank));
}

static struct span host_block(const struct call *c, const void *arg, int owner, int host)
{
    (void)arg;
    return block_at(c, &c->recv, host_rank(c->group, host, owner));
}

static ct_status all_gather_nodes_run(struct call *c)
{
    const struct level l = level_of(c->group, c->group->rank);
    const struct rail rail = rail_of(c, &l);
    const struct rail_blocks blocks = { rail_block, &l };
    const struct host_parts parts = { .owners = l.ranks, .spans = l.hosts, .span = host_block };
    ct_status status;

    if (is_trip(c))
        return all_gather_one_trip(c, &l);
    copy_span(block_at(c, &c->recv, c->group->rank), block_at(c, &c->send, 0).data);
    status = rail_all_gather(&rail, (enum rail_way)c->algorithm->way, &blocks);
    return status == CT_OK ? host_share(c, &l, &parts) : status;
}

/* Returns the cost of the rail for the mean bytes of a host, since hosts may have different numbers
 * of bytes. */
static double all_gather_nodes_cost(const struct call *c, int way)
{
    return rail_all_gather_cost(c, (enum rail_way)way,
                                blocks_bytes(c, &c->recv) / (size_t)c->group->order.hosts);
}

const struct algorithm all_gather_nodes = { .name = "nodes",
                                            .fits = all_gather_few_hosts_fit,
                                            .run = all_gather_nodes_run,
                                            .cost = all_gather_nodes_cost,
                                            .way = RAIL_DIRECT };
const struct algorithm all_gather_nodes_doubling = { .name = "nodes_doubling",
                                                     .fits = equal_blocks_fit,
                                                     .run = all_gather_nodes_run,
                                                     .cost = all_gather_nodes_cost,
                                                     .way = RAIL_DOUBLING };
const struct algorithm all_gather_nodes_chain = { .name = "nodes_chain",
                                                  .fits = all_gather_nodes_fits,
                                                  .run = all_gather_nodes_run,
                                                  .cost = all_gather_nodes_cost,
                                                  .way = RAIL_CHAIN };
