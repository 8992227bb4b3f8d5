/* SPDX-License-Identifier: Apache-2.0 */
/* hier_blocks.c - calls with a block for each rank, where NCCL is between the executors.
 *
 * NCCL has as many bytes of each of its ranks, in its own order; a team's ranks may be any of the
 * group, and teams differ in size.  So there are slots in the executors' scratch, as many for each
 * executor as the largest team has ranks, and blocks are brought there and back by one launch each:
 *
 *   all_gather       the team's blocks to its slots; NCCL; every rank's to all of the team
 *   gather           the same; every rank's to the root
 *   scatter          the root's blocks to the slots of their ranks; NCCL; the team's to its ranks
 *   reduce_scatter   folds of the team's blocks there; NCCL; the team's to its ranks
 *   all_to_all       a slot for each pair of ranks, by executors; NCCL; from there to the ranks
 *
 * What has no room goes in pieces, the same bytes of each block.  Slots of no rank travel, too,
 * with whatever is in them, and nobody looks.  An all_gather whose blocks are in NCCL's order
 * anyhow needs no slots: the executor's buffer has them. */
#include "collectives/device/launch_batch.h"
#include "collectives/device/nccl/hier_leader.h"

#define LEAST ((size_t)4096) /* of each block in a piece, and what such pieces are multiples of */

/* These bytes of each block. */
struct piece {
    const struct team *team;
    size_t block; /* bytes of one */
    size_t at, bytes;
    char *slots; /* of `bytes` each */
    struct batch batch;
};

static int are_in_order(const struct executors *e)
{
    for (int i = 0; i < e->ranks; i++)
        if (e->of[i] * e->most + e->place[i] != i)
            return 0;
    return e->most * e->count == e->ranks;
}

static size_t slots_for(const struct call *c, const struct executors *e)
{
    const size_t most = (size_t)e->most, of_ranks = most * (size_t)e->count;

    return c->signature.operation == OPERATION_ALL_TO_ALL ? 2 * of_ranks * most : of_ranks;
}

int team_needs_buffer(const struct call *c, const struct executors *e)
{
    return c->signature.operation == OPERATION_ALL_GATHER && are_in_order(e);
}

/* Teams so unlike that most slots are nobody's would send more than the ranks have. */
int team_has_slots(const struct call *c, const struct executors *e)
{
    if (team_needs_buffer(c, e))
        return 1;
    return e->most * e->count <= 2 * e->ranks && slots_for(c, e) <= team_scratch / LEAST;
}

/* ---- Slots -------------------------------------------------------------------------------- */

static void copy(struct piece *p, char *from, char *to)
{
    batch_copy(&p->batch, from, to, p->bytes);
}

static ct_status copy_all(struct piece *p)
{
    return batch_copy_all(&p->batch, &p->team->call->place);
}

static char *slot_of(const struct piece *p, int rank)
{
    const struct executors *e = p->team->e;

    return p->slots + (size_t)(e->of[rank] * e->most + e->place[rank]) * p->bytes;
}

static ct_status team_to_slots(struct piece *p)
{
    const struct team *t = p->team;

    for (int i = 0; i < t->size; i++)
        copy(p, team_sent(t, i, 0) + p->at, slot_of(p, t->rank[i]));
    return copy_all(p);
}

static ct_status slots_to_team(struct piece *p)
{
    const struct team *t = p->team;

    for (int i = 0; i < t->size; i++)
        copy(p, slot_of(p, t->rank[i]), team_received(t, i, 0) + p->at);
    return copy_all(p);
}

/* ---- A piece of each operation ------------------------------------------------------------- */

typedef ct_status piece_fn(struct piece *p);

static char *own_slots(const struct piece *p)
{
    return slot_of(p, p->team->rank[0]);
}

static size_t bytes_of_team(const struct piece *p)
{
    return (size_t)p->team->e->most * p->bytes;
}

/* Where all blocks are, the executor's buffer. */
static ct_status all_gather_in_order(struct piece *p)
{
    const struct team *t = p->team;
    ct_status status;

    p->slots = team_received(t, 0, 0);
    p->bytes = p->block;
    status = team_to_slots(p);
    if (status == CT_OK)
        status = team_talk(t, own_slots(p), p->slots, bytes_of_team(p));
    if (status != CT_OK || t->size == 1)
        return status;
    batch_add(&p->batch, (size_t)t->e->ranks * p->block);
    batch_from(&p->batch, team_received(t, 0, 0));
    for (int i = 1; i < t->size; i++)
        batch_to(&p->batch, team_received(t, i, 0));
    return copy_all(p);
}

