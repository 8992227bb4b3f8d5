/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_shm.c - a slot holds a share of each block; rank r copies share r of all slots.
 *
 * A share is shown before anything is received at the same place, so in place
 * needs no copy.  Cost: p n copied in and out by each rank; a round a share. */
#include "collectives/operations.h"
#include "collectives/shm.h"

static ct_status one_round(struct call *c, size_t at, size_t n)
{
    struct flat *f = c->group->flat;
    const int p = c->group->size, rank = c->group->rank;
    ct_status status = flat_turn(f, n * (size_t)p);

    for (int i = 0; i < p && status == CT_OK; i++)
        copy_span(span_of((char *)flat_own(f) + (size_t)i * n, n),
                  block_at(c, &c->send, i).data + at);
    if (status == CT_OK)
        status = flat_arrive(f);
    if (status == CT_OK)
        status = flat_wait_all(f);
    for (int i = 0; i < p && status == CT_OK; i++)
        copy_span(span_of(block_at(c, &c->recv, i).data + at, n),
                  (const char *)flat_slot(f, i) + (size_t)rank * n);
    return status;
}

static ct_status run(struct call *c)
{
    const size_t bytes = call_bytes(c), share = share_of_slot(c);
    size_t at = 0;
    ct_status status;

    do {
        const size_t n = piece_of(bytes, at, share);

        status = one_round(c, at, n);
        at += n;
    } while (status == CT_OK && at < bytes);
    return status;
}

const struct algorithm all_to_all_shm = { "shm", fits_shm, run };
