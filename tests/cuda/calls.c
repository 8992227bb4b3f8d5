/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/calls.h"

int folds_in(enum kind kind)
{
    return kind == REDUCE || kind == ALL_REDUCE || kind == REDUCE_SCATTER;
}

int has_root(enum kind kind)
{
    return kind == BROADCAST || kind == REDUCE || kind == GATHER || kind == SCATTER;
}

/* The last block first. */
static ct_status make_list(ct_group *g, const struct pick *c, char *send, char *recv)
{
    const size_t bytes = c->n * ct_dtype_size(c->dtype);
    void *from[16], *to[16];

    for (int i = 0, p = ct_size(g); i < p; i++) {
        from[i] = send + (size_t)(p - 1 - i) * bytes;
        to[i] = recv + (size_t)(p - 1 - i) * bytes;
    }
    switch (c->kind) {
    case ALL_GATHER:
        return ct_all_gather_list(g, send, to, c->n, c->dtype, NULL);
    case REDUCE_SCATTER:
        return ct_reduce_scatter_list(g, (const void *const *)from, recv, c->n, c->dtype, c->op,
                                      NULL);
    case GATHER:
        return ct_gather_list(g, send, to, c->n, c->dtype, c->root, NULL);
    case SCATTER:
        return ct_scatter_list(g, (const void *const *)from, recv, c->n, c->dtype, c->root, NULL);
    default:
        return ct_all_to_all_list(g, (const void *const *)from, to, c->n, c->dtype, NULL);
    }
}

/* Which of p blocks of each buffer is where a call in place begins. */
ct_status make(ct_group *g, const struct pick *c, char *send, char *recv)
{
    const int me = ct_rank(g), in_place = c->in_place;
    const size_t n = c->n, block = (size_t)me * n * ct_dtype_size(c->dtype);
    const int at_root = in_place && me == c->root;

    if (c->is_list)
        return make_list(g, c, send, recv);
    switch (c->kind) {
    case BROADCAST:
        return ct_broadcast(g, recv, n, c->dtype, c->root, NULL);
    case REDUCE:
        return ct_reduce(g, send, in_place ? send : recv, n, c->dtype, c->op, c->root, NULL);
    case ALL_REDUCE:
        return ct_all_reduce(g, send, in_place ? send : recv, n, c->dtype, c->op, NULL);
    case ALL_GATHER:
        return ct_all_gather(g, in_place ? recv + block : send, recv, n, c->dtype, NULL);
    case REDUCE_SCATTER:
        return ct_reduce_scatter(g, send, in_place ? send + block : recv, n, c->dtype, c->op, NULL);
    case GATHER:
        return ct_gather(g, at_root ? recv + block : send, recv, n, c->dtype, c->root, NULL);
    case SCATTER:
        return ct_scatter(g, send, at_root ? send + block : recv, n, c->dtype, c->root, NULL);
    default:
        return ct_all_to_all(g, send, in_place ? send : recv, n, c->dtype, NULL);
    }
}
