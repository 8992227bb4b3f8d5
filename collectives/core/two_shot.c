/* SPDX-License-Identifier: Apache-2.0 */
/* two_shot.c - a reduction in two steps: peer i receives part i of all inputs and folds the parts,
 * then it sends the result to all peers.
 *
 * This moves as many bytes as a ring, in two steps instead of 2(p-1).  It keeps the written order
 * of the reduction, which a ring can't.
 *
 * A large buffer is sent in pieces.  So a part is folded and sent while it is in the processor's
 * caches.  Over sockets a part is small enough to be sent eagerly.  The results of a piece travel
 * together with the parts of the next piece.  Cost: 2 alpha for each piece + 2n(p-1)/p beta; p-1
 * messages at the same time. */
#include <stdlib.h>

#include "collectives/core/peers.h"
#include "collectives/core/shm_exchange.h"

#define PART ((size_t)EAGER_OVER_SOCKETS) /* bytes of each peer's part of a piece */

struct two_shot {
    struct call *call;
    const struct peers *peers;
    struct span in, out;
    size_t piece;         /* bytes of a piece of the buffer */
    const void **sources; /* [peers] the inputs for this peer's part */
    char *scratch;        /* memory for the parts that other peers send */
    struct batch sum, shares[2];
};

/* Returns the bytes of a piece.  A buffer of two or three pieces is sent as one piece, since so few
 * pieces overlap too little: with 1+1 ranks two or three pieces took longer than one. */
static size_t two_shot_piece_for(int peers, size_t bytes)
{
    const size_t p = (size_t)peers, most = SCRATCH_BYTES / p / 64 * 64;
    const size_t part = most > PART ? PART : most > 64 ? most : 64;

    return bytes <= 3 * p * part && bytes <= SCRATCH_BYTES ? bytes : p * part;
}

static size_t two_shot_count_of(const struct two_shot *t, size_t at)
{
    return piece_of(t->in.bytes, at, t->piece) / t->call->element;
}

static struct span part_for(const struct two_shot *t, char *data, size_t at, int peer)
{
    return part_of_some(t->call, data + at, two_shot_count_of(t, at), peer, t->peers->count);
}

/* Starts the first step of the piece at offset `at`, in which part i is sent to peer i. */
static ct_status begin_sum(struct two_shot *t, size_t at)
{
    const int p = t->peers->count, own = t->peers->own;
    const struct span part = part_for(t, t->in.data, at, own);
    const ct_status status = batch_begin(&t->sum, t->call, 2 * p);

    if (status != CT_OK)
        return status;
    t->sources[own] = part.data;
    for (int step = 1; step < p; step++) {
        const int from = (own - step + p) % p;

        t->sources[from] = t->scratch + (size_t)from * part.bytes;
        batch_recv(&t->sum, peer_rank(t->peers, from), span_of(t->sources[from], part.bytes));
    }
    for (int step = 1; step < p; step++)
        batch_send(&t->sum, peer_rank(t->peers, (own + step) % p),
                   part_for(t, t->in.data, at, (own + step) % p));
    batch_start(&t->sum);
    return CT_OK;
}

static ct_status end_sum(struct two_shot *t, size_t at)
{
    const struct span part = part_for(t, t->out.data, at, t->peers->own);
    const ct_status status = batch_wait(&t->sum);

    return status == CT_OK ? t->peers->fold(t->call, t->peers->arg, part, t->sources) : status;
}

static ct_status begin_share(struct two_shot *t, size_t at, struct batch *batch)
{
    const int p = t->peers->count, own = t->peers->own;
    const ct_status status = batch_begin(batch, t->call, 2 * p);

    if (status != CT_OK)
        return status;
    for (int step = 1; step < p; step++)
        batch_recv(batch, peer_rank(t->peers, (own - step + p) % p),
                   part_for(t, t->out.data, at, (own - step + p) % p));
    for (int step = 1; step < p; step++)
        batch_send(batch, peer_rank(t->peers, (own + step) % p), part_for(t, t->out.data, at, own));
    batch_start(batch);
    return CT_OK;
}

static ct_status two_shot_all_pieces(struct two_shot *t)
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

ct_status two_shot(struct call *c, const struct peers *peers, struct span in, struct span out)
{
    struct two_shot t = { .call = c, .peers = peers, .in = in, .out = out };
    const size_t p = (size_t)peers->count;
    ct_status status;

    t.piece = two_shot_piece_for(peers->count, t.in.bytes);
    t.sources = malloc(p * sizeof *t.sources);
    t.scratch = call_scratch(c, t.piece + p * c->element);
    status = t.sources && t.scratch
                 ? two_shot_all_pieces(&t)
                 : ct_fail(CT_ERR_NOMEM, "no memory for the parts of %zu ranks", p);
    batch_cancel(&t.sum);
    batch_cancel(&t.shares[0]);
    batch_cancel(&t.shares[1]);
    free(t.sources);
    call_scratch_end(c, t.scratch);
    return status;
}
