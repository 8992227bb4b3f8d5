/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_ring.c - p-1 steps to add, p-1 to hand round.
 *
 * After the first loop rank r holds the finished part r+1; the second passes
 * those along.  Each part's sum starts at another rank, so this is for integers,
 * where the order does not show, and for CT_ORDER=fast; f16 and the like are then rounded at each
 * step.
 * Cost: 2(p-1) alpha + 2n(p-1)/p beta: the fewest bytes of all, slow for small n.
 * [Patarasuk & Yuan 2009] */
#include "collectives/core/algorithms.h"
#include "collectives/core/peers.h"

static ct_status add_round(struct call *c, char *data, size_t count, char *arrived)
{
    const int p = c->group->size, rank = c->group->rank;
    const int right = (rank + 1) % p, left = (rank + p - 1) % p;
    ct_status status = CT_OK;

    for (int step = 0; step < p - 1 && status == CT_OK; step++) {
        const struct span out = part_of(c, data, count, (rank - step + p) % p);
        const struct span in = part_of(c, data, count, (rank - step - 1 + p) % p);

        status = exchange(c, right, out, left, span_of(arrived, in.bytes));
        if (status == CT_OK)
            combine_pair(call_dtype(c), call_op(c), in.data, arrived, in.bytes / c->element);
    }
    return status;
}

static ct_status hand_round(struct call *c, char *data, size_t count)
{
    const int p = c->group->size, rank = c->group->rank;
    const int right = (rank + 1) % p, left = (rank + p - 1) % p;
    ct_status status = CT_OK;

    for (int step = 0; step < p - 1 && status == CT_OK; step++)
        status = exchange(c, right, part_of(c, data, count, (rank - step + 1 + p) % p), left,
                          part_of(c, data, count, (rank - step + p) % p));
    return status;
}

static ct_status all_reduce_ring_run(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0), out = block_at(c, &c->recv, 0);
    const size_t count = in.bytes / c->element;
    const void *const alone = in.data;
    char *arrived;
    ct_status status;

    if (c->group->size == 1) /* a bool becomes 0 or 1 by being folded */
        return call_fold(c, out.data, &alone, count);
    arrived = call_scratch(c, in.bytes / (size_t)c->group->size + c->element);
    if (!arrived)
        return ct_fail(CT_ERR_NOMEM, "no memory for a part of %zu bytes", in.bytes);
    copy_span(out, in.data);
    status = add_round(c, out.data, count, arrived);
    if (status == CT_OK)
        status = hand_round(c, out.data, count);
    call_scratch_end(c, arrived);
    return status;
}

const struct algorithm all_reduce_ring = { .name = "ring",
                                           .fits = order_is_free,
                                           .run = all_reduce_ring_run };
