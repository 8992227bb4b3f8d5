/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_scatter_shm.c - a slot holds a share of each block; rank r folds share r of all slots.
 *
 * Cost: p n copied in and p n folded by each rank, for blocks of n; a round a share. */
#include "collectives/operations.h"
#include "collectives/shm.h"

static void show(struct call *c, size_t at, size_t share, size_t n)
{
    for (int i = 0; i < c->group->size; i++) {
        const struct span block = block_at(c, &c->send, i);

        copy_span(span_of((char *)flat_own(c->group->flat) + (size_t)i * n,
                          piece_of(block.bytes, at, share)),
                  block.data + at);
    }
}

static ct_status run(struct call *c)
{
    struct flat *f = c->group->flat;
    const struct span out = block_at(c, &c->recv, 0);
    const size_t largest = largest_block(c, &c->send), share = share_of_slot(c);
    const void *sources[1024];
    size_t at = 0;
    ct_status status;

    do {
        const size_t n = piece_of(largest, at, share), mine = piece_of(out.bytes, at, share);

        status = flat_turn(f, n * (size_t)c->group->size);
        if (status == CT_OK) {
            show(c, at, share, n);
            status = flat_arrive(f);
        }
        if (status == CT_OK)
            status = flat_wait_all(f);
        for (int i = 0; i < c->group->size && status == CT_OK; i++)
            sources[i] = (const char *)flat_slot(f, i) + (size_t)c->group->rank * n;
        if (status == CT_OK && mine > 0)
            status = call_fold(c, out.data + at, sources, mine / c->element);
        at += n;
    } while (status == CT_OK && at < largest);
    return status;
}

const struct algorithm reduce_scatter_shm = { "shm", fits_shm, run };
