/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_hier.c - hosts exchange their ranks' blocks, so that a block crosses once to each
 * other host, not once for each rank there.
 *
 * Few bytes: the host's first rank takes what all show, exchanges it with the first ranks of the
 * other hosts, and answers with all blocks.  Many bytes: each rank exchanges its block with the
 * ranks of its number on the other hosts, then the ranks of a host share what they have.
 * Cost: the lane's (lane.h) for n of each rank, and on the host a round, or p n read by each rank.
 * [multi-level: Open MPI HAN] */
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/lane.h"

typedef ct_status all_gather_way(const struct lane *lane, const struct lane_blocks *blocks);

static int all_gather_hier_fits(const struct call *c)
{
    return c->group->hosts > 1 && hosts_are_alike(c->group);
}

static int few_hosts_fit(const struct call *c)
{
    return all_gather_hier_fits(c) && c->group->hosts <= HOSTS_MOST_DIRECT;
}

static int equal_blocks_fit(const struct call *c)
{
    return all_gather_hier_fits(c) && c->signature.operation != OPERATION_ALL_GATHER_V;
}

/* ---- Few bytes ------------------------------------------------------------------- */

/* All blocks, host by host. */
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

static ct_status one_trip(struct call *c, const struct level *l, all_gather_way *way)
{
    const struct span mine = block_at(c, &c->send, 0);
    const size_t n = mine.bytes, all = n * (size_t)c->group->size;
    const struct packed packed = { call_scratch(c, all), n * (size_t)l->ranks };
    const struct lane_blocks blocks = { packed_block, &packed };
    const struct lane lane = lane_of(c, l);
    struct host_trip trip;
    ct_status status = host_trip_begin(&trip, c, l, 0, n, all);

    if (status == CT_OK && !packed.all)
        status = ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d ranks", c->group->size);
    if (status == CT_OK)
        status = host_show(&trip, mine);
    if (status == CT_OK && l->rank == 0) {
        for (int i = 0; i < l->ranks; i++)
            copy_span(span_of(packed_block(c, &packed, l->host).data + (size_t)i * n, n),
                      trip.shown[i]);
        status = way(&lane, &blocks);
    }
    if (status == CT_OK)
        status = host_answer(&trip, span_of(packed.all, all));
    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        copy_span(block_at(c, &c->recv, c->group->fold_rank[i]), packed.all + (size_t)i * n);
    host_trip_end(&trip);
    call_scratch_end(c, packed.all);
    return status;
}

/* ---- Many bytes ------------------------------------------------------------------- */

/* Of the ranks of this rank's number. */
static struct span lane_block(const struct call *c, const void *arg, int host)
{
    const struct level *l = arg;

    return block_at(c, &c->recv, host_rank(c->group, host, l->rank));
}

static struct span host_block(const struct call *c, const void *arg, int owner, int host)
{
    (void)arg;
    return block_at(c, &c->recv, host_rank(c->group, host, owner));
}

static ct_status run(struct call *c, all_gather_way *way)
{
    const struct level l = level_of(c->group, c->group->rank);
    const struct lane lane = lane_of(c, &l);
    const struct lane_blocks blocks = { lane_block, &l };
    const struct host_parts parts = { .owners = l.ranks, .spans = l.hosts, .span = host_block };
    ct_status status;

    if (is_trip(c))
        return one_trip(c, &l, way);
    copy_span(block_at(c, &c->recv, c->group->rank), block_at(c, &c->send, 0).data);
    status = way(&lane, &blocks);
    return status == CT_OK ? host_share(c, &l, &parts) : status;
}

/* ---- Rows ----------------------------------------------------------------------- */

static ct_status direct_run(struct call *c)
{
    return run(c, lane_all_gather_direct);
}

static ct_status doubling_run(struct call *c)
{
    return run(c, lane_all_gather_doubling);
}

static ct_status chain_run(struct call *c)
{
    return run(c, lane_all_gather_chain);
}

/* What all ranks of a host give; ranks that do not know each other's sizes take the average. */
static size_t host_bytes(const struct call *c)
{
    const size_t all = blocks_bytes(c, &c->recv);

    return all / (size_t)c->group->hosts;
}

static double direct_cost(const struct call *c)
{
    return lane_all_gather_cost(c, LANE_DIRECT, host_bytes(c));
}

static double doubling_cost(const struct call *c)
{
    return lane_all_gather_cost(c, LANE_DOUBLING, host_bytes(c));
}

static double chain_cost(const struct call *c)
{
    return lane_all_gather_cost(c, LANE_CHAIN, host_bytes(c));
}

const struct algorithm all_gather_nodes = { "nodes", few_hosts_fit, direct_run, 0, direct_cost };
const struct algorithm all_gather_nodes_doubling = { "nodes_doubling", equal_blocks_fit,
                                                     doubling_run, 0, doubling_cost };
const struct algorithm all_gather_nodes_chain = { "nodes_chain", all_gather_hier_fits, chain_run, 0,
                                                  chain_cost };
