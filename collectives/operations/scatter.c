/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.c - ct_scatter(), its v and list forms, and its algorithms. */
#include "collectives/core/algorithms.h"
#include "collectives/core/sendrecv.h"

/* Sends each rank's block directly from the root.  Cost at the root: alpha + (p-1) n beta. */
static ct_status scatter_direct_run(struct call *c)
{
    const struct span out = block_at(c, &c->recv, 0);
    struct batch batch;
    ct_status status;

    if (!call_is_root(c))
        return recv_from(c, c->signature.root, out);
    status = batch_begin(&batch, c, c->group->size);
    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            batch_send(&batch, i, block_at(c, &c->send, i));
    copy_span(out, block_at(c, &c->send, c->group->rank).data);
    return batch_wait(&batch);
}

static const struct algorithm scatter_direct = { .name = "direct", .run = scatter_direct_run };

const struct algorithm *const scatter_algorithms[] = { &scatter_shm, &scatter_mpi, &scatter_nodes,
                                                       &scatter_direct, NULL };

/* Must be inlined, so that __builtin_return_address(0) is in the caller of the public function. */
static inline __attribute__((always_inline)) ct_status
scatter_start(ct_group *group, struct blocks send, void *recv, size_t recv_count, size_t count,
              int operation, ct_dtype dtype, int root, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = operation,
        .algorithms = scatter_algorithms,
        .dtype = dtype,
        .op = NONE,
        .root = root,
        .count = count,
        .send = send,
        .recv = { .base = recv, .count = recv_count, .blocks = 1 },
        .in_place = IN_PLACE_OWN_SEND,
    };

    return call_run(&request, work);
}

static int scatter_blocks_here(const ct_group *group, int root)
{
    return ct_rank(group) == root ? ct_size(group) : 0;
}

ct_status ct_scatter(ct_group *group, const void *send, void *recv, size_t count, ct_dtype dtype,
                     int root, ct_work **work)
{
    return scatter_start(group,
                         (struct blocks){ .base = (void *)(uintptr_t)send,
                                          .count = count,
                                          .blocks = scatter_blocks_here(group, root) },
                         recv, count, count, OPERATION_SCATTER, dtype, root, work);
}

ct_status ct_scatter_list(ct_group *group, const void *const *send, void *recv, size_t count,
                          ct_dtype dtype, int root, ct_work **work)
{
    const int blocks = scatter_blocks_here(group, root);

    if (!send && blocks > 0)
        return ct_fail(CT_ERR_INVALID, "scatter: the root's list of send buffers is NULL");
    return scatter_start(group,
                         (struct blocks){ .list = blocks ? (void *const *)(uintptr_t)send : NULL,
                                          .count = count,
                                          .blocks = blocks },
                         recv, count, count, OPERATION_SCATTER, dtype, root, work);
}

ct_status ct_scatter_v(ct_group *group, const void *send, const size_t *send_counts,
                       const size_t *send_displs, void *recv, size_t recv_count, ct_dtype dtype,
                       int root, ct_work **work)
{
    const int blocks = scatter_blocks_here(group, root), rank = ct_rank(group);

    if (blocks > 0 && !send_counts)
        return ct_fail(CT_ERR_INVALID, "scatter_v: the root's send_counts is NULL");
    if (blocks > 0 && send_counts[rank] != recv_count)
        return ct_fail(CT_ERR_INVALID,
                       "scatter_v: the root receives %zu elements but "
                       "send_counts[%d] is %zu",
                       recv_count, rank, send_counts[rank]);
    return scatter_start(group,
                         (struct blocks){ .base = (void *)(uintptr_t)send,
                                          .counts = blocks ? send_counts : NULL,
                                          .displs = blocks ? send_displs : NULL,
                                          .blocks = blocks },
                         recv, recv_count, 0, OPERATION_SCATTER_V, dtype, root, work);
}
