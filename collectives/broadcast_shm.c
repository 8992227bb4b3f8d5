/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast_shm.c - the root writes into its slot, the others read from there.
 *
 * Two slots alternate, so the root fills one while the other is read.
 * Cost: n copied in, (p-1) n copied out, ceil(n / slot) rounds. */
#include "collectives/operations.h"
#include "collectives/shm.h"

static ct_status run(struct call *c)
{
    struct flat *f = c->group->flat;
    const struct span buf = block_at(c, &c->recv, 0);
    const int root = c->signature.root;
    size_t at = 0;
    ct_status status;

    do {
        const size_t n = piece_of(buf.bytes, at, FLAT_SLOT_BYTES);

        status = flat_turn(f, n);
        if (status == CT_OK && call_is_root(c))
            copy_span(span_of(flat_own(f), n), buf.data + at);
        if (status == CT_OK)
            status = flat_arrive(f);
        if (status == CT_OK && !call_is_root(c)) {
            status = flat_wait(f, root);
            if (status == CT_OK)
                copy_span(span_of(buf.data + at, n), flat_slot(f, root));
        }
        at += n;
    } while (status == CT_OK && at < buf.bytes);
    return status;
}

const struct algorithm broadcast_shm = { "shm", fits_shm, run };
