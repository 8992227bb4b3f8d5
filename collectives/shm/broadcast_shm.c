/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast_shm.c - broadcast on one host.  The root writes into its slot, and the other ranks copy
 * from there.
 *
 * The root fills one slot while the other ranks read the slots before it.
 * Cost: the other ranks together copy (p-1) n bytes to their outputs.  Directly between buffers the
 * call takes 2 rounds.  Through slots it takes a round for each piece, and the root also copies n
 * bytes to its slot. */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

static ct_status broadcast_shm_direct(struct call *c)
{
    const struct span buf = block_at(c, &c->recv, 0);

    copy_result(buf.data, shm_group_send_of(c->group->shm, c->signature.root), buf.bytes,
                buf.bytes * (size_t)c->group->size);
    return CT_OK;
}

static void broadcast_shm_show(struct call *c, size_t at, size_t n)
{
    if (call_is_root(c))
        shm_group_write(c->group->shm, 0, block_at(c, &c->recv, 0).data + at, n);
}

static ct_status broadcast_shm_take(struct call *c, size_t at, size_t n)
{
    if (!call_is_root(c))
        copy_result(block_at(c, &c->recv, 0).data + at,
                    shm_group_slot(c->group->shm, c->signature.root), n,
                    call_bytes(c) * (size_t)c->group->size);
    return CT_OK;
}

static ct_status broadcast_shm_run(struct call *c)
{
    const struct slots s = { .bytes = call_bytes(c),
                             .shares = 1,
                             .waiters = OTHERS_WAIT,
                             .show = broadcast_shm_show,
                             .take = broadcast_shm_take,
                             .direct = broadcast_shm_direct,
                             .sends = 1 };

    return slots_run(c, &s);
}

const struct algorithm broadcast_shm = { .name = "shm",
                                         .fits = fits_shm,
                                         .run = broadcast_shm_run };
