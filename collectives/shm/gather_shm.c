/* SPDX-License-Identifier: Apache-2.0 */
/* gather_shm.c - gather on one host.  Each rank writes its block into its slot, and the root copies
 * the blocks from all slots.
 *
 * Cost: the root copies p n bytes to its output.  Directly between buffers the call takes 2 rounds.
 * Through slots it takes a round for each piece, and each rank also copies n bytes to its slot. */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

/* Returns the bytes that the call moves: each block is read once and written once. */
static size_t gather_in_all(const struct call *c)
{
    return 2 * call_bytes(c) * (size_t)c->group->size;
}

static ct_status gather_shm_direct(struct call *c)
{
    for (int i = 0; i < c->recv.blocks; i++) {
        const struct span block = block_at(c, &c->recv, i);

        copy_result(block.data, shm_group_send_of(c->group->shm, i), block.bytes, gather_in_all(c));
    }
    return CT_OK;
}

static void gather_shm_show(struct call *c, size_t at, size_t n)
{
    if (!call_is_root(c))
        shm_group_write(c->group->shm, 0, block_at(c, &c->send, 0).data + at, n);
}

static ct_status gather_shm_take(struct call *c, size_t at, size_t n)
{
    for (int i = 0; i < c->recv.blocks; i++)
        copy_result(block_at(c, &c->recv, i).data + at,
                    i == c->group->rank ? block_at(c, &c->send, 0).data + at
                                        : shm_group_slot(c->group->shm, i),
                    n, gather_in_all(c));
    return CT_OK;
}

static ct_status gather_shm_run(struct call *c)
{
    const struct slots s = { .bytes = call_bytes(c),
                             .shares = 1,
                             .waiters = ROOT_WAITS,
                             .show = gather_shm_show,
                             .take = gather_shm_take,
                             .direct = gather_shm_direct,
                             .sends = 1 };

    return slots_run(c, &s);
}

const struct algorithm gather_shm = { .name = "shm", .fits = fits_shm, .run = gather_shm_run };
