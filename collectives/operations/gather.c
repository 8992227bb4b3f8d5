/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - ct_gather(), its v and list forms, and its algorithms. */
#include "collectives/core/algorithms.h"
#include "collectives/core/sendrecv.h"

/* Sends each rank's block directly to the root.  Cost at the root: alpha + (p-1) n beta. */
static ct_status gather_direct_run(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0);
    struct batch batch;
    ct_status status;

    if (!call_is_root(c))
        return send_to(c, c->signature.root, in);
    status = batch_begin(&batch, c, c->group->size);
    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            batch_recv(&batch, i, block_at(c, &c->recv, i));
    copy_span(block_at(c, &c->recv, c->group->rank), in.data);
    return batch_wait(&batch);
}

static const struct algorithm gather_direct = { .name = "direct", .run = gather_direct_run };

const struct algorithm *const gather_algorithms[] = { &gather_shm, &gather_mpi, &gather_nodes,
                                                      &gather_direct, NULL };

/* Must be inlined, so that __builtin_return_address(0) is in the caller of the public function. */
static inline __attribute__((always_inline)) ct_status
gather_start(ct_group *group, const void *send, size_t send_count, struct blocks recv, size_t count,
             int operation, ct_dtype dtype, int root, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = operation,
        .algorithms = gather_algorithms,
        .dtype = dtype,
        .op = NONE,
        .root = root,
        .count = count,
        .send = { .base = (void *)(uintptr_t)send, .count = send_count, .blocks = 1 },
        .recv = recv,
        .in_place = IN_PLACE_OWN_RECV,
    };

    return call_run(&request, work);
}

static int gather_blocks_here(const ct_group *group, int root)
{
    return ct_rank(group) == root ? ct_size(group) : 0;
}

ct_status ct_gather(ct_group *group, const void *send, void *recv, size_t count, ct_dtype dtype,
                    int root, ct_work **work)
{
    return gather_start(
        group, send, count,
        (struct blocks){ .base = recv, .count = count, .blocks = gather_blocks_here(group, root) },
        count, OPERATION_GATHER, dtype, root, work);
}

ct_status ct_gather_list(ct_group *group, const void *send, void *const *recv, size_t count,
                         ct_dtype dtype, int root, ct_work **work)
{
    const int blocks = gather_blocks_here(group, root);

    if (!recv && blocks > 0)
        return ct_fail(CT_ERR_INVALID, "gather: the root's list of recv buffers is NULL");
    return gather_start(
        group, send, count,
        (struct blocks){ .list = blocks ? recv : NULL, .count = count, .blocks = blocks }, count,
        OPERATION_GATHER, dtype, root, work);
}

ct_status ct_gather_v(ct_group *group, const void *send, size_t send_count, void *recv,
                      const size_t *recv_counts, const size_t *recv_displs, ct_dtype dtype,
                      int root, ct_work **work)
{
    const int blocks = gather_blocks_here(group, root), rank = ct_rank(group);

    if (blocks > 0 && !recv_counts)
        return ct_fail(CT_ERR_INVALID, "gather_v: the root's recv_counts is NULL");
    if (blocks > 0 && recv_counts[rank] != send_count)
        return ct_fail(CT_ERR_INVALID,
                       "gather_v: the root sends itself %zu elements but "
                       "recv_counts[%d] is %zu",
                       send_count, rank, recv_counts[rank]);
    return gather_start(group, send, send_count,
                        (struct blocks){ .base = recv,
                                         .counts = blocks ? recv_counts : NULL,
                                         .displs = blocks ? recv_displs : NULL,
                                         .blocks = blocks },
                        0, OPERATION_GATHER_V, dtype, root, work);
}
