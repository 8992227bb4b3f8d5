/* SPDX-License-Identifier: Apache-2.0 */
/* flat.c - rounds over shared slots.
 *
 * Each rank has two lines, used by even and odd rounds.  A line is written only
 * by its owner: the signature of the call, a small payload, and last the number
 * of the round.  Numbers are 64 bits and only grow, so nothing is ever reset
 * and a late reader can't mistake an old round for a new one.
 *
 * Round n may overwrite the line of round n-2 when all ranks are in round n-1,
 * for then nobody reads n-2 any more; the same holds for the two slots.  Every
 * wait compares signatures, so a rank that makes another call is found by
 * whoever waits for it first, at the latest in its next call.
 *
 * Cost of a round: one line written, p-1 lines read. */
#include "runtime/flat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/message.h"
#include "runtime/news.h"
#include "runtime/trace.h"

#define SPINS_AT_ONCE 100

enum { ALIVE, LEFT };

struct line {
    _Alignas(CACHE_PAIR) _Atomic uint64_t round;
    struct signature signature;
    unsigned char payload[FLAT_INLINE_BYTES];
};

struct member {
    struct line lines[2];
    _Alignas(CACHE_PAIR) _Atomic int state;
    _Atomic uint64_t breached; /* 1 + the call in which its owner knows the group broken; 0: none */
    struct breach breach;      /* written once, before that */
};

/* What lies in front of the members. */
struct head {
    _Alignas(CACHE_PAIR) _Atomic int broken; /* some member has a breach */
};

struct flat {
    struct mesh *mesh;
    int rank, size;
    int *locals; /* [size] ranks in the node */
    int *ranks;  /* [size] in the mesh */
    struct head *head;
    struct member *members;
    unsigned char *slots; /* [size][2] */
    size_t offset;        /* of the area, for its maker to take back */
    uint64_t round;       /* this rank is in */
    uint64_t all_in;      /* everybody was seen in it */
    int turn;             /* slot in use */
    int inlined;          /* this turn's payload lies in the lines */
    struct signature signature;
    int64_t deadline;
    const _Atomic int *broken;
};

/* ---- Making it ----------------------------------------------------------- */

static size_t members_bytes(int count)
{
    return (sizeof(struct head) + (size_t)count * sizeof(struct member) + 4095) / 4096 * 4096;
}

static size_t area_bytes(int count)
{
    return members_bytes(count) + (size_t)count * 2 * FLAT_SLOT_BYTES;
}

static struct member *members_in(void *area)
{
    return (struct member *)(void *)((char *)area + sizeof(struct head));
}

static int all_left(void *memory, size_t bytes)
{
    const struct member *members = members_in(memory);
    const size_t per_member = sizeof *members + 2 * FLAT_SLOT_BYTES;
    const int count = (int)(bytes / per_member);

    for (int i = 0; i < count; i++)
        if (atomic_load(&members[i].state) != LEFT)
            return 0;
    return 1;
}

/* The maker's message: where the area starts in the node's memory; SIZE_MAX: nowhere. */
static ct_status agree_on_area(struct flat *f, uint64_t channel, int64_t deadline,
                               const _Atomic int *given_up)
{
    const struct signature signature = { .op = -1, .root = -1 }; /* no call: seq 0 */
    uint64_t offset = SIZE_MAX;
    struct request request;
    ct_status status = CT_OK;

    if (f->rank > 0) {
        request_recv(f->mesh, &request, channel, f->ranks[0], 0, &offset, sizeof offset,
                     &signature);
        status = request_wait(f->mesh, &request, deadline, given_up);
        f->offset = offset;
        return status;
    }
    f->offset = offset = node_area_alloc(&f->mesh->node, area_bytes(f->size));
    if (offset != SIZE_MAX)
        memset(f->mesh->node.base + offset, 0, members_bytes(f->size));
    for (int i = 1; i < f->size && status == CT_OK; i++) {
        request_send(f->mesh, &request, channel, f->ranks[i], 0, &offset, sizeof offset,
                     &signature);
        status = request_wait(f->mesh, &request, deadline, given_up);
        if (status == CT_ERR_PEER)
            status = CT_OK; /* it died: the first call will say so, and the others wait for us */
    }
    return status;
}

static void flat_free(struct flat *f)
{
    free(f->locals);
    free(f->ranks);
    free(f);
}

