/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_pairwise.c - in step s each rank sends to the s-th on its right and
 * receives from the s-th on its left.
 *
 * Cost: (p-1) alpha + (p-1) n beta for blocks of n, one message each way at a time. */
#include <stdlib.h>

#include "collectives/exchange.h"
#include "collectives/operations.h"

/* In place, what is sent later would be overwritten by what comes earlier. */
static ct_status copy_if_in_place(struct call *c, char **copy)
{
    size_t bytes = 0, at = 0;
    int in_place = 0;

    for (int i = 0; i < c->group->size; i++) {
        const struct span out = block_at(c, &c->send, i);

        bytes += out.bytes;
        in_place |= out.bytes > 0 && out.data == block_at(c, &c->recv, i).data;
    }
    if (!in_place)
        return CT_OK;
    *copy = malloc(bytes);
    if (!*copy)
        return ct_fail(CT_ERR_NOMEM, "no memory to copy %zu bytes, which in place needs", bytes);
    for (int i = 0; i < c->group->size; i++) {
        const struct span out = block_at(c, &c->send, i);

        copy_span(span_of(*copy + at, out.bytes), out.data);
        at += out.bytes;
    }
    c->send.base = *copy;
    c->send.list = NULL;
    c->send.displs = NULL;
    return CT_OK;
}

static ct_status run(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;
    char *copy = NULL;
    ct_status status = copy_if_in_place(c, &copy);

    if (status == CT_OK)
        copy_span(block_at(c, &c->recv, rank), block_at(c, &c->send, rank).data);
    for (int step = 1; step < p && status == CT_OK; step++) {
        const int to = (rank + step) % p, from = (rank - step + p) % p;

        status = exchange(c, to, block_at(c, &c->send, to), from, block_at(c, &c->recv, from));
    }
    free(copy);
    return status;
}

const struct algorithm all_to_all_pairwise = { "pairwise", NULL, run, 0 };
