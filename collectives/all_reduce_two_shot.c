/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_two_shot.c - part r of everybody goes to rank r, which folds it and
 * sends the result to everybody.
 *
 * The bytes of the ring in two steps instead of 2(p-1), and in the written
 * order of reduction, which a ring can't keep.
 * Cost: 2 alpha + 2n(p-1)/p beta; p-1 messages at once. */
#include <stdlib.h>

#include "collectives/operations.h"
#include "collectives/slots.h"

#define PIECE ((size_t)8 << 20) /* of the buffer at a time: bounds the scratch memory */

/* Part `rank` of everybody's piece, folded into ours. */
static ct_status fold_own_part(struct call *c, char *in, char *out, size_t count, char *scratch,
                               const void **sources)
{
    const int p = c->group->size, rank = c->group->rank;
    const struct span own = part_of(c, in, count, rank);
    struct batch batch;
    ct_status status = batch_begin(&batch, c, 2 * p);

    if (status != CT_OK)
        return status;
    sources[rank] = own.data;
    for (int step = 1; step < p; step++) {
        const int from = (rank - step + p) % p;

        sources[from] = scratch + (size_t)from * own.bytes;
        batch_recv(&batch, from, span_of(sources[from], own.bytes));
    }
    for (int step = 1; step < p; step++)
        batch_send(&batch, (rank + step) % p, part_of(c, in, count, (rank + step) % p));
    status = batch_wait(&batch);
    if (status == CT_OK && own.bytes > 0)
        status = call_fold(c, part_of(c, out, count, rank).data, sources, own.bytes / c->element);
    return status;
}

static ct_status share_parts(struct call *c, char *out, size_t count)
{
    const int p = c->group->size, rank = c->group->rank;
    struct batch batch;
    const ct_status status = batch_begin(&batch, c, 2 * p);

    if (status != CT_OK)
        return status;
    for (int step = 1; step < p; step++)
        batch_recv(&batch, (rank - step + p) % p, part_of(c, out, count, (rank - step + p) % p));
    for (int step = 1; step < p; step++)
        batch_send(&batch, (rank + step) % p, part_of(c, out, count, rank));
    return batch_wait(&batch);
}

static ct_status run(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0), out = block_at(c, &c->recv, 0);
    const size_t p = (size_t)c->group->size, most = in.bytes < PIECE ? in.bytes : PIECE;
    const void **sources = malloc(p * sizeof *sources);
    char *scratch = malloc(most + p * c->element);
    size_t at = 0;
    ct_status status = CT_OK;

    if (!sources || !scratch)
        status = ct_fail(CT_ERR_NOMEM, "no memory for the parts of %zu ranks", p);
    do {
        const size_t n = piece_of(in.bytes, at, PIECE), count = n / c->element;

        if (status == CT_OK)
            status = fold_own_part(c, in.data + at, out.data + at, count, scratch, sources);
        if (status == CT_OK)
            status = share_parts(c, out.data + at, count);
        at += n;
    } while (status == CT_OK && at < in.bytes);
    free(sources);
    free(scratch);
    return status;
}

const struct algorithm all_reduce_two_shot = { "two_shot", NULL, run, 0 };
