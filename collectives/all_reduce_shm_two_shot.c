/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_shm_two_shot.c - each rank folds its part of everybody's slot, then
 * copies the others' parts.
 *
 * Part r of rank r's own slot is read by rank r alone, so its result is written
 * there, in place, and the second round shows it.
 * Cost: two rounds a slot; 2 n copied and p n/p = n folded by each rank.
 * [reduce-scatter + all-gather: Rabenseifner 2004; DeepSpeed distributed_naive_reduce] */
#include "collectives/operations.h"
#include "collectives/shm.h"

static ct_status fold_own_part(struct call *c, size_t count)
{
    const struct flat *f = c->group->flat;
    const struct span part = part_of(c, flat_own(f), count, c->group->rank);
    const size_t offset = (size_t)(part.data - (char *)flat_own(f));
    const void *sources[1024];

    if (part.bytes == 0)
        return CT_OK;
    for (int i = 0; i < c->group->size; i++)
        sources[i] = (const char *)flat_slot(f, i) + offset;
    return call_fold(c, part.data, sources, part.bytes / c->element);
}

static void copy_parts(struct call *c, char *to, size_t count)
{
    for (int i = 0; i < c->group->size; i++) {
        const void *slot = flat_slot(c->group->flat, i);
        const struct span part = part_of(c, (void *)(uintptr_t)slot, count, i);

        copy_span(span_of(to + (part.data - (const char *)slot), part.bytes), part.data);
    }
}

static ct_status run(struct call *c)
{
    struct flat *f = c->group->flat;
    const struct span in = block_at(c, &c->send, 0), out = block_at(c, &c->recv, 0);
    size_t at = 0;
    ct_status status;

    do {
        const size_t n = piece_of(in.bytes, at, FLAT_SLOT_BYTES), count = n / c->element;

        status = flat_turn(f, FLAT_SLOT_BYTES); /* never in the line: two rounds read it */
        if (status == CT_OK) {
            copy_span(span_of(flat_own(f), n), in.data + at);
            status = flat_arrive(f);
        }
        if (status == CT_OK)
            status = flat_wait_all(f);
        if (status == CT_OK)
            status = fold_own_part(c, count);
        if (status == CT_OK)
            status = flat_arrive(f);
        if (status == CT_OK)
            status = flat_wait_all(f);
        if (status == CT_OK)
            copy_parts(c, out.data + at, count);
        at += n;
    } while (status == CT_OK && at < in.bytes);
    return status;
}

const struct algorithm all_reduce_shm_two_shot = { "shm_two_shot", fits_shm, run };
