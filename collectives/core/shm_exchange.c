/* SPDX-License-Identifier: Apache-2.0 */
/* shm_exchange.c - moves the pieces of a call through shared-memory slots, or directly between
 * buffers. */
#include "collectives/core/shm_exchange.h"

#define DIRECT_FROM \
    8192 /* bytes of a block; a smaller block is copied in less time than a round takes */
#define ROOTED_FROM (64u << 10) /* likewise, if only the root would wait without offers */

#define PIECES 8
#define LEAST_PIECE ((size_t)32 << 10)

/* Returns the bytes of a number of blocks that lie one after the other.  Returns 0 if the blocks
 * are apart, so they can't be offered. */
static size_t plain_bytes(const struct call *c, const struct blocks *b, int blocks)
{
    return b->list || b->counts || b->displs || !b->base ? 0 : (size_t)blocks * call_bytes(c);
}

static int may_be_direct(const struct call *c, const struct slots *s)
{
    return s->direct && c->signature.count > 0
           && s->bytes >= (s->waiters == ROOT_WAITS ? ROOTED_FROM : DIRECT_FROM);
}

static void shm_exchange_offer(const struct call *c, const struct slots *s)
{
    const struct blocks *from =
        c->send.blocks ? &c->send : &c->recv; /* a broadcast uses the same buffer on both sides */
    const int sends = (s->waiters != OTHERS_WAIT || call_is_root(c))
                      && !(s->in_place_is_shown && c->send.base == c->recv.base);

    shm_group_offer(c->group->shm, from->base, sends ? plain_bytes(c, from, s->sends) : 0,
                    c->recv.base, plain_bytes(c, &c->recv, s->recvs));
}

static ct_status wait_as(const struct call *c, const struct slots *s, int for_offers)
{
    struct shm_group *f = c->group->shm;

    if (s->waiters == ALL_WAIT || (s->waiters == ROOT_WAITS && (for_offers || call_is_root(c))))
        return shm_group_wait_all(f);
    if (s->waiters == ROOT_WAITS)
        return shm_group_glance(f, c->signature.root);
    return call_is_root(c) ? shm_group_send_alone(f) : shm_group_wait(f, c->signature.root);
}

static ct_status shm_exchange_look_up(const struct call *c, const struct slots *s,
                                      enum direct_access *reach)
{
    return shm_group_resolve_peers(
        c->group->shm, s->waiters == OTHERS_WAIT ? c->signature.root : -1,
        (size_t)s->sends * call_bytes(c), (size_t)s->recvs * call_bytes(c), reach);
}

/* Lets the ranks copy directly between their buffers.  In OTHERS_WAIT the other ranks read the
 * root's buffer, so only the root waits in the last round. */
static ct_status run_directly(struct call *c, const struct slots *s)
{
    struct shm_group *f = c->group->shm;
    ct_status status = shm_group_touch(f);

    if (status != CT_OK)
        return status;
    status = s->direct(c);
    shm_group_untouch(f);
    if (status == CT_OK)
        status = shm_group_publish(f);
    if (status == CT_OK && (s->waiters != OTHERS_WAIT || call_is_root(c)))
        status = shm_group_wait_all(f);
    if (status == CT_OK)
        shm_group_withdraw(f);
    return status;
}

/* Returns the largest bytes of a piece.  Normally a piece is small if data moves in one direction
 * only, since the reader then works while the writer fills the next piece.  A piece is a whole slot
 * if ranks share processors, since smaller pieces would only cause more switches between ranks.  A
 * piece is a whole slot in a scatter too, since its pieces are small parts of the bytes that the
 * root writes in a round. */
static size_t piece_at_most(const struct call *c, const struct slots *s)
{
    const size_t slot = shm_group_slot_bytes(c->group->shm);
    const size_t part = (s->bytes / PIECES + 63) / 64 * 64;
    const size_t piece = part > LEAST_PIECE ? part : LEAST_PIECE;

    return s->waiters != ALL_WAIT && !s->apart && c->group->mesh->node.has_processors
                   && piece < slot
               ? piece
               : slot;
}

/* Returns the bytes of a slot for pieces of n bytes, or at most SHM_GROUP_INLINE_BYTES if they lie
 * in the lines.  In two rounds take() would use the line again too early. */
static size_t slot_bytes_of(const struct slots *s, size_t n)
{
    const size_t in_all = n * (size_t)s->shares, bytes = s->apart ? n : in_all;

    if (in_all <= SHM_GROUP_INLINE_BYTES && !s->two_rounds)
        return in_all;
    return bytes > SHM_GROUP_INLINE_BYTES ? bytes : SHM_GROUP_INLINE_BYTES + 1;
}

ct_status slots_run(struct call *c, const struct slots *s)
{
    struct shm_group *f = c->group->shm;
    const size_t slot = piece_at_most(c, s);
    const size_t share = s->apart ? slot : slot / (size_t)s->shares / 64 * 64;
    int offering = may_be_direct(c, s);
    size_t at = 0;
    ct_status status;

    do {
        const size_t n = piece_of(s->bytes, at, share);
        enum direct_access reach = DIRECT_NONE;

        status = shm_group_next_slot(f, slot_bytes_of(s, n));
        if (status == CT_OK) {
            if (offering)
                shm_exchange_offer(c, s);
            if (!offering || !shm_group_offers(f, s->sends > 0, s->recvs > 0))
                s->show(c, at, n);
            status = shm_group_publish(f);
        }
        if (status == CT_OK)
            status = wait_as(c, s, offering);
        if (status == CT_OK && offering)
            status = shm_exchange_look_up(c, s, &reach);
        if (status == CT_OK && reach == DIRECT_ALL)
            return run_directly(c, s);
        if (status == CT_OK && offering)
            shm_group_withdraw(f);
        offering = 0;
        if (status == CT_OK && reach == DIRECT_SOME)
            /* Ranks that offered a buffer have written nothing into slots, so all ranks start again
             * with slots. */
            continue;
        if (status == CT_OK)
            status = s->take(c, at, n);
        at += n;
    } while (status == CT_OK && at < s->bytes);
    return status;
}

void copy_result(void *to, const void *from, size_t bytes, size_t in_all)
{
    if (bytes == 0 || to == from)
        return;
    if (in_all >= STREAMING_BYTES)
        copy_streaming(to, from, bytes);
    else
        memcpy(to, from, bytes);
}
