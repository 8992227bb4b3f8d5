/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c - lists the ranks of a group as peers (peers.h). */
#include "collectives/core/peers.h"

#include "runtime/types/dtype.h"

static int same_rank(const void *arg, int number)
{
    (void)arg;
    return number;
}

static ct_status fold_group(struct call *c, const void *arg, struct span dst,
                            const void *const *sources)
{
    (void)arg;
    return dst.bytes > 0 ? call_fold(c, dst.data, sources, dst.bytes / c->element) : CT_OK;
}

struct peers peers_of_group(const struct call *c)
{
    return (struct peers){
        .count = c->group->size, .own = c->group->rank, .rank = same_rank, .fold = fold_group
    };
}

int order_is_free(const struct call *c)
{
    return (dtype_is_integer(call_dtype(c)) || c->group->order.rule == ORDER_FAST)
           && call_op(c) != CT_AVG;
}