ct_status flat_create(struct mesh *mesh, const int *members, int count, int rank, uint64_t channel,
                      int64_t deadline, const _Atomic int *given_up, struct flat **flat)
{
    struct flat *f = calloc(1, sizeof *f);
    ct_status status;

    if (!f || !(f->locals = calloc((size_t)count, sizeof *f->locals))
        || !(f->ranks = calloc((size_t)count, sizeof *f->ranks))) {
        if (f)
            flat_free(f);
        return ct_fail(CT_ERR_NOMEM, "no memory for a group of %d ranks", count);
    }
    f->mesh = mesh;
    f->rank = rank;
    f->size = count;
    f->round = f->all_in = fault_first_seq(mesh->faults) - 1;
    for (int i = 0; i < count; i++) {
        f->ranks[i] = members[i];
        f->locals[i] = mesh->peers[members[i]].local;
    }
    status = agree_on_area(f, channel, deadline, given_up);
    if (status != CT_OK || f->offset == SIZE_MAX) {
        flat_free(f);
        return status;
    }
    f->head = (struct head *)(void *)(mesh->node.base + f->offset);
    f->members = members_in(f->head);
    f->slots = mesh->node.base + f->offset + members_bytes(count);
    *flat = f;
    return CT_OK;
}

static void ring_all(const struct flat *f)
{
    for (int i = 0; i < f->size; i++)
        node_ring_bell(&f->mesh->node, f->locals[i]);
}

/* Of the members that know of a breach the one with the earliest call; -1: it is sound. */
static int earliest(const struct flat *f, uint64_t *seq)
{
    int member = -1;

    for (int i = 0; i < f->size && atomic_load_explicit(&f->head->broken, memory_order_relaxed);
         i++) {
        const uint64_t breached =
            atomic_load_explicit(&f->members[i].breached, memory_order_acquire);

        if (breached && (member < 0 || breached - 1 < *seq)) {
            member = i;
            *seq = breached - 1;
        }
    }
    return member;
}

void flat_break(struct flat *f, const struct breach *breach)
{
    struct member *own = &f->members[f->rank];
    uint64_t seq;

    if (atomic_load(&own->breached) || (earliest(f, &seq) >= 0 && seq <= breach->seq))
        return;
    own->breach = *breach;
    atomic_store(&own->breached, breach->seq + 1);
    atomic_store(&f->head->broken, 1);
    ring_all(f);
}

int flat_breach(const struct flat *f, struct breach *breach)
{
    uint64_t seq;
    const int member = earliest(f, &seq);

    if (member < 0)
        return 0;
    *breach = f->members[member].breach;
    return 1;
}

/* A rank that failed in a later call has done its part of this one. */
static int is_broken(const struct flat *f)
{
    uint64_t seq;

    return atomic_load_explicit(f->broken, memory_order_relaxed)
           || (earliest(f, &seq) >= 0 && seq <= f->signature.seq);
}

void flat_destroy(struct flat *f)
{
    if (!f)
        return;
    atomic_store(&f->members[f->rank].state, LEFT);
    ring_all(f);
    if (f->rank == 0)
        node_area_retire(&f->mesh->node, f->offset, all_left);
    flat_free(f);
}

/* ---- Rounds -------------------------------------------------------------- */

void flat_call(struct flat *f, const struct signature *signature, int64_t deadline,
               const _Atomic int *broken)
{
    f->signature = *signature;
    f->deadline = deadline;
    f->broken = broken;
}

static ct_status mismatch(int rank, const struct signature *mine, const struct signature *theirs)
{
    char words[256];

    signature_differ(mine, theirs, rank, words, sizeof words);
    return ct_fail(CT_ERR_MISMATCH, "%s", words);
}

static ct_status look_at_peer(const struct flat *f, int rank)
{
    const int state = atomic_load(&f->members[rank].state);
    char name[160];

    mesh_peer_name(f->mesh, f->ranks[rank], name, sizeof name);
    if (mesh_death(f->mesh, f->ranks[rank])) {
        mesh_death_words(f->mesh, f->ranks[rank], name, sizeof name);
        return ct_fail(CT_ERR_PEER, "%s", name);
    }
    if (state == LEFT)
        return ct_fail(CT_ERR_PEER, "%s destroyed the group without making this call", name);
    if (node_peer_gone(&f->mesh->node, f->locals[rank]))
        return ct_fail(CT_ERR_PEER, "%s is gone: its process ended", name);
    return CT_OK;
}

