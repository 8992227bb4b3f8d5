/* SPDX-License-Identifier: Apache-2.0 */
/* host_exchange.c - the steps on one host of a call over several hosts.
 *
 * A part goes through the slots a piece at a time, as in shm_exchange.c.  In a fold, each rank's
 * slot has a piece for each owner.  In sharing, each owner's slot has a piece of its part.
 *
 * Cost of a trip: one round with a gate (rounds.h).  Cost of a fold: each rank writes n bytes, and
 * the owners together read n bytes of each rank.  Cost of sharing: the owners together write n
 * bytes, and each rank reads n bytes. */
#include "collectives/hosts/host_exchange.h"

#include <stdlib.h>

#include "collectives/core/shm_exchange.h"

/* ---- Trips ---------------------------------------------------------------------- */

#define GATE 0 /* the gate's rank on the host */

static int gate_rank(const struct host_trip *t)
{
    return host_rank(t->call->group, t->level->host, GATE);
}

static int goes_by_message(const struct host_trip *t)
{
    return t->level->ranks > 1 && !t->call->group->host_shm;
}

ct_status host_trip_begin(struct host_trip *t, struct call *c, const struct level *level,
                          size_t bytes, size_t answer)
{
    const size_t ranks = (size_t)level->ranks;

    *t = (struct host_trip){ .call = c, .level = level, .bytes = bytes, .answer = answer };
    if (!host_is_gate(t))
        return CT_OK;
    t->shown = malloc(ranks * sizeof *t->shown);
    if (t->shown && goes_by_message(t))
        t->room = call_scratch(c, ranks * bytes);
    return t->shown && (t->room || !goes_by_message(t))
               ? CT_OK
               : ct_fail(CT_ERR_NOMEM, "no memory for the buffers of %d ranks", level->ranks);
}

void host_trip_end(struct host_trip *t)
{
    free(t->shown);
    call_scratch_end(t->call, t->room);
    *t = (struct host_trip){ 0 };
}

static ct_status show_by_messages(struct host_trip *t, const void *mine)
{
    struct call *c = t->call;
    struct batch batch;
    ct_status status;

    if (!host_is_gate(t))
        return send_to(c, gate_rank(t), span_of(mine, t->bytes));
    status = batch_begin(&batch, c, t->level->ranks);
    if (status != CT_OK)
        return status;
    for (int i = GATE + 1; i < t->level->ranks; i++) {
        t->shown[i] = t->room + (size_t)i * t->bytes;
        batch_recv(&batch, host_rank(c->group, t->level->host, i), span_of(t->shown[i], t->bytes));
    }
    return batch_wait(&batch);
}

static ct_status show_by_slots(struct host_trip *t, const void *mine)
{
    struct shm_group *f = t->call->group->host_shm;
    ct_status status = shm_group_next_slot(f, t->bytes > t->answer ? t->bytes : t->answer);

    if (status == CT_OK && !host_is_gate(t)) {
        shm_group_write(f, 0, mine, t->bytes);
        return shm_group_enter_gate(f, GATE);
    }
    if (status == CT_OK)
        status = shm_group_hold_gate(f, GATE);
    for (int i = 0; i < t->level->ranks && status == CT_OK; i++)
        t->shown[i] = shm_group_slot(f, i);
    return status;
}

ct_status host_show(struct host_trip *t, const void *mine)
{
    const ct_status status = t->level->ranks == 1 ? CT_OK
                             : goes_by_message(t) ? show_by_messages(t, mine)
                                                  : show_by_slots(t, mine);

    if (host_is_gate(t))
        t->shown[GATE] = mine;
    return status;
}

static ct_status answer_by_messages(struct host_trip *t, void *answer)
{
    const struct span span = span_of(answer, t->answer);
    struct batch batch;
    ct_status status;

    if (!host_is_gate(t))
        return recv_from(t->call, gate_rank(t), span);
    status = batch_begin(&batch, t->call, t->level->ranks);
    for (int i = GATE + 1; i < t->level->ranks && status == CT_OK; i++)
        batch_send(&batch, host_rank(t->call->group, t->level->host, i), span);
    return status == CT_OK ? batch_wait(&batch) : status;
}

ct_status host_answer(struct host_trip *t, void *answer)
{
    struct shm_group *f = t->call->group->host_shm;
    ct_status status;

    if (t->level->ranks == 1)
        return CT_OK;
    if (goes_by_message(t))
        return answer_by_messages(t, answer);
    if (host_is_gate(t)) {
        copy_span(span_of(shm_group_answer(f), t->answer), answer);
        shm_group_open_gate(f);
        return CT_OK;
    }
    status = shm_group_pass_gate(f, GATE);
    if (status == CT_OK)
        copy_span(span_of(answer, t->answer), shm_group_slot(f, GATE));
    return status;
}

