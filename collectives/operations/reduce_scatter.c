/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_scatter.c - ct_reduce_scatter(), its v and list forms, and the table of algorithms. */
#include "collectives/core/algorithms.h"
#include "collectives/core/call.h"

const struct algorithm *const reduce_scatter_algorithms[] = { &reduce_scatter_shm,
                                                              &reduce_scatter_mpi,
                                                              &reduce_scatter_nodes,
                                                              &reduce_scatter_nodes_doubling,
                                                              &reduce_scatter_nodes_halving,
                                                              &reduce_scatter_direct,
                                                              NULL };

/* Must be inlined, so that __builtin_return_address(0) is in the caller of the public function. */
static inline __attribute__((always_inline)) ct_status
reduce_scatter_start(ct_group *group, struct blocks send, struct blocks recv, size_t count,
                     int operation, ct_dtype dtype, ct_op op, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = operation,
        .algorithms = reduce_scatter_algorithms,
        .dtype = dtype,
        .op = op,
        .root = NONE,
        .count = count,
        .send = send,
        .recv = recv,
        .in_place = IN_PLACE_OWN_SEND,
    };

    return call_run(&request, work);
}

ct_status ct_reduce_scatter(ct_group *group, const void *send, void *recv, size_t recv_count,
                            ct_dtype dtype, ct_op op, ct_work **work)
{
    return reduce_scatter_start(group,
                                (struct blocks){ .base = (void *)(uintptr_t)send,
                                                 .count = recv_count,
                                                 .blocks = ct_size(group) },
                                (struct blocks){ .base = recv, .count = recv_count, .blocks = 1 },
                                recv_count, OPERATION_REDUCE_SCATTER, dtype, op, work);
}

ct_status ct_reduce_scatter_list(ct_group *group, const void *const *send, void *recv, size_t count,
                                 ct_dtype dtype, ct_op op, ct_work **work)
{
    if (!send)
        return ct_fail(CT_ERR_INVALID, "reduce_scatter: the list of send buffers is NULL");
    return reduce_scatter_start(group,
                                (struct blocks){ .list = (void *const *)(uintptr_t)send,
                                                 .count = count,
                                                 .blocks = ct_size(group) },
                                (struct blocks){ .base = recv, .count = count, .blocks = 1 }, count,
                                OPERATION_REDUCE_SCATTER, dtype, op, work);
}

ct_status ct_reduce_scatter_v(ct_group *group, const void *send, void *recv,
                              const size_t *recv_counts, ct_dtype dtype, ct_op op, ct_work **work)
{
    const int rank = ct_rank(group);

    if (!recv_counts)
        return ct_fail(CT_ERR_INVALID, "reduce_scatter_v: recv_counts is NULL");
    return reduce_scatter_start(
        group,
        (struct blocks){
            .base = (void *)(uintptr_t)send, .counts = recv_counts, .blocks = ct_size(group) },
        (struct blocks){ .base = recv, .count = rank >= 0 ? recv_counts[rank] : 0, .blocks = 1 }, 0,
        OPERATION_REDUCE_SCATTER_V, dtype, op, work);
}
