/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_shm.c - everybody shows its input, the root folds all of it.
 *
 * Cost: n copied by each rank, p n read and n written by the root. */
#include <stdlib.h>

#include "collectives/operations.h"
#include "collectives/shm.h"

static ct_status fold(struct call *c, char *to, size_t bytes)
{
    const struct flat *f = c->group->flat;
    const void *sources[1024];

    for (int i = 0; i < c->group->size; i++)
        sources[i] = flat_slot(f, i);
    return call_fold(c, to, sources, bytes / c->element);
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
            if (status == CT_OK && n > 0)
                status = fold(c, (char *)c->recv.base + at, n);
        }
        at += n;
    } while (status == CT_OK && at < in.bytes);
    return status;
}

const struct algorithm reduce_shm = { "shm", fits_shm, run };
