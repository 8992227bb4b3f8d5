/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast.c - ct_broadcast and its algorithms. */
#include "collectives/core/call.h"

extern const struct algorithm broadcast_shm, broadcast_nodes, broadcast_nodes_doubling,
    broadcast_nodes_halving, broadcast_nodes_chain, broadcast_binomial, broadcast_ring,
    broadcast_direct;

const struct algorithm *const broadcast_algorithms[] = {
    &broadcast_shm,           &broadcast_nodes,       &broadcast_nodes_doubling,
    &broadcast_nodes_halving, &broadcast_nodes_chain, &broadcast_direct,
    &broadcast_binomial,      &broadcast_ring,        NULL
};

ct_status ct_broadcast(ct_group *group, void *buf, size_t count, ct_dtype dtype, int root,
                       ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_BROADCAST,
        .dtype = dtype,
        .op = NONE,
        .root = root,
        .count = count,
        .recv = { .base = buf, .count = count, .blocks = 1 },
    };

    return call_run(&request, work);
}
