/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_shm.c - everybody shows its block, everybody copies all of them.
 *
 * Cost: n copied in and p n copied out by each rank; a round a slot. */
#include "collectives/operations.h"
#include "collectives/shm.h"

static void collect(struct call *c, size_t at)
{
    for (int i = 0; i < c->group->size; i++) {
        const struct span block = block_at(c, &c->recv, i);

        copy_span(span_of(block.data + at, piece_of(block.bytes, at, FLAT_SLOT_BYTES)),
                  flat_slot(c->group->flat, i));
    }
}

static ct_status run(struct call *c)
{
    struct flat *f = c->group->flat;
    const struct span in = block_at(c, &c->send, 0);
    const size_t largest = largest_block(c, &c->recv);
    size_t at = 0;
    ct_status status;

    do {
        const size_t n = piece_of(largest, at, FLAT_SLOT_BYTES);

        status = flat_turn(f, n);
        if (status == CT_OK) {
            copy_span(span_of(flat_own(f), piece_of(in.bytes, at, FLAT_SLOT_BYTES)), in.data + at);
            status = flat_arrive(f);
        }
        if (status == CT_OK)
            status = flat_wait_all(f);
        if (status == CT_OK)
            collect(c, at);
        at += n;
    } while (status == CT_OK && at < largest);
    return status;
}

const struct algorithm all_gather_shm = { "shm", fits_shm, run };
