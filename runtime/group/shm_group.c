/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group.c - rounds over shared slots.
 *
 * Each rank has two lines, used by even and odd rounds.  A line is written only
 * by its owner: the signature of the call, a small payload, and last the number
 * of the round.  Numbers are 64 bits and only grow, so nothing is ever reset
 * and a late reader can't mistake an old round for a new one.
 *
 * Round n may overwrite the line of round n-2 when all ranks are in round n-1,
 * for then nobody reads n-2 any more; the same holds for the slots.  Every
 * wait compares signatures, so a rank that makes another call is found by
 * whoever waits for it first, at the latest in its next call.
 *
 * A slot has one writer a round, mostly its owner; in a scatter the root writes to all of them,
 * each rank's piece to that rank's slot.  It may: nobody else has anything to show, and by the same
 * argument whoever read there two rounds ago is done.  The line, which says that the piece is
 * there, is the root's own.
 *
 * Cost of a round: one line written, p-1 lines read. */
#include "runtime/group/shm_group_internal.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/protocol.h"
#include "runtime/trace/trace.h"

#define GROWS_AFTER 8 /* laps of what it is */

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

/* Does anybody who is awaited need the processor that we are on? */
static int somebody_is_behind_us(const struct flat *f, uint64_t round)
{
    const int here = sched_getcpu();

    for (int i = 0; i < f->size; i++)
        if (i != f->rank && bell_is_on(&f->mesh->node.bells[f->locals[i]], here)
            && atomic_load_explicit(&f->members[i].lines[round % 2].round, memory_order_relaxed)
                   < round)
            return 1;
    return 0;
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
        if (flat_is_broken(f))
            status = ct_fail(CT_ERR_ABORTED, "the group is broken");
        else if (turn == WAIT_OVER)
            status = ct_fail(CT_ERR_TIMEOUT, "%s did not come",
                             mesh_peer_name(f->mesh, f->ranks[rank], name, sizeof name));
        else if ((turn == WAIT_LOOK || atomic_load(&f->mesh->node.ended[f->locals[rank]])
                  || atomic_load_explicit(&f->members[rank].state, memory_order_acquire) != ALIVE)
                 && atomic_load_explicit(&line->round, memory_order_acquire) < round) {
            status = look_at_peer(f, rank);
            /* While we looked it may have come, and have ended well. */
            if (atomic_load_explicit(&line->round, memory_order_acquire) >= round)
                status = CT_OK;
        }
        if (status == CT_OK && turn != WAIT_OVER) {
            wait_for_rank(&wait, f->locals[rank]);
            if (wait_is_about_to_yield(&wait))
                wait.alone = !somebody_is_behind_us(f, round);
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
    for (int i = f->mesh->waiter.spins ? LOOKS_BEFORE_WAIT : 1; i > 0; i--)
        if (atomic_load_explicit(&line->round, memory_order_acquire) >= round)
            return 1;
    return 0;
}

/* Rank is in `round`, the current one or the one before, and in the same call as we were then. */
static ct_status wait_for(struct flat *f, int rank, uint64_t round)
{
    const struct line *line = &f->members[rank].lines[round % 2];
    const struct signature *own = &f->calls[round % 2];
    ct_status status;

    if (!comes_soon(f, line, round)) {
        status = wait_slowly(f, rank, line, round);
        if (status != CT_OK)
            return status;
    }
    if (!signature_equal(&line->signature, own))
        return mismatch(f->ranks[rank], own, &line->signature);
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

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Small slots take turns in front of the area: it is faster to get a few lines back from another
 * processor's cache than from further away.  Large ones go round the rest, or at first a part of
 * it: memory that is new costs more than the copy, so it grows with what has gone through it. There
 * is always room for three of the largest so far, so that the one at the start never meets the
 * last. */
static size_t next_slot(struct flat *f, size_t bytes)
{
    const size_t slot = (bytes + CACHE_PAIR - 1) / CACHE_PAIR * CACHE_PAIR;
    size_t at;

    if (slot <= FLAT_SMALL_SLOT)
        return (f->small ^= FLAT_SMALL_SLOT);
    f->through += slot;
    f->round_it = larger(f->round_it, larger(3 * slot, f->through / GROWS_AFTER));
    f->round_it = smaller(f->round_it, f->area - 2 * FLAT_SMALL_SLOT);
    f->copies.lap = f->round_it;
    at = f->next + slot <= f->round_it ? f->next : 0;
    f->next = at + slot;
    return 2 * FLAT_SMALL_SLOT + at;
}

/* With everybody in the last round, nobody reads the line of the round before it nor the slots of
 * the turns before the last: they are ours to write. */
ct_status flat_turn(struct flat *f, size_t bytes)
{
    f->inlined = bytes <= FLAT_INLINE_BYTES;
    if (!f->inlined)
        f->at = next_slot(f, smaller(bytes, FLAT_SLOT_BYTES));
    return wait_all_for(f, f->round);
}

static unsigned char *slot(const struct flat *f, int rank)
{
    return f->slots + (size_t)rank * f->area + f->at;
}

void *flat_own(const struct flat *f)
{
    return f->inlined ? f->members[f->rank].lines[(f->round + 1) % 2].payload : slot(f, f->rank);
}

const void *flat_slot(const struct flat *f, int rank)
{
    return f->inlined ? f->members[rank].lines[f->round % 2].payload : slot(f, rank);
}

void flat_show(struct flat *f, size_t at, const void *from, size_t bytes)
{
    copy_shared(&f->copies, (char *)flat_own(f) + at, from, bytes);
}

int flat_streams(const struct flat *f)
{
    return f->copies.streams;
}

void flat_show_to(struct flat *f, int rank, const void *from, size_t bytes)
{
    unsigned char *to =
        f->inlined ? (unsigned char *)flat_own(f) + (size_t)rank * bytes : slot(f, rank);

    copy_shared(&f->copies, to, from, bytes);
}

const void *flat_shown_here(const struct flat *f, int from, size_t bytes)
{
    return f->inlined ? (const unsigned char *)flat_slot(f, from) + (size_t)f->rank * bytes
                      : slot(f, f->rank);
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
    line->signature = f->calls[f->round % 2] = f->signature;
    wait_say_where(&f->mesh->waiter);
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
