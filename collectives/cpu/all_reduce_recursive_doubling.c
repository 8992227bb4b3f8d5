/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_recursive_doubling.c - in step k each rank exchanges its sum so far with the
 * rank whose number differs in bit k.
 *
 * Each rank beyond the largest power of two first sends its input to one of the others, which sends
 * it the result at the end.  Both ranks of a pair fold the lower rank's sum first, so all have the
 * same bits.  But that is another order than the written one, so this is for integers, where the
 * order does not show, and for CT_ORDER=fast.
 * Cost: log2(p) (alpha + n beta), two steps more if p is no power of two.
 * [Thakur, Rabenseifner & Gropp 2005] */
#include "collectives/core/sendrecv.h"
#include "runtime/types/dtype.h"

#define RANKS_FROM 6 /* of fewer, one_shot's single step is less */

static int any_order_does(const struct call *c)
{
    return (dtype_is_integer(call_dtype(c)) || c->group->order_rule == ORDER_FAST)
           && call_op(c) != CT_AVG;
}

static int all_reduce_recursive_doubling_fits(const struct call *c)
{
    return c->group->size >= RANKS_FROM && any_order_does(c);
}

/* out = lower op higher, one of which is out. */
static void fold_pair(const struct call *c, struct span out, char *arrived, int we_are_lower)
{
    const size_t count = out.bytes / c->element;

    if (we_are_lower) {
        combine_pair(call_dtype(c), call_op(c), out.data, arrived, count);
    } else {
        combine_pair(call_dtype(c), call_op(c), arrived, out.data, count);
        copy_span(out, arrived);
    }
}

static ct_status recursive_doubling_steps(struct call *c, struct span out, char *arrived, int extra)
{
    const int paired = c->group->size - extra, rank = c->group->rank;
    const int number = rank < 2 * extra ? rank / 2 : rank - extra;
    ct_status status = CT_OK;

    for (int bit = 1; bit < paired && status == CT_OK; bit *= 2) {
        const int other = number ^ bit, peer = other < extra ? 2 * other : other + extra;

        status = exchange(c, peer, out, peer, span_of(arrived, out.bytes));
        if (status == CT_OK)
            fold_pair(c, out, arrived, number < other);
    }
    return status;
}

/* Ranks below 2 * extra are pairs; the second rank of a pair takes no part in the doubling. */
static ct_status all_reduce_recursive_doubling_run(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0), out = block_at(c, &c->recv, 0);
    const int p = c->group->size, rank = c->group->rank;
    char *arrived = call_scratch(c, out.bytes);
    ct_status status = CT_OK;
    int extra = 0, is_pair;

    if (!arrived)
        return ct_fail(CT_ERR_NOMEM, "no memory for %zu bytes", out.bytes);
    while ((p - extra) & (p - extra - 1))
        extra++;
    is_pair = rank < 2 * extra;
    copy_span(out, in.data);
    if (is_pair && rank % 2) {
        status = send_to(c, rank - 1, out);
        if (status == CT_OK)
            status = recv_from(c, rank - 1, out);
        call_scratch_end(c, arrived);
        return status;
    }
    if (is_pair)
        status = recv_from(c, rank + 1, span_of(arrived, out.bytes));
    if (status == CT_OK && is_pair)
        fold_pair(c, out, arrived, 1);
    if (status == CT_OK)
        status = recursive_doubling_steps(c, out, arrived, extra);
    if (status == CT_OK && is_pair)
        status = send_to(c, rank + 1, out);
    call_scratch_end(c, arrived);
    return status;
}

const struct algorithm all_reduce_recursive_doubling = { "recursive_doubling",
                                                         all_reduce_recursive_doubling_fits,
                                                         all_reduce_recursive_doubling_run, 8192,
                                                         NULL };