/* ---- Parts ---------------------------------------------------------------------- */

static size_t part_bytes(const struct call *c, const struct host_parts *p, int owner)
{
    size_t bytes = 0;

    for (int k = 0; k < p->spans; k++)
        bytes += p->span(c, p->arg, owner, k).bytes;
    return bytes;
}

static size_t largest_part(const struct call *c, const struct host_parts *p)
{
    size_t most = 0;

    for (int owner = 0; owner < p->owners; owner++) {
        const size_t bytes = part_bytes(c, p, owner);

        most = bytes > most ? bytes : most;
    }
    return most;
}

struct span host_slice(const struct call *c, const void *slices, int owner, int k)
{
    const struct host_slices *s = slices;

    (void)k;
    return part_of_some(c, s->data, s->count, owner, s->slices);
}

int host_slices_of(const ct_group *group, size_t bytes, size_t least)
{
    const size_t slices = bytes / least;

    return slices < 1                                 ? 1
           : slices < (size_t)group->order.host_least ? (int)slices
                                                      : group->order.host_least;
}

/* A walk over a piece of one owner's part, which is the owner's spans one behind the other.
 * walk_next() gives the bytes of the piece that lie in the next span. */
struct walk {
    const struct call *call;
    const struct host_parts *parts;
    int owner, k;
    size_t at, left; /* offset from the start of span k; bytes of the piece that are left */
};

static struct walk walk_begin(const struct call *c, const struct host_parts *p, int owner,
                              size_t at, size_t bytes)
{
    return (struct walk){ c, p, owner, 0, at, bytes };
}

static int walk_next(struct walk *w, struct span *here)
{
    while (w->left > 0 && w->k < w->parts->spans) {
        const struct span span = w->parts->span(w->call, w->parts->arg, w->owner, w->k++);
        const size_t at = w->at, bytes = piece_of(span.bytes, at, w->left);

        if (bytes == 0) {
            w->at -= span.bytes;
            continue;
        }
        *here = span_of(span.data ? span.data + at : NULL, bytes);
        w->at = 0;
        w->left -= bytes;
        return 1;
    }
    return 0;
}

/* The current piece of each part. */
struct host_piece {
    size_t at, most; /* where the piece begins in each part; its most bytes */
};

static size_t bytes_here(const struct call *c, const struct host_parts *p, int owner,
                         const struct host_piece *piece)
{
    return piece_of(part_bytes(c, p, owner), piece->at, piece->most);
}

/* Processes the current piece of the part that this rank owns.  arrived[i] has the bytes of the
 * piece from rank i of this host, one span behind the other.  This rank's own bytes lie in its
 * input spans instead.  arrived[ranks] to arrived[2 ranks - 1] are scratch. */
typedef void piece_use(struct call *c, const struct level *l, const struct host_parts *input,
                       const struct host_parts *result, const struct host_piece *piece,
                       const void **arrived);

/* Folds the pieces of all ranks into the spans of the result. */
static void fold_piece(struct call *c, const struct level *l, const struct host_parts *input,
                       const struct host_parts *result, const struct host_piece *piece,
                       const void **arrived)
{
    const void **const sources = arrived + l->ranks;
    const struct call partials = call_of_partials(c);
    const size_t wider = partials.element / c->element;
    const int own = host_owner(l, input);
    const size_t n = bytes_here(c, input, own, piece);
    struct walk from = walk_begin(c, input, own, piece->at, n);
    struct walk to = walk_begin(&partials, result, own, piece->at * wider, n * wider);
    struct span in, out;
    size_t at = 0;

    while (walk_next(&from, &in) && walk_next(&to, &out)) {
        for (int i = 0; i < l->ranks; i++)
            sources[i] = i == l->rank ? in.data : (const char *)arrived[i] + at;
        fold_partials(c, out.data, sources, l->ranks, in.bytes);
        at += in.bytes;
    }
}

/* Copies this piece of what rank i sent into the parts of the result that belong to rank i, for
 * each rank i. */
static void keep_piece(struct call *c, const struct level *l, const struct host_parts *input,
                       const struct host_parts *result, const struct host_piece *piece,
                       const void **arrived)
{
    const int own = host_owner(l, input);
    const size_t n = bytes_here(c, input, own, piece);

    for (int i = 0; i < l->ranks; i++) {
        struct walk from = walk_begin(c, input, own, piece->at, n);
        struct walk to = walk_begin(c, result, i, piece->at, n);
        struct span in, out;
        size_t at = 0;

        for (; walk_next(&from, &in) && walk_next(&to, &out); at += in.bytes)
            copy_span(out, i == l->rank ? in.data : (const char *)arrived[i] + at);
    }
}

