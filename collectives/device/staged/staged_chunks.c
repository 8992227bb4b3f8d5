/* SPDX-License-Identifier: Apache-2.0 */
/* staged_chunks.c - how a staged call is cut.
 *
 * What decides is what all ranks agree on: operation, count, dtype, and the group.  So v forms stay
 * whole, and list forms don't.  Each piece goes by the row that was chosen for the whole call,
 * which can do less as well (fits() knows only upper limits); the rows fold each element in the
 * same written order, wherever it lies.  Not so under CT_ORDER=fast, where a ring begins each
 * part's sum at another rank: reductions of floats stay whole there, with the bits of such a call
 * on host memory. */
#include "collectives/device/staged/staged_chunks.h"

#include "runtime/types/dtype.h"

/* Copying a piece should take far longer than to begin and to end it, some 10 us, and filling and
 * draining the three pieces of a call short against the whole: 4 MiB take 80 to 170 us over
 * PCIe 5 and 4.  With many ranks a piece is many copies, at some 2 us each: the second number is
 * a compromise with how much host memory 1000 ranks take.  Reckoned: no GPU has measured it. */
struct piece_sizes piece_sizes = { (size_t)4 << 20, (size_t)8 << 10 };

enum { WHOLE = 64 }; /* elements: what is cut between lies at lines of the cache in host memory */

static size_t sent_blocks(const struct call *c)
{
    const int operation = c->signature.operation;

    return operation == OPERATION_SCATTER || operation == OPERATION_REDUCE_SCATTER
                   || operation == OPERATION_ALL_TO_ALL
               ? (size_t)c->group->size
               : 1;
}

static size_t received_blocks(const struct call *c)
{
    const int operation = c->signature.operation;

    return operation == OPERATION_GATHER || operation == OPERATION_ALL_GATHER
                   || operation == OPERATION_ALL_TO_ALL
               ? (size_t)c->group->size
               : 1;
}

static int order_is_by_place(const struct call *c)
{
    return c->signature.op >= 0 && c->group->order_rule == ORDER_FAST
           && !dtype_is_integer(call_dtype(c));
}

static size_t elements_of_piece(const struct call *c, size_t blocks)
{
    const size_t share = piece_sizes.all / blocks;
    const size_t bytes = share > piece_sizes.block ? share : piece_sizes.block;

    return bytes > c->element ? bytes / c->element : 1;
}

/* Nearly equal ones, so that the last is not left with next to nothing. */
static void cut(struct pieces *p, size_t count, size_t most)
{
    p->pieces = (count + most - 1) / most;
    p->count = ((count + p->pieces - 1) / p->pieces + WHOLE - 1) / WHOLE * WHOLE;
    p->pieces = (count + p->count - 1) / p->count;
}

struct pieces pieces_of(const struct call *c)
{
    const size_t sent = sent_blocks(c), received = received_blocks(c),
                 count = (size_t)c->signature.count;
    const size_t most = elements_of_piece(c, sent > received ? sent : received);
    struct pieces p = { .pieces = 1, .count = count };

    p.agreed = sizes_are_agreed(c) && !operation_has_counts(c->signature.operation);
    if (!p.agreed) {
        p.most = blocks_bytes(c, &c->send) + blocks_bytes(c, &c->recv);
        return p;
    }
    if (count > most && !order_is_by_place(c))
        cut(&p, count, most);
    p.most = (sent + received) * p.count * c->element;
    return p;
}

static size_t count_in(const struct call *c, const struct pieces *p, size_t k)
{
    const size_t rest = (size_t)c->signature.count - k * p->count;

    return rest < p->count ? rest : p->count;
}

struct span piece_block(const struct call *c, const struct pieces *p, const struct blocks *b, int i,
                        size_t k)
{
    struct span block = block_at(c, b, i);

    if (p->pieces > 1) {
        block.data += k * p->count * c->element;
        block.bytes = count_in(c, p, k) * c->element;
    }
    return block;
}

static void pack(struct blocks *b, char *host)
{
    if (b->blocks == 0)
        return;
    b->base = host;
    b->list = NULL;
    b->displs = NULL;
}

struct call piece_call(const struct call *c, const struct pieces *p, size_t k, char *send,
                       char *recv)
{
    struct call piece = *c;

    piece.place = (struct place){ NULL, NULL };
    pack(&piece.send, send);
    pack(&piece.recv, recv);
    if (p->pieces > 1) {
        piece.whole = &c->signature;
        piece.signature.count = piece.send.count = piece.recv.count = count_in(c, p, k);
    }
    return piece;
}
