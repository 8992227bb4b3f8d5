/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_shm.c - everybody shows its block, everybody copies all of them.
 *
 * Cost: p n copied out by each rank; directly 2 rounds, else a round a slot, and n copied in. */
#include "collectives/core/registry.h"
#include "collectives/core/shm_exchange.h"

static size_t in_all(const struct call *c)
{
    return blocks_bytes(c, &c->recv) * (size_t)c->group->size;
}

static ct_status direct(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;

    for (int i = rank; i < rank + p; i++) {
        const struct span block = block_at(c, &c->recv, i % p);

        copy_result(block.data, flat_send_of(c->group->flat, i % p), block.bytes, in_all(c));
    }
    return CT_OK;
}

static void show(struct call *c, size_t at, size_t n)
{
    const struct span in = block_at(c, &c->send, 0);

    flat_show(c->group->flat, 0, in.data + at, piece_of(in.bytes, at, n));
}

static ct_status take(struct call *c, size_t at, size_t n)
{
    for (int i = 0; i < c->group->size; i++) {
        const struct span block = block_at(c, &c->recv, i);

        copy_result(block.data + at,
                    i == c->group->rank ? block_at(c, &c->send, 0).data + at
                                        : flat_slot(c->group->flat, i),
                    piece_of(block.bytes, at, n), in_all(c));
    }
    return CT_OK;
}

static ct_status run(struct call *c)
{
    const struct slots s = { .bytes = largest_block(c, &c->recv),
                             .shares = 1,
                             .who = ALL_WAIT,
                             .show = show,
                             .take = take,
                             .direct = direct,
                             .sends = 1 };

    return slots_run(c, &s);
}

const struct algorithm all_gather_shm = { "shm", fits_shm, run, 0 };
