/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_shm.c - all-gather on one host.  Each rank writes its block into its slot, and all
 * ranks copy the blocks from all slots.
 *
 * Cost: each rank copies p n bytes to its output.  Directly between buffers the call takes 2
 * rounds.  Through slots it takes a round for each piece, and each rank also copies n bytes to its
 * slot. */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

static size_t all_gather_in_all(const struct call *c)
{
    return blocks_bytes(c, &c->recv) * (size_t)c->group->size;
}

static ct_status all_gather_shm_direct(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;

    for (int i = rank; i < rank + p; i++) {
        const struct span block = block_at(c, &c->recv, i % p);

        copy_result(block.data, shm_group_send_of(c->group->shm, i % p), block.bytes,
                    all_gather_in_all(c));
    }
    return CT_OK;
}

static void all_gather_shm_show(struct call *c, size_t at, size_t n)
{
    const struct span in = block_at(c, &c->send, 0);

    shm_group_write(c->group->shm, 0, in.data + at, piece_of(in.bytes, at, n));
}

static ct_status all_gather_shm_take(struct call *c, size_t at, size_t n)
{
    for (int i = 0; i < c->group->size; i++) {
        const struct span block = block_at(c, &c->recv, i);

        copy_result(block.data + at,
                    i == c->group->rank ? block_at(c, &c->send, 0).data + at
                                        : shm_group_slot(c->group->shm, i),
                    piece_of(block.bytes, at, n), all_gather_in_all(c));
    }
    return CT_OK;
}

static ct_status all_gather_shm_run(struct call *c)
{
    const struct slots s = { .bytes = largest_block(c, &c->recv),
                             .shares = 1,
                             .waiters = ALL_WAIT,
                             .show = all_gather_shm_show,
                             .take = all_gather_shm_take,
                             .direct = all_gather_shm_direct,
                             .sends = 1 };

    return slots_run(c, &s);
}

const struct algorithm all_gather_shm = { .name = "shm",
                                          .fits = fits_shm,
                                          .run = all_gather_shm_run };