/* ---- To the owners ---------------------------------------------------------------- */

static ct_status give_by_slots(struct call *c, const struct level *l,
                               const struct host_parts *input, const struct host_parts *result,
                               const struct host_piece *piece, const void **arrived, piece_use *use)
{
    struct shm_group *f = c->group->host_shm;
    const int own = host_owner(l, input);
    const size_t room = (piece->most + 63) / 64 * 64; /* bytes for each owner in a slot */
    ct_status status = shm_group_next_slot(f, (size_t)input->owners * room);

    for (int owner = 0; owner < input->owners && status == CT_OK; owner++) {
        struct walk walk =
            walk_begin(c, input, owner, piece->at, bytes_here(c, input, owner, piece));
        size_t at = (size_t)owner * room;

        for (struct span here; owner != own && walk_next(&walk, &here); at += here.bytes)
            shm_group_write(f, at, here.data, here.bytes);
    }
    if (status == CT_OK)
        status = shm_group_publish(f);
    if (status != CT_OK || own < 0)
        return status;
    status = shm_group_wait_all(f);
    for (int i = 0; i < l->ranks && status == CT_OK; i++)
        arrived[i] = (const char *)shm_group_slot(f, i) + (size_t)own * room;
    if (status == CT_OK)
        use(c, l, input, result, piece, arrived);
    return status;
}

static ct_status give_by_messages(struct call *c, const struct level *l,
                                  const struct host_parts *input, const struct host_parts *result,
                                  const struct host_piece *piece, const void **arrived,
                                  piece_use *use)
{
    const int own = host_owner(l, input);
    const size_t n = own < 0 ? 0 : bytes_here(c, input, own, piece);
    char *room = call_scratch(c, (size_t)l->ranks * n);
    struct batch batch;
    ct_status status =
        batch_begin(&batch, c, l->ranks + input->owners * input->spans + l->ranks * input->spans);

    if (status == CT_OK && !room)
        status = ct_fail(CT_ERR_NOMEM, "no memory for the inputs of %d ranks", l->ranks);
    for (int i = 0; i < l->ranks && own >= 0 && status == CT_OK; i++) {
        struct walk walk = walk_begin(c, input, own, piece->at, n);
        size_t at = 0;

        arrived[i] = room + (size_t)i * n;
        for (struct span here; i != l->rank && walk_next(&walk, &here); at += here.bytes)
            batch_recv(&batch, host_rank(c->group, l->host, i),
                       span_of((const char *)arrived[i] + at, here.bytes));
    }
    for (int owner = 0; owner < input->owners && status == CT_OK; owner++) {
        const int to = (input->first + owner) % l->ranks;
        struct walk walk =
            walk_begin(c, input, owner, piece->at, bytes_here(c, input, owner, piece));

        for (struct span here; to != l->rank && walk_next(&walk, &here);)
            batch_send(&batch, host_rank(c->group, l->host, to), here);
    }
    if (status == CT_OK)
        status = batch_wait(&batch);
    else
        batch_cancel(&batch);
    if (status == CT_OK && own >= 0)
        use(c, l, input, result, piece, arrived);
    call_scratch_end(c, room);
    return status;
}

static ct_status give_to_owners(struct call *c, const struct level *l,
                                const struct host_parts *input, const struct host_parts *result,
                                piece_use *use)
{
    const int by_slots = l->ranks > 1 && c->group->host_shm != NULL;
    const size_t all = largest_part(c, input);
    const size_t most =
        by_slots ? shm_group_slot_bytes(c->group->host_shm) / (size_t)input->owners / 64 * 64
                 : piece_of_each(c);
    const void **arrived = malloc(2 * (size_t)l->ranks * sizeof *arrived);
    struct host_piece piece = { 0, all < most ? all : most };
    ct_status status = CT_OK;

    if (!arrived)
        return ct_fail(CT_ERR_NOMEM, "no memory for the inputs of %d ranks", l->ranks);
    if (l->ranks == 1) {
        piece.most = all;
        use(c, l, input, result, &piece, arrived);
        piece.at = all;
    }
    for (; piece.at < all && status == CT_OK; piece.at += piece.most)
        status = by_slots ? give_by_slots(c, l, input, result, &piece, arrived, use)
                          : give_by_messages(c, l, input, result, &piece, arrived, use);
    free(arrived);
    return status;
}

ct_status host_fold(struct call *c, const struct level *level, const struct host_parts *input,
                    const struct host_parts *result)
{
    return give_to_owners(c, level, input, result, fold_piece);
}

