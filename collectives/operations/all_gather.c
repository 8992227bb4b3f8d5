/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather.c - ct_all_gather(), its v and list forms, and the table of algorithms. */
#include "collectives/core/algorithms.h"
#include "collectives/hosts/rail.h"

#define DOUBLING_FROM 9 /* minimum ranks; with fewer, p-1 messages at once are faster */
/* The most ranks for the direct algorithm, in which a rank needs a connection to each other rank.
 * A process may have only 1024 descriptors.  In larger groups, bruck needs log2(p) connections and
 * ring needs 2. */
#define DIRECT_RANKS 64

/* ---- Among all ranks by messages --------------------------------------------------- */

static int bruck_fits(const struct call *c)
{
    return c->signature.operation != OPERATION_ALL_GATHER_V && c->group->size >= DOUBLING_FROM;
}

static int all_gather_direct_fits(const struct call *c)
{
    return c->group->size <= DIRECT_RANKS;
}

static struct span rank_block(const struct call *c, const void *arg, int number)
{
    (void)arg;
    return block_at(c, &c->recv, c->group->order.fold_rank[number]);
}

static ct_status all_gather_ranks_run(struct call *c)
{
    const struct rail ranks = rail_of_ranks(c);
    const struct rail_blocks blocks = { .block = rank_block };

    copy_span(block_at(c, &c->recv, c->group->rank), block_at(c, &c->send, 0).data);
    return rail_all_gather(&ranks, (enum rail_way)c->algorithm->way, &blocks);
}

static const struct algorithm all_gather_bruck = { .name = "bruck",
                                                   .fits = bruck_fits,
                                                   .run = all_gather_ranks_run,
                                                   .most = 1024,
                                                   .way = RAIL_DOUBLING };
static const struct algorithm all_gather_direct = { .name = "direct",
                                                    .fits = all_gather_direct_fits,
                                                    .run = all_gather_ranks_run,
                                                    .most = (size_t)32 << 10,
                                                    .way = RAIL_DIRECT };
static const struct algorithm all_gather_ring = { .name = "ring",
                                                  .run = all_gather_ranks_run,
                                                  .way = RAIL_CHAIN };

const struct algorithm *const all_gather_algorithms[] = { &all_gather_shm,
                                                          &all_gather_mpi,
                                                          &all_gather_nodes,
                                                          &all_gather_nodes_doubling,
                                                          &all_gather_nodes_chain,
                                                          &all_gather_bruck,
                                                          &all_gather_direct,
                                                          &all_gather_ring,
                                                          NULL };

/* Must be inlined, so that __builtin_return_address(0) is in the caller of the public function. */
static inline __attribute__((always_inline)) ct_status
all_gather_start(ct_group *group, const void *send, size_t send_count, struct blocks recv,
                 size_t count, int operation, ct_dtype dtype, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = operation,
        .algorithms = all_gather_algorithms,
        .dtype = dtype,
        .op = NONE,
        .root = NONE,
        .count = count,
        .send = { .base = (void *)(uintptr_t)send, .count = send_count, .blocks = 1 },
        .recv = recv,
        .in_place = IN_PLACE_OWN_RECV,
    };

    return call_run(&request, work);
}

ct_status ct_all_gather(ct_group *group, const void *send, void *recv, size_t count, ct_dtype dtype,
                        ct_work **work)
{
    return all_gather_start(
        group, send, count,
        (struct blocks){ .base = recv, .count = count, .blocks = ct_size(group) }, count,
        OPERATION_ALL_GATHER, dtype, work);
}

ct_status ct_all_gather_list(ct_group *group, const void *send, void *const *recv, size_t count,
                             ct_dtype dtype, ct_work **work)
{
    if (!recv)
        return ct_fail(CT_ERR_INVALID, "all_gather: the list of recv buffers is NULL");
    return all_gather_start(
        group, send, count,
        (struct blocks){ .list = recv, .count = count, .blocks = ct_size(group) }, count,
        OPERATION_ALL_GATHER, dtype, work);
}

ct_status ct_all_gather_v(ct_group *group, const void *send, size_t send_count, void *recv,
                          const size_t *recv_counts, const size_t *recv_displs, ct_dtype dtype,
                          ct_work **work)
{
    const int rank = ct_rank(group);

    if (!recv_counts)
        return ct_fail(CT_ERR_INVALID, "all_gather_v: recv_counts is NULL");
    if (rank >= 0 && recv_counts[rank] != send_count)
        return ct_fail(CT_ERR_INVALID,
                       "all_gather_v: this rank sends %zu elements but "
                       "recv_counts[%d], its own, is %zu",
                       send_count, rank, recv_counts[rank]);
    return all_gather_start(
        group, send, send_count,
        (struct blocks){
            .base = recv, .counts = recv_counts, .displs = recv_displs, .blocks = ct_size(group) },
        0, OPERATION_ALL_GATHER_V, dtype, work);
}
