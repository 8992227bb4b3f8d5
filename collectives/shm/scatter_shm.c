/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_shm.c - the root puts a piece of each block into the slot of the rank that it is for,
 * which that rank does not use in this call; each rank copies its own.
 *
 * Cost: n copied out by each rank; directly 2 rounds, else a round for each slot, and p n copied
 * in by the root. */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

/* Each block is read once and written once. */
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
