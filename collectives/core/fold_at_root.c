/* SPDX-License-Identifier: Apache-2.0 */
/* fold_at_root.c - each peer sends its input to the root, which folds the inputs in the written
 * order.
 *
 * The input is sent in pieces, so that the next piece arrives while the root folds a piece.  A
 * piece is small enough to be sent eagerly, and two pieces of all peers together use at most
 * SCRATCH_BYTES.  Cost: alpha + (p-1) n beta at the root.  A tree would move fewer bytes through
 * the root. */
#include <stdlib.h>

#include "collectives/core/peers.h"
#include "collectives/core/shm_exchange.h"

struct fold_at_root {
    struct call *call;
    const struct peers *peers;
    struct span in, out;
    size_t piece;         /* bytes of a piece of the buffer */
    char *room;           /* memory for [2][peers] pieces */
    const void **sources; /* [peers] the inputs to be folded */
    struct batch batch[2];
};

static size_t at_root_piece_for(int peers, size_t bytes)
{
    const size_t most = SCRATCH_BYTES / 2 / (size_t)peers / 64 * 64;
    const size_t piece = most > EAGER_MOST ? EAGER_MOST : most > 64 ? most : 64;

    return bytes < piece ? bytes : piece;
}

/* Returns the half of the room (0 or 1) for the piece at offset `at`.  Pieces use the halves in
 * turn. */
static int half_of(const struct fold_at_root *f, size_t at)
{
    return f->piece > 0 && at / f->piece % 2;
}

static char *at_root_place(const struct fold_at_root *f, size_t at, int peer)
{
    return f->room + ((size_t)half_of(f, at) * (size_t)f->peers->count + (size_t)peer) * f->piece;
}

static ct_status at_root_begin_piece(struct fold_at_root *f, size_t at)
{
    struct batch *batch = &f->batch[half_of(f, at)];
    const size_t bytes = piece_of(f->in.bytes, at, f->piece);
    const ct_status status = batch_begin(batch, f->call, f->peers->count);

    if (status != CT_OK)
        return status;
    for (int i = 0; i < f->peers->count; i++)
        if (i != f->peers->own)
            batch_recv(batch, peer_rank(f->peers, i), span_of(at_root_place(f, at, i), bytes));
    batch_start(batch);
    return CT_OK;
}

static ct_status end_piece(struct fold_at_root *f, size_t at)
{
    const size_t bytes = piece_of(f->in.bytes, at, f->piece);
    const ct_status status = batch_wait(&f->batch[half_of(f, at)]);

    for (int i = 0; i < f->peers->count; i++)
        f->sources[i] = i == f->peers->own ? f->in.data + at : at_root_place(f, at, i);
    return status == CT_OK ? f->peers->fold(f->call, f->peers->arg,
                                            span_of(f->out.data + at, bytes), f->sources)
                           : status;
}

static ct_status at_root_all_pieces(struct fold_at_root *f)
{
    ct_status status = at_root_begin_piece(f, 0);
    size_t at = 0;

    do {
        if (status == CT_OK && at + f->piece < f->in.bytes)
            status = at_root_begin_piece(f, at + f->piece);
        if (status == CT_OK)
            status = end_piece(f, at);
        at += f->piece;
    } while (status == CT_OK && at < f->in.bytes);
    return status;
}

static ct_status send_pieces(struct call *c, int root, struct span in, size_t piece)
{
    size_t at = 0;
    ct_status status;

    do {
        status = send_to(c, root, span_of(in.data + at, piece_of(in.bytes, at, piece)));
        at += piece;
    } while (status == CT_OK && at < in.bytes);
    return status;
}

ct_status fold_at_root(struct call *c, const struct peers *peers, int root, struct span in,
                       struct span out)
{
    const size_t p = (size_t)peers->count, piece = at_root_piece_for(peers->count, in.bytes);
    struct fold_at_root f = { .call = c, .peers = peers, .in = in, .out = out, .piece = piece };
    ct_status status;

    if (peers->own != root)
        return send_pieces(c, peer_rank(peers, root), in, piece);
    f.room = call_scratch(c, 2 * p * piece);
    f.sources = malloc(p * sizeof *f.sources);
    status = f.room && f.sources ? at_root_all_pieces(&f)
                                 : ct_fail(CT_ERR_NOMEM, "no memory for pieces of %zu ranks", p);
    batch_cancel(&f.batch[0]);
    batch_cancel(&f.batch[1]);
    call_scratch_end(c, f.room);
    free(f.sources);
    return status;
}
