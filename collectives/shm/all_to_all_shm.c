/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_shm.c - all-to-all on one host.  A slot holds a piece of each block, and rank r copies
 * piece r of all slots.
 *
 * Through slots a call in place needs no copy, since a piece is in its slot before the rank
 * receives at the same place.  Directly between buffers no call in place can run, since a rank
 * would overwrite what another rank has not read yet.
 * Cost: each rank copies p n bytes to its output.  Directly the call takes 2 rounds.  Through slots
 * it takes a round for each piece, and each rank also copies p n bytes to its slot. */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

static size_t all_to_all_in_all(const struct call *c)
{
    return call_bytes(c) * (size_t)c->group->size * (size_t)c->group->size;
}

static ct_status all_to_all_shm_direct(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;

    for (int i = rank; i < rank + p; i++) {
        const struct span block = block_at(c, &c->recv, i % p);

        copy_result(block.data,
                    shm_group_send_of(c->group->shm, i % p) + (size_t)rank * block.bytes,
                    block.bytes, all_to_all_in_all(c));
    }
    return CT_OK;
}

static void all_to_all_shm_show(struct call *c, size_t at, size_t n)
{
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            shm_group_write(c->group->shm, (size_t)i * n, block_at(c, &c->send, i).data + at, n);
}

static ct_status all_to_all_shm_take(struct call *c, size_t at, size_t n)
{
    const int rank = c->group->rank;

    for (int i = 0; i < c->group->size; i++)
        copy_result(block_at(c, &c->recv, i).data + at,
                    i == rank ? block_at(c, &c->send, i).data + at
                              : (const char *)shm_group_slot(c->group->shm, i) + (size_t)rank * n,
                    n, all_to_all_in_all(c));
    return CT_OK;
}

static ct_status all_to_all_shm_run(struct call *c)
{
    const struct slots s = { .bytes = call_bytes(c),
                             .shares = c->group->size,
                             .waiters = ALL_WAIT,
                             .show = all_to_all_shm_show,
                             .take = all_to_all_shm_take,
                             .direct = all_to_all_shm_direct,
                             .sends = c->group->size,
                             .in_place_is_shown = 1 };

    return slots_run(c, &s);
}

const struct algorithm all_to_all_shm = { .name = "shm",
                                          .fits = fits_shm,
                                          .run = all_to_all_shm_run };
