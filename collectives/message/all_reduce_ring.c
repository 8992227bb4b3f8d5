/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_ring.c - all-reduce in a ring of ranks.  The ranks add the parts in p-1 steps, and
 * pass the finished parts on in p-1 steps.
 *
 * After the first loop, rank r holds the finished part r+1.  The second loop passes the finished
 * parts along the ring.  The sum of each part starts at a different rank.  So this algorithm is for
 * integers, where the order does not show in the result, and for CT_ORDER=fast.  With
 * CT_ORDER=fast, f16 and other narrow types are rounded at each step.
 * Cost: 2(p-1) alpha + 2n(p-1)/p beta.  No algorithm sends fewer bytes, but this one is slow for
 * small n.
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

    if (c->group->size == 1) /* the fold makes a bool 0 or 1 */
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
