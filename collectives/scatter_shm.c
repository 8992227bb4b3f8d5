/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_shm.c - the root's slot holds a share of each block, each rank copies its own.
 *
 * Cost: p n copied in by the root, n copied out by each rank; a round a share. */
#include "collectives/operations.h"
#include "collectives/shm.h"

static void show(struct call *c, size_t at, size_t n)
{
    for (int i = 0; i < c->group->size; i++)
        copy_span(span_of((char *)flat_own(c->group->flat) + (size_t)i * n, n),
                  block_at(c, &c->send, i).data + at);
}

static ct_status run(struct call *c)
{
    struct flat *f = c->group->flat;
    const struct span out = block_at(c, &c->recv, 0);
    const size_t share = share_of_slot(c);
    const int root = c->signature.root;
    size_t at = 0;
    ct_status status;

    do {
        const size_t n = piece_of(out.bytes, at, share);

        status = flat_turn(f, n * (size_t)c->group->size);
        if (status == CT_OK && call_is_root(c))
            show(c, at, n);
        if (status == CT_OK)
            status = flat_arrive(f);
        if (status == CT_OK && !call_is_root(c))
            status = flat_wait(f, root);
        if (status == CT_OK)
            copy_span(span_of(out.data + at, n),
                      (const char *)flat_slot(f, root) + (size_t)c->group->rank * n);
        at += n;
    } while (status == CT_OK && at < out.bytes);
    return status;
}

const struct algorithm scatter_shm = { "shm", fits_shm, run };
