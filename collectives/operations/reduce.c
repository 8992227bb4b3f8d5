/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c - ct_reduce() and its algorithms. */
#include "collectives/core/algorithms.h"
#include "collectives/core/peers.h"

static ct_status reduce_direct_run(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0);
    const struct peers all = peers_of_group(c);

    return fold_at_root(c, &all, c->signature.root, in, span_of(c->recv.base, in.bytes));
}

static const struct algorithm reduce_direct = { .name = "direct", .run = reduce_direct_run };

const struct algorithm *const reduce_algorithms[] = { &reduce_shm,           &reduce_mpi,
                                                      &reduce_nodes,         &reduce_nodes_doubling,
                                                      &reduce_nodes_halving, &reduce_nodes_parts,
                                                      &reduce_direct,        NULL };

ct_status ct_reduce(ct_group *group, const void *send, void *recv, size_t count, ct_dtype dtype,
                    ct_op op, int root, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_REDUCE,
        .algorithms = reduce_algorithms,
        .dtype = dtype,
        .op = op,
        .root = root,
        .count = count,
        .send = { .base = (void *)(uintptr_t)send, .count = count, .blocks = 1 },
        .recv = { .base = recv, .count = count, .blocks = ct_rank(group) == root },
        .in_place = IN_PLACE_WHOLE,
    };

    return call_run(&request, work);
}