ct_status host_regroup(struct call *c, const struct level *level, const struct host_parts *input,
                       const struct host_parts *result)
{
    return give_to_owners(c, level, input, result, keep_piece);
}

/* ---- Sharing --------------------------------------------------------------------- */

#define ALL_READ (-1)

static ct_status wait_for_owners(const struct level *l, const struct host_parts *p,
                                 struct shm_group *f)
{
    if (p->owners > 1)
        return shm_group_wait_all(f);
    return host_owner(l, p) < 0 ? shm_group_wait(f, p->first) : CT_OK;
}

static ct_status share_by_slots(struct call *c, const struct level *l, const struct host_parts *p,
                                const struct host_piece *piece, int reader)
{
    struct shm_group *f = c->group->host_shm;
    const int own = host_owner(l, p);
    ct_status status = shm_group_next_slot(f, piece->most);

    if (status == CT_OK && own >= 0 && l->rank != reader) {
        struct walk walk = walk_begin(c, p, own, piece->at, bytes_here(c, p, own, piece));
        size_t at = 0;

        for (struct span here; walk_next(&walk, &here); at += here.bytes)
            shm_group_write(f, at, here.data, here.bytes);
    }
    if (status == CT_OK)
        status = shm_group_publish(f);
    if (reader != ALL_READ && l->rank != reader)
        return status;
    if (status == CT_OK)
        status = wait_for_owners(l, p, f);
    for (int owner = 0; owner < p->owners && status == CT_OK; owner++) {
        struct walk walk = walk_begin(c, p, owner, piece->at, bytes_here(c, p, owner, piece));
        const char *from = shm_group_slot(f, (p->first + owner) % l->ranks);

        for (struct span here; owner != own && walk_next(&walk, &here); from += here.bytes)
            if (here.data)
                copy_span(here, from);
    }
    return status;
}

static size_t largest_unwanted(const struct call *c, const struct host_parts *p)
{
    size_t most = 0;

    for (int owner = 0; owner < p->owners; owner++)
        for (int k = 0; k < p->spans; k++) {
            const struct span span = p->span(c, p->arg, owner, k);

            most = !span.data && span.bytes > most ? span.bytes : most;
        }
    return most;
}

/* Shares the parts by messages.  A rank also receives the spans that it does not want, into scratch
 * memory, since the sender does not know which spans a rank wants. */
static ct_status share_by_messages(struct call *c, const struct level *l,
                                   const struct host_parts *p, int reader)
{
    const int own = host_owner(l, p), reads = reader == ALL_READ || reader == l->rank;
    char *unwanted = reads ? call_scratch(c, largest_unwanted(c, p)) : NULL;
    struct batch batch;
    ct_status status = batch_begin(&batch, c, (p->owners + l->ranks) * p->spans);

    if (status == CT_OK && reads && !unwanted)
        status = ct_fail(CT_ERR_NOMEM, "no memory for what a rank of this host sends");
    for (int owner = 0; owner < p->owners && reads && status == CT_OK; owner++)
        for (int k = 0; owner != own && k < p->spans; k++) {
            const struct span span = p->span(c, p->arg, owner, k);

            batch_recv(&batch, host_rank(c->group, l->host, (p->first + owner) % l->ranks),
                       span_of(span.data ? span.data : unwanted, span.bytes));
        }
    for (int i = 0; i < l->ranks && own >= 0 && status == CT_OK; i++)
        for (int k = 0; i != l->rank && (reader == ALL_READ || reader == i) && k < p->spans; k++)
            batch_send(&batch, host_rank(c->group, l->host, i), p->span(c, p->arg, own, k));
    if (status == CT_OK)
        status = batch_wait(&batch);
    else
        batch_cancel(&batch);
    call_scratch_end(c, unwanted);
    return status;
}

static ct_status share(struct call *c, const struct level *l, const struct host_parts *p,
                       int reader)
{
    struct host_piece piece = { 0, 0 };
    size_t all, most;
    ct_status status = CT_OK;

    if (l->ranks == 1)
        return CT_OK;
    if (!c->group->host_shm)
        return share_by_messages(c, l, p, reader);
    all = largest_part(c, p);
    most = shm_group_slot_bytes(c->group->host_shm);
    piece.most = all < most ? all : most;
    for (; piece.at < all && status == CT_OK; piece.at += piece.most)
        status = share_by_slots(c, l, p, &piece, reader);
    return status;
}

ct_status host_share(struct call *c, const struct level *level, const struct host_parts *parts)
{
    return share(c, level, parts, ALL_READ);
}

ct_status host_collect(struct call *c, const struct level *level, const struct host_parts *parts,
                       int reader)
{
    return share(c, level, parts, reader);
}
