/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_shm.c - scatter on one host.  The root writes a piece of each block into the slot of the
 * rank that gets the block, and this rank copies the piece.  In this call no rank but the root
 * writes into slots.
 *
 * Cost: each rank copies n bytes to its output.  Directly between buffers the call takes 2 rounds.
 * Through slots it takes a round for each piece, and the root also copies p n bytes to the slots.
 */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

/* Returns the bytes that the call moves: each block is read once and written once. */
static size_t scatter_in_all(const struct call *c)
{
    return 2 * call_bytes(c) * (size_t)c->group->size;
}

static ct_status scatter_shm_direct(struct call *c)
{
    const struct span out = block_at(c, &c->recv, 0);

    copy_result(out.data,
                shm_group_send_of(c->group->shm, c->signature.root)
                    + (size_t)c->group->rank * out.bytes,
                out.bytes, scatter_in_all(c));
    return CT_OK;
}

static void scatter_shm_show(struct call *c, size_t at, size_t n)
{
    for (int i = 0; i < c->send.blocks; i++)
        if (i != c->group->rank)
            shm_group_write_to(c->group->shm, i, block_at(c, &c->send, i).data + at, n);
}

static ct_status scatter_shm_take(struct call *c, size_t at, size_t n)
{
    copy_result(block_at(c, &c->recv, 0).data + at,
                call_is_root(c)
                    ? block_at(c, &c->send, c->group->rank).data + at
                    : (const char *)shm_group_written_here(c->group->shm, c->signature.root, n),
                n, scatter_in_all(c));
    return CT_OK;
}

static ct_status scatter_shm_run(struct call *c)
{
    const struct slots s = { .bytes = call_bytes(c),
                             .shares = c->group->size,
                             .apart = 1,
                             .waiters = OTHERS_WAIT,
                             .show = scatter_shm_show,
                             .take = scatter_shm_take,
                             .direct = scatter_shm_direct,
                             .sends = c->group->size };

    return slots_run(c, &s);
}

const struct algorithm scatter_shm = { .name = "shm", .fits = fits_shm, .run = scatter_shm_run };
