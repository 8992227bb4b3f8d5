/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_scatter_shm.c - reduce-scatter on one host.  Each rank folds its block of all inputs.
 *
 * Through slots, a slot holds a piece of each block, and rank r folds piece r of all slots.
 * Directly between buffers, each rank folds its block from the buffers of all ranks.
 * Cost: each rank reads p n bytes and writes n bytes, for blocks of n bytes.  Directly the call
 * takes 2 rounds.  Through slots it takes a round for each piece, and each rank also copies (p-1) n
 * bytes to its slot. */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

static ct_status reduce_scatter_shm_direct(struct call *c)
{
    const struct shm_group *f = c->group->shm;
    const void *inputs[SHM_GROUP_MOST];

    for (int i = 0; i < c->group->size; i++)
        inputs[i] = shm_group_send_of(f, i) + (size_t)c->group->rank * call_bytes(c);
    return call_fold(c, block_at(c, &c->recv, 0).data, inputs, c->signature.count);
}

static void reduce_scatter_shm_show(struct call *c, size_t at, size_t n)
{
    for (int i = 0; i < c->group->size; i++) {
        const struct span block = block_at(c, &c->send, i);

        if (i != c->group->rank)
            shm_group_write(c->group->shm, (size_t)i * n, block.data + at,
                            piece_of(block.bytes, at, n));
    }
}

static ct_status reduce_scatter_shm_take(struct call *c, size_t at, size_t n)
{
    const struct shm_group *f = c->group->shm;
    const struct span out = block_at(c, &c->recv, 0);
    const size_t mine = piece_of(out.bytes, at, n);
    const void *inputs[SHM_GROUP_MOST];

    if (mine == 0)
        return CT_OK;
    for (int i = 0; i < c->group->size; i++)
        inputs[i] = (const char *)shm_group_slot(f, i) + (size_t)c->group->rank * n;
    inputs[c->group->rank] = block_at(c, &c->send, c->group->rank).data + at;
    return call_fold(c, out.data + at, inputs, mine / c->element);
}

static ct_status reduce_scatter_shm_run(struct call *c)
{
    const struct slots s = { .bytes = largest_block(c, &c->send),
                             .shares = c->group->size,
                             .waiters = ALL_WAIT,
                             .show = reduce_scatter_shm_show,
                             .take = reduce_scatter_shm_take,
                             .direct = reduce_scatter_shm_direct,
                             .sends = c->group->size };

    return slots_run(c, &s);
}

const struct algorithm reduce_scatter_shm = { .name = "shm",
                                              .fits = fits_shm,
                                              .run = reduce_scatter_shm_run };
