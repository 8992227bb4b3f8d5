/* SPDX-License-Identifier: Apache-2.0 */
/* coalesce_overlap.c - do calls that travel together leave each other's buffers alone?
 *
 * All of them read before any writes, so none may write what another reads or writes.  Their
 * buffers are put in the order of memory, which they mostly have, and walked through once, with
 * how far those behind reach. */
#include "collectives/core/coalesce.h"

#include <stdlib.h>

/* Memory of a call that goes together with others. */
struct piece {
    uintptr_t from, to;
    int call, written;
};

/* How far the pieces that begin before some place reach: the two furthest, of different calls. */
struct extent {
    uintptr_t to[2];
    int call[2];
};

static void extend(struct extent *e, const struct piece *piece)
{
    const int nearer = e->call[0] != piece->call && e->to[0] >= piece->to;

    if (!nearer && e->call[0] != piece->call) {
        e->to[1] = e->to[0];
        e->call[1] = e->call[0];
        e->call[0] = piece->call;
    }
    if (e->to[nearer] < piece->to) {
        e->to[nearer] = piece->to;
        e->call[nearer] = piece->call;
    }
}

static int reaches(const struct extent *e, const struct piece *piece)
{
    return e->to[e->call[0] == piece->call] > piece->from;
}

static int by_place(const void *a, const void *b)
{
    const struct piece *first = a, *second = b;

    return (first->from > second->from) - (first->from < second->from);
}

static int add_pieces(const struct call *c, const struct blocks *b, int call, int written,
                      struct piece *pieces)
{
    int n = 0;

    for (int i = 0; i < b->blocks; i++) {
        const struct span block = block_at(c, b, i);

        if (block.bytes > 0)
            pieces[n++] = (struct piece){ (uintptr_t)block.data,
                                          (uintptr_t)block.data + block.bytes, call, written };
    }
    return n;
}

static ct_status check(const struct call *calls, struct piece *pieces, int n)
{
    struct extent all = { .call = { -1, -1 } }, written = all;
    int in_order = 1;

    for (int i = 1; i < n && in_order; i++)
        in_order = pieces[i - 1].from <= pieces[i].from;
    if (!in_order)
        qsort(pieces, (size_t)n, sizeof *pieces, by_place);
    for (int i = 0; i < n; i++) {
        if (reaches(pieces[i].written ? &all : &written, &pieces[i]))
            return ct_fail(CT_ERR_INVALID,
                           "ct_coalesce_end: the buffers of call %d since ct_coalesce_begin(), "
                           "%s, overlap those of another that travels with it; none was made",
                           pieces[i].call + 1,
                           operation_name(calls[pieces[i].call].signature.operation));
        extend(&all, &pieces[i]);
        if (pieces[i].written)
            extend(&written, &pieces[i]);
    }
    return CT_OK;
}

ct_status coalesce_check_apart(const struct call *calls, int first, int count)
{
    size_t most = 1;
    struct piece *pieces;
    ct_status status;
    int n = 0;

    for (int i = first; i < first + count; i++)
        most += (size_t)(calls[i].send.blocks + calls[i].recv.blocks);
    pieces = malloc(most * sizeof *pieces);
    if (!pieces)
        return ct_fail(CT_ERR_NOMEM, "ct_coalesce_end: no memory to compare %d calls", count);
    for (int i = first; i < first + count; i++) {
        n += add_pieces(&calls[i], &calls[i].send, i, 0, pieces + n);
        n += add_pieces(&calls[i], &calls[i].recv, i, 1, pieces + n);
    }
    status = check(calls, pieces, n);
    free(pieces);
    return status;
}
