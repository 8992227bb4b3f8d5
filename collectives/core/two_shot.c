/* SPDX-License-Identifier: Apache-2.0 */
/* two_shot.c - a reduction in two steps: peer i receives part i of all inputs and folds the parts,
 * then it sends the result to all peers.
 *
 * This moves as many bytes as a ring, in two steps instead of 2(p-1).  It keeps the written order
 * of the reduction, which a ring can't.
 *
 * A large buffer is sent in pieces.  So a part is folded and sent while it is in the processor's
 * caches.  A part is small enough to be sent eagerly.  The results of a piece travel together with
 * the parts of the next piece.  Cost: 2 alpha for each piece + 2n(p-1)/p beta; p-1 messages at the
 * same time.
 *
 * If only a root needs the result, the other peers fold the parts and send the results to the root.
 * Each peer, also the root, sends and receives n bytes.  With many pieces, the steps of successive
 * pieces fill the wires in both directions.  Cost: 2 alpha + (n + a piece) beta. */
#include <stdlib.h>

#include "collectives/core/peers.h"
#include "collectives/core/pipeline_segment.h"
#include "collectives/core/shm_exchange.h"

struct two_shot {
    struct call *call;
    const struct peers *peers;
    struct span in, out;
    int root;             /* the peer that gets the result and folds no part; -1 if all peers do */
    int owners;           /* number of peers that fold a part */
    size_t piece;         /* bytes of a piece of the buffer */
    const void **sources; /* [peers] the inputs for this peer's part */
    char *scratch;        /* memory for the parts that other peers send */
    struct batch sum, shares[2];
};

static size_t two_shot_count_of(const struct two_shot *t, size_t at)
{
    return piece_of(t->in.bytes, at, t->piece) / t->call->element;
}

/* Returns the part that `peer` folds, or no bytes for the root. */
static struct span part_for(const struct two_shot *t, char *data, size_t at, int peer)
{
    const int part = peer - (t->root >= 0 && peer > t->root);

    if (peer == t->root)
        return (struct span){ data, 0 };
    return part_of_some(t->call, data + at, two_shot_count_of(t, at), part, t->owners);
}

static int gets_result(const struct two_shot *t, int peer)
{
    return t->root < 0 || peer == t->root;
}

/* Starts the first step of the piece at offset `at`, in which each part is sent to its owner. */
static ct_status begin_sum(struct two_shot *t, size_t at)
{
    const int p = t->peers->count, own = t->peers->own;
    const struct span part = part_for(t, t->in.data, at, own);
    const ct_status status = batch_begin(&t->sum, t->call, 2 * p);

    if (status != CT_OK)
        return status;
    t->sources[own] = part.data;
    for (int step = 1; step < p && own != t->root; step++) {
        const int from = (own - step + p) % p;

        t->sources[from] = t->scratch + (size_t)from * part.bytes;
        batch_recv(&t->sum, peer_rank(t->peers, from), span_of(t->sources[from], part.bytes));
    }
    for (int step = 1; step < p; step++) {
        const int to = (own + step) % p;

        if (to != t->root)
            batch_send(&t->sum, peer_rank(t->peers, to), part_for(t, t->in.data, at, to));
    }
    batch_start(&t->sum);
    return CT_OK;
}

static ct_status end_sum(struct two_shot *t, size_t at)
{
    const struct span part = part_for(t, t->out.data, at, t->peers->own);
    const ct_status status = batch_wait(&t->sum);

    return status == CT_OK && t->peers->own != t->root
               ? t->peers->fold(t->call, t->peers->arg, part, t->sources)
               : status;
}

static ct_status begin_share(struct two_shot *t, size_t at, struct batch *batch)
{
    const int p = t->peers->count, own = t->peers->own;
    const ct_status status = batch_begin(batch, t->call, 2 * p);

    if (status != CT_OK)
        return status;
    for (int step = 1; step < p && gets_result(t, own); step++) {
        const int from = (own - step + p) % p;

        batch_recv(batch, peer_rank(t->peers, from), part_for(t, t->out.data, at, from));
    }
    for (int step = 1; step < p && own != t->root; step++) {
        const int to = (own + step) % p;

        if (gets_result(t, to))
            batch_send(batch, peer_rank(t->peers, to), part_for(t, t->out.data, at, own));
    }
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

/* Pieces have `wanted` bytes, or fewer if their parts would use more than SCRATCH_BYTES together.
 */
static ct_status two_shot_run(struct two_shot t, size_t wanted)
{
    const size_t p = (size_t)t.peers->count, owners = (size_t)t.owners, element = t.call->element;
    const size_t most =
        SCRATCH_BYTES / owners / 64 * 64 > 64 ? SCRATCH_BYTES / owners / 64 * 64 : 64;
    ct_status status;

    t.piece = wanted < most * owners ? wanted : most * owners;
    t.sources = malloc(p * sizeof *t.sources);
    t.scratch = call_scratch(t.call, p * (t.piece / element / owners + 1) * element);
    status = t.sources && t.scratch
                 ? two_shot_all_pieces(&t)
                 : ct_fail(CT_ERR_NOMEM, "no memory for the parts of %zu ranks", p);
    batch_cancel(&t.sum);
    batch_cancel(&t.shares[0]);
    batch_cancel(&t.shares[1]);
    free(t.sources);
    call_scratch_end(t.call, t.scratch);
    return status;
}

/* If each part can be sent eagerly, one piece is the fastest: the two steps fill the wires in both
 * directions, so pieces only cost messages. */
ct_status two_shot(struct call *c, const struct peers *peers, struct span in, struct span out)
{
    const int p = peers->count;
    const size_t whole_most = (size_t)p * EAGER_MOST;
    const struct two_shot t = { c, peers, in, out, .root = -1, .owners = p };

    return two_shot_run(t, in.bytes <= whole_most
                               ? in.bytes
                               : pipeline_segment(c->network, (struct pipeline){ 2, p }, in.bytes));
}

ct_status two_shot_to_root(struct call *c, const struct peers *peers, int root, struct span in,
                           struct span out)
{
    const struct two_shot t = { c, peers, in, out, .root = root, .owners = peers->count - 1 };

    return two_shot_run(t, pipeline_segment(c->network, pipeline_of_parts(peers->count), in.bytes));
}