/* The slow part of a wait: rank is not in the round yet. */
static ct_status wait_slowly(struct flat *f, int rank, const struct line *line, uint64_t round)
{
    const uint64_t traced = trace_wait(f->mesh->trace, f->ranks[rank], 0);
    enum wait_turn turn = WAIT_AGAIN;
    ct_status status = CT_OK;
    struct wait wait;
    char name[160];

    wait_begin(&wait, &f->mesh->waiter, f->deadline);
    while (status == CT_OK && atomic_load_explicit(&line->round, memory_order_acquire) < round) {
        if (is_broken(f))
            status = ct_fail(CT_ERR_ABORTED, "the group is broken");
        else if (turn == WAIT_OVER)
            status = ct_fail(CT_ERR_TIMEOUT, "%s did not come",
                             mesh_peer_name(f->mesh, f->ranks[rank], name, sizeof name));
        else if ((turn == WAIT_LOOK || atomic_load(&f->mesh->node.ended[f->locals[rank]])
                  || atomic_load_explicit(&f->members[rank].state, memory_order_acquire) != ALIVE)
                 && atomic_load_explicit(&line->round, memory_order_acquire) < round)
            status = look_at_peer(f, rank);
        if (status == CT_OK && turn != WAIT_OVER) {
            turn = wait_turn(&wait);
            mesh_look_for_news(f->mesh);
            if (wait.asleep || wait.polls)
                messages_look(f->mesh); /* a question may have come, or a breach */
        }
    }
    wait_end(&wait);
    trace_end(f->mesh->trace, traced, status);
    return status;
}

/* Nothing else is looked at for as long as a hand-over between two processors takes. */
static int comes_soon(const struct flat *f, const struct line *line, uint64_t round)
{
    for (int i = f->mesh->waiter.spins ? SPINS_AT_ONCE : 1; i > 0; i--)
        if (atomic_load_explicit(&line->round, memory_order_acquire) >= round)
            return 1;
    return 0;
}

/* Rank is in `round`, the current one or the one before, and in the same call as we were then. */
static ct_status wait_for(struct flat *f, int rank, uint64_t round)
{
    const struct line *line = &f->members[rank].lines[round % 2];
    const struct line *own = &f->members[f->rank].lines[round % 2];
    ct_status status;

    if (!comes_soon(f, line, round)) {
        status = wait_slowly(f, rank, line, round);
        if (status != CT_OK)
            return status;
    }
    if (!signature_equal(&line->signature, &own->signature))
        return mismatch(rank, &own->signature, &line->signature);
    return CT_OK;
}

static ct_status wait_all_for(struct flat *f, uint64_t round)
{
    ct_status status = CT_OK;

    if (f->all_in >= round)
        return CT_OK;
    for (int i = 1; i < f->size && status == CT_OK; i++)
        status = wait_for(f, (f->rank + i) % f->size, round);
    if (status == CT_OK)
        f->all_in = round;
    return status;
}

/* With everybody in the last round, nobody reads the line of the round before
 * it nor the slot of the turn before the last: both are ours to write. */
ct_status flat_turn(struct flat *f, size_t bytes)
{
    f->turn ^= 1;
    f->inlined = bytes <= FLAT_INLINE_BYTES;
    return wait_all_for(f, f->round);
}

static unsigned char *slot(const struct flat *f, int rank)
{
    return f->slots + ((size_t)rank * 2 + (size_t)f->turn) * FLAT_SLOT_BYTES;
}

void *flat_own(const struct flat *f)
{
    return f->inlined ? f->members[f->rank].lines[(f->round + 1) % 2].payload : slot(f, f->rank);
}

const void *flat_slot(const struct flat *f, int rank)
{
    return f->inlined ? f->members[rank].lines[f->round % 2].payload : slot(f, rank);
}

static void ring(const struct flat *f, int rank)
{
    const struct node *node = &f->mesh->node;

    bell_ring_fenced(&node->bells[f->locals[rank]], node->event_fds[f->locals[rank]]);
}

ct_status flat_arrive(struct flat *f)
{
    struct line *line = &f->members[f->rank].lines[(f->round + 1) % 2];
    const ct_status status = wait_all_for(f, f->round);

    if (status != CT_OK)
        return status;
    f->round++;
    line->signature = f->signature;
    atomic_store_explicit(&line->round, f->round, memory_order_release);
    bell_fence();
    for (int i = f->rank + 1; i < f->size; i++)
        ring(f, i);
    for (int i = 0; i < f->rank; i++)
        ring(f, i);
    fault_pass(f->mesh->faults);
    return CT_OK;
}

ct_status flat_wait(struct flat *f, int rank)
{
    return wait_for(f, rank, f->round);
}

ct_status flat_wait_all(struct flat *f)
{
    return wait_all_for(f, f->round);
}
