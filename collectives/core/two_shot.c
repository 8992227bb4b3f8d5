/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_two_shot.c - part r of all inputs goes to rank r, which folds it and
 * sends the result to all ranks.
 *
 * The bytes of the ring in two steps instead of 2(p-1), and in the written
 * order of reduction, which a ring can't keep.
 *
 * A large buffer goes in pieces: what comes is folded and sent on while it lies in the
 * processor's caches; over sockets a part is small enough to be sent eagerly; and a piece's results
 * travel together with the parts of the next one.
 * Cost: 2 alpha for each piece + 2n(p-1)/p beta; p-1 messages at once. */
#include <stdlib.h>

#include "collectives/core/shm_exchange.h"

#define PART ((size_t)EAGER_OVER_SOCKETS) /* of a piece, each rank's */

struct two_shot {
    struct call *call;
    struct span in, out;
    size_t piece;         /* bytes of the buffer */
    const void **sources; /* of this rank's part */
    char *scratch;        /* for those that the others send */
    struct batch sum, shares[2];
};

/* Two or three pieces have too little to overlap: with 1+1 ranks they took longer than one. */
static size_t piece_for(const struct call *c, size_t bytes)
{
    const size_t p = (size_t)c->group->size, most = SCRATCH_BYTES / p / 64 * 64;
    const size_t part = most > PART ? PART : most > 64 ? most : 64;

    return bytes <= 3 * p * part && bytes <= SCRATCH_BYTES ? bytes : p * part;
}

static size_t count_of(const struct two_shot *t, size_t at)
{
    return piece_of(t->in.bytes, at, t->piece) / t->call->element;
}

/* Of the piece at `at`: part r goes to rank r. */
static ct_status begin_sum(struct two_shot *t, size_t at)
{
    const struct call *c = t->call;
    const int p = c->group->size, rank = c->group->rank;
    const size_t count = count_of(t, at);
    char *in = t->in.data + at;
    const struct span own = part_of(c, in, count, rank);
    const ct_status status = batch_begin(&t->sum, t->call, 2 * p);

    if (status != CT_OK)
        return status;
    t->sources[rank] = own.data;
    for (int step = 1; step < p; step++) {
        const int from = (rank - step + p) % p;

        t->sources[from] = t->scratch + (size_t)from * own.bytes;
        batch_recv(&t->sum, from, span_of(t->sources[from], own.bytes));
    }
    for (int step = 1; step < p; step++)
        batch_send(&t->sum, (rank + step) % p, part_of(c, in, count, (rank + step) % p));
    return CT_OK;
}

static ct_status end_sum(struct two_shot *t, size_t at)
{
    struct call *c = t->call;
    const struct span own = part_of(c, t->out.data + at, count_of(t, at), c->group->rank);
    const ct_status status = batch_wait(&t->sum);

    return status == CT_OK && own.bytes > 0
               ? call_fold(c, own.data, t->sources, own.bytes / c->element)
               : status;
}

static ct_status begin_share(struct two_shot *t, size_t at, struct batch *batch)
{
    const struct call *c = t->call;
    const int p = c->group->size, rank = c->group->rank;
    const size_t count = count_of(t, at);
    char *out = t->out.data + at;
    const ct_status status = batch_begin(batch, t->call, 2 * p);

    if (status != CT_OK)
        return status;
    for (int step = 1; step < p; step++)
        batch_recv(batch, (rank - step + p) % p, part_of(c, out, count, (rank - step + p) % p));
    for (int step = 1; step < p; step++)
        batch_send(batch, (rank + step) % p, part_of(c, out, count, rank));
    return CT_OK;
}

static ct_status all_pieces(struct two_shot *t)
{
    struct batch *share = &t->shares[0], *before = &t->shares[1];
    ct_status status = CT_OK;
    size_t at = 0;

    do {
        struct batch *const next = before;

        status = begin_sum(t, at);
        if (status == CT_OK)
            status = end_sum(t, at);
        if (status == CT_OK)
            status = begin_share(t, at, share);
        if (status == CT_OK)
            status = batch_wait(before);
        before = share;
        share = next;
        at += t->piece;
    } while (status == CT_OK && at < t->in.bytes);
    return status == CT_OK ? batch_wait(before) : status;
}

static ct_status all_reduce_two_shot_run(struct call *c)
{
    struct two_shot t = { .call = c,
                          .in = block_at(c, &c->send, 0),
                          .out = block_at(c, &c->recv, 0) };
    const size_t p = (size_t)c->group->size;
    ct_status status;

    t.piece = piece_for(c, t.in.bytes);
    t.sources = malloc(p * sizeof *t.sources);
    t.scratch = call_scratch(c, t.piece + p * c->element);
    status = t.sources && t.scratch
                 ? all_pieces(&t)
                 : ct_fail(CT_ERR_NOMEM, "no memory for the parts of %zu ranks", p);
    batch_cancel(&t.sum);
    batch_cancel(&t.shares[0]);
    batch_cancel(&t.shares[1]);
    free(t.sources);
    call_scratch_end(c, t.scratch);
    return status;
}

const struct algorithm all_reduce_two_shot = { "two_shot", NULL, all_reduce_two_shot_run, 0 };