static ct_status all_gather(struct piece *p)
{
    const struct team *t = p->team;
    ct_status status = team_to_slots(p);

    if (status == CT_OK)
        status = team_talk(t, own_slots(p), p->slots, bytes_of_team(p));
    for (int rank = 0; rank < t->e->ranks && status == CT_OK; rank++) {
        batch_add(&p->batch, p->bytes);
        batch_from(&p->batch, slot_of(p, rank));
        for (int i = 0; i < t->size; i++)
            batch_to(&p->batch, team_received(t, i, rank) + p->at);
    }
    return status == CT_OK ? copy_all(p) : status;
}

static ct_status gather(struct piece *p)
{
    const struct team *t = p->team;
    const int root = team_place(t, t->call->signature.root);
    ct_status status = team_to_slots(p);

    if (status == CT_OK)
        status = team_talk(t, own_slots(p), p->slots, bytes_of_team(p));
    for (int rank = 0; rank < t->e->ranks && root >= 0 && status == CT_OK; rank++)
        copy(p, slot_of(p, rank), team_received(t, root, rank) + p->at);
    return status == CT_OK ? copy_all(p) : status;
}

static ct_status scatter(struct piece *p)
{
    const struct team *t = p->team;
    const int root = team_place(t, t->call->signature.root);
    ct_status status;

    for (int rank = 0; rank < t->e->ranks && root >= 0; rank++)
        copy(p, team_sent(t, root, rank) + p->at, slot_of(p, rank));
    status = copy_all(p);
    if (status == CT_OK)
        status = team_talk(t, p->slots, own_slots(p), bytes_of_team(p));
    return status == CT_OK ? slots_to_team(p) : status;
}

static ct_status reduce_scatter(struct piece *p)
{
    const struct team *t = p->team;
    const struct call *c = t->call;
    ct_status status;

    for (int rank = 0; rank < t->e->ranks; rank++) {
        batch_add(&p->batch, p->bytes / c->element);
        for (int i = 0; i < t->size; i++)
            batch_from(&p->batch, team_sent(t, i, rank) + p->at);
        batch_to(&p->batch, slot_of(p, rank));
    }
    status = batch_fold(&p->batch, &c->place, call_dtype(c), call_op(c), t->size);
    if (status == CT_OK)
        status = team_talk(t, p->slots, own_slots(p), bytes_of_team(p));
    return status == CT_OK ? slots_to_team(p) : status;
}

/* Of what goes to (comes from) a rank, and comes from (goes to) one of the team: an executor's lie
 * together, by who sends and then by who receives. */
static char *pair(const struct piece *p, char *slots, int rank, int sender, int receiver)
{
    const struct executors *e = p->team->e;

    return slots + (size_t)((e->of[rank] * e->most + sender) * e->most + receiver) * p->bytes;
}

static ct_status all_to_all(struct piece *p)
{
    const struct team *t = p->team;
    const struct executors *e = t->e;
    const size_t each = bytes_of_team(p) * (size_t)e->most;
    char *const arrived = p->slots + (size_t)e->count * each;
    ct_status status;

    for (int i = 0; i < t->size; i++)
        for (int rank = 0; rank < e->ranks; rank++)
            copy(p, team_sent(t, i, rank) + p->at, pair(p, p->slots, rank, i, e->place[rank]));
    status = copy_all(p);
    if (status == CT_OK)
        status = team_talk(t, p->slots, arrived, each);
    for (int i = 0; i < t->size && status == CT_OK; i++)
        for (int rank = 0; rank < e->ranks; rank++)
            copy(p, pair(p, arrived, rank, e->place[rank], i), team_received(t, i, rank) + p->at);
    return status == CT_OK ? copy_all(p) : status;
}

/* ---- A call ------------------------------------------------------------------------------- */

static piece_fn *piece_of(const struct call *c)
{
    switch (c->signature.operation) {
    case OPERATION_ALL_GATHER:
        return all_gather;
    case OPERATION_GATHER:
        return gather;
    case OPERATION_SCATTER:
        return scatter;
    case OPERATION_REDUCE_SCATTER:
        return reduce_scatter;
    default:
        return all_to_all;
    }
}

static ct_status in_pieces(struct piece *p)
{
    const struct call *c = p->team->call;
    const size_t most = team_scratch / slots_for(c, p->team->e) / LEAST * LEAST;
    piece_fn *const make = piece_of(c);
    ct_status status = CT_OK;

    p->slots = c->group->staging->scratch.memory;
    for (p->at = 0; p->at < p->block && status == CT_OK; p->at += most) {
        p->bytes = p->block - p->at < most ? p->block - p->at : most;
        status = make(p);
    }
    return status;
}

ct_status team_blocks(const struct team *t)
{
    const struct call *c = t->call;
    const size_t parts = (size_t)t->size * (size_t)t->e->ranks;
    struct piece p = { .team = t, .block = call_bytes(c) };
    ct_status status = batch_make(&p.batch, parts, 2 * parts);

    if (status == CT_OK)
        status = team_needs_buffer(c, t->e) ? all_gather_in_order(&p) : in_pieces(&p);
    batch_free(&p.batch);
    return status;
}
