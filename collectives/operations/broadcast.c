/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast.c - ct_broadcast() and its algorithms. */
#include "collectives/core/algorithms.h"
#include "collectives/hosts/rail.h"

/* The most ranks for `direct`.  With more ranks, the bytes on the root's wire cost more than the
 * steps of a tree. */
#define DIRECT_RANKS 4

/* ---- Among all ranks by messages --------------------------------------------------- */

static int broadcast_direct_fits(const struct call *c)
{
    return c->group->size <= DIRECT_RANKS;
}

static ct_status broadcast_ranks_run(struct call *c)
{
    const struct rail ranks = rail_of_ranks(c);

    return rail_broadcast(&ranks, (enum rail_way)c->algorithm->way,
                          c->group->order.fold_at[c->signature.root], block_at(c, &c->recv, 0));
}

static const struct algorithm broadcast_direct = { .name = "direct",
                                                   .fits = broadcast_direct_fits,
                                                   .run = broadcast_ranks_run,
                                                   .most = 8192,
                                                   .way = RAIL_DIRECT };
static const struct algorithm broadcast_binomial = {
    .name = "binomial", .run = broadcast_ranks_run, .most = (size_t)64 << 10, .way = RAIL_DOUBLING
};
static const struct algorithm broadcast_ring = { .name = "ring",
                                                 .run = broadcast_ranks_run,
                                                 .way = RAIL_CHAIN };

const struct algorithm *const broadcast_algorithms[] = {
    &broadcast_shm,           &broadcast_mpi,
    &broadcast_nodes,         &broadcast_nodes_doubling,
    &broadcast_nodes_halving, &broadcast_nodes_chain,
    &broadcast_direct,        &broadcast_binomial,
    &broadcast_ring,          NULL
};

ct_status ct_broadcast(ct_group *group, void *buf, size_t count, ct_dtype dtype, int root,
                       ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_BROADCAST,
        .algorithms = broadcast_algorithms,
        .dtype = dtype,
        .op = NONE,
        .root = root,
        .count = count,
        .recv = { .base = buf, .count = count, .blocks = 1 },
    };

    return call_run(&request, work);
}
