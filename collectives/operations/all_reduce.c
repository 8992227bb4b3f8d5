/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce.c - ct_all_reduce() and the table of its algorithms, best first.  The shm_...
 * algorithms need a group on one host, and the nodes... algorithms need several hosts. */
#include "collectives/core/algorithms.h"
#include "collectives/core/peers.h"
#include "collectives/hosts/rail.h"

#define DOUBLING_FROM 6 /* minimum ranks; with fewer, one_shot's single step is faster */

/* ---- Among all ranks by messages --------------------------------------------------- */

/* True if the group is large enough and the order of the fold is free, since recursive doubling
 * folds ranks as a tree. */
static int recursive_doubling_fits(const struct call *c)
{
    return c->group->size >= DOUBLING_FROM && order_is_free(c);
}

static ct_status recursive_doubling_run(struct call *c)
{
    const struct rail ranks = rail_of_ranks(c);

    return rail_all_reduce_doubling(&ranks, block_at(c, &c->send, 0), block_at(c, &c->recv, 0));
}

static ct_status one_shot_run(struct call *c)
{
    const struct peers all = peers_of_group(c);

    return one_shot(c, &all, block_at(c, &c->send, 0), block_at(c, &c->recv, 0));
}

static ct_status two_shot_run(struct call *c)
{
    const struct peers all = peers_of_group(c);

    return two_shot(c, &all, block_at(c, &c->send, 0), block_at(c, &c->recv, 0));
}

static const struct algorithm all_reduce_recursive_doubling = { .name = "recursive_doubling",
                                                                .fits = recursive_doubling_fits,
                                                                .run = recursive_doubling_run,
                                                                .most = 8192 };
static const struct algorithm all_reduce_one_shot = { .name = "one_shot",
                                                      .run = one_shot_run,
                                                      .most = 4096 };
static const struct algorithm all_reduce_two_shot = { .name = "two_shot", .run = two_shot_run };

const struct algorithm *const all_reduce_algorithms[] = { &all_reduce_shm_one_shot,
                                                          &all_reduce_shm_two_shot,
                                                          &all_reduce_mpi,
                                                          &all_reduce_nodes,
                                                          &all_reduce_nodes_doubling,
                                                          &all_reduce_nodes_halving,
                                                          &all_reduce_recursive_doubling,
                                                          &all_reduce_one_shot,
                                                          &all_reduce_ring,
                                                          &all_reduce_two_shot,
                                                          NULL };

ct_status ct_all_reduce(ct_group *group, const void *send, void *recv, size_t count, ct_dtype dtype,
                        ct_op op, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_ALL_REDUCE,
        .algorithms = all_reduce_algorithms,
        .dtype = dtype,
        .op = op,
        .root = NONE,
        .count = count,
        .send = { .base = (void *)(uintptr_t)send, .count = count, .blocks = 1 },
        .recv = { .base = recv, .count = count, .blocks = 1 },
        .in_place = IN_PLACE_WHOLE,
    };

    return call_run(&request, work);
}
