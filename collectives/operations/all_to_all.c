/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all.c - ct_all_to_all(), its v and list forms, and the table of algorithms. */
#include "collectives/core/algorithms.h"
#include "collectives/core/call.h"

const struct algorithm *const all_to_all_algorithms[] = { &all_to_all_shm,      &all_to_all_mpi,
                                                          &all_to_all_nodes,    &all_to_all_bruck,
                                                          &all_to_all_pairwise, NULL };

/* Must be inlined, so that __builtin_return_address(0) is in the caller of the public function. */
static inline __attribute__((always_inline)) ct_status
all_to_all_start(ct_group *group, struct blocks send, struct blocks recv, size_t count,
                 int operation, ct_dtype dtype, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = operation,
        .algorithms = all_to_all_algorithms,
        .dtype = dtype,
        .op = NONE,
        .root = NONE,
        .count = count,
        .send = send,
        .recv = recv,
        .in_place = IN_PLACE_WHOLE,
    };

    return call_run(&request, work);
}

ct_status ct_all_to_all(ct_group *group, const void *send, void *recv, size_t count, ct_dtype dtype,
                        ct_work **work)
{
    const int p = ct_size(group);

    return all_to_all_start(
        group, (struct blocks){ .base = (void *)(uintptr_t)send, .count = count, .blocks = p },
        (struct blocks){ .base = recv, .count = count, .blocks = p }, count, OPERATION_ALL_TO_ALL,
        dtype, work);
}

ct_status ct_all_to_all_list(ct_group *group, const void *const *send, void *const *recv,
                             size_t count, ct_dtype dtype, ct_work **work)
{
    const int p = ct_size(group);

    if (!send || !recv)
        return ct_fail(CT_ERR_INVALID, "all_to_all: a list of buffers is NULL");
    return all_to_all_start(
        group,
        (struct blocks){ .list = (void *const *)(uintptr_t)send, .count = count, .blocks = p },
        (struct blocks){ .list = recv, .count = count, .blocks = p }, count, OPERATION_ALL_TO_ALL,
        dtype, work);
}

ct_status ct_all_to_all_v(ct_group *group, const void *send, const size_t *send_counts,
                          const size_t *send_displs, void *recv, const size_t *recv_counts,
                          const size_t *recv_displs, ct_dtype dtype, ct_work **work)
{
    const int p = ct_size(group), rank = ct_rank(group);

    if (!send_counts || !recv_counts)
        return ct_fail(CT_ERR_INVALID, "all_to_all_v: send_counts or recv_counts is NULL");
    if (rank >= 0 && send_counts[rank] != recv_counts[rank])
        return ct_fail(CT_ERR_INVALID,
                       "all_to_all_v: rank %d sends itself %zu elements but "
                       "receives %zu from itself",
                       rank, send_counts[rank], recv_counts[rank]);
    return all_to_all_start(
        group,
        (struct blocks){ .base = (void *)(uintptr_t)send,
                         .counts = send_counts,
                         .displs = send_displs,
                         .blocks = p },
        (struct blocks){ .base = recv, .counts = recv_counts, .displs = recv_displs, .blocks = p },
        0, OPERATION_ALL_TO_ALL_V, dtype, work);
}
