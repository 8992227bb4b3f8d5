/* SPDX-License-Identifier: Apache-2.0 */
/* gather_shm.c - everybody shows its block, the root copies them.
 *
 * Cost: n copied in by each rank, p n copied out by the root; a round a slot. */
#include "collectives/operations.h"
#include "collectives/shm.h"

static void collect(struct call *c, size_t at, size_t n)
{
    for (int i = 0; i < c->group->size; i++) {
        const struct span block = block_at(c, &c->recv, i);

        copy_span(span_of(block.data + at, n), flat_slot(c->group->flat, i));
    }
}

static ct_status run(struct call *c)
{
    struct flat *f = c->group->flat;
    const struct span in = block_at(c, &c->send, 0);
    size_t at = 0;
    ct_status status;

    do {
        const size_t n = piece_of(in.bytes, at, FLAT_SLOT_BYTES);

        status = flat_turn(f, n);
        if (status == CT_OK) {
            copy_span(span_of(flat_own(f), n), in.data + at);
            status = flat_arrive(f);
        }
        if (status == CT_OK && call_is_root(c)) {
            status = flat_wait_all(f);
            if (status == CT_OK)
                collect(c, at, n);
        }
        at += n;
    } while (status == CT_OK && at < in.bytes);
    return status;
}

const struct algorithm gather_shm = { "shm", fits_shm, run };
