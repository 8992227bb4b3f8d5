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
 * Cost of a round: one line written, p-1 lines read.
 *
 * The first member reserves a piece of its arena for lines and slots and tells the others where; it
 * is taken back when all have left.
 *
 * Buffers in memory of ct_mem_alloc() need no slot: each rank writes into its line where they lie,
 * as offsets in the file that the host's ranks share.  A rank that reads or writes at the buffers
 * of others notes that, too: a rank whose call has failed must not return while another one may
 * still write to what its program takes for its own again. */
#include "runtime/group/shm_group.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/protocol.h"
#include "runtime/shm/copy_to_shared.h"
#include "runtime/shm/shared_region.h"
#include "runtime/trace/trace.h"
#include "runtime/util/clock.h"

/* ---- What a group has in shared memory, and each rank beside ------------------ */

#define FLAT_SMALL_SLOT ((size_t)4 << 10)
#define GROWS_AFTER 8 /* laps of what it is */
#define LONGEST_SETTLING_MS 200
#define BY_HOST 1
#define BY_DEVICE 2

enum { ALIVE, LEFT };
enum { SEND, RECV };

/* Offsets in the host's shared file (shared_region.h); 0: not there. */
struct offer {
    uint64_t send, recv;
};

struct line {
    _Alignas(CACHE_PAIR) _Atomic uint64_t round;
    struct signature signature;
    unsigned char payload[FLAT_INLINE_BYTES];
};

struct member {
    struct line lines[2];
    _Alignas(CACHE_PAIR) _Atomic int state;
    _Atomic int touching;        /* its owner is at buffers of the others; 0: it is not */
    _Atomic int in_streams;      /* calls in which its device is, or will be, at them: any number */
    _Atomic uint64_t fails_from; /* 1 + the call from which on its owner knows it fails; 0: none */
    struct group_failure failure; /* written once, before that */
};

/* What lies in front of the members. */
struct head {
    _Alignas(CACHE_PAIR) _Atomic int failed; /* some member has a failure */
    int count;                               /* of the members */
};

struct flat {
    struct mesh *mesh;
    int rank, size;
    int *locals;                           /* [size] ranks in the node */
    int *ranks;                            /* [size] in the mesh */
    uint64_t members_here[NODE_SET_WORDS]; /* the same as a set */
    struct reached {                       /* [size] of this call, since flat_look_up() */
        const char *send;
        char *recv;
    } * reached;
    struct region_offer own[2]; /* our send and recv buffer */
    struct head *head;
    struct member *members;
    unsigned char *slots; /* [size], an area each */
    size_t offset;        /* of the area, for its maker to take back */
    uint64_t round;       /* this rank is in */
    uint64_t all_in;      /* everybody was seen in it */
    size_t area;          /* bytes of a rank's slots */
    size_t at;            /* there: the slot in use, */
    size_t small;         /* the last small one; behind them */
    size_t round_it;      /* so much is used for large ones, */
    size_t next;          /* where the next of them begins, */
    uint64_t through;     /* and bytes that all of them took */
    int inlined;          /* this turn's payload lies in the lines */
    struct copy_shared copies;
    struct signature signature;
    struct signature calls[2]; /* as they stand in our lines, which are in another's cache by now */
    int64_t deadline;
    const _Atomic int *interrupted;
};

/* ---- Making --------------------------------------------------------------------- */

static size_t members_bytes(int count)
{
    return (sizeof(struct head) + (size_t)count * sizeof(struct member) + 4095) / 4096 * 4096;
}

/* Who writes a line that another processor still holds must get it back from there.  What goes
 * round more memory than a processor's own cache holds has been dropped by then: two ranks that
 * share the third-level cache only copy 256 KiB in 32 us round 256 KiB, in 9 round 2 MiB. */
static size_t slots_bytes(int count)
{
    return (count <= 2 ? 8 : count <= 4 ? 4 : 3) * FLAT_SLOT_BYTES + 2 * FLAT_SMALL_SLOT;
}

static size_t area_bytes(int count)
{
    return members_bytes(count) + (size_t)count * slots_bytes(count);
}

static struct member *members_in(void *area)
{
    return (struct member *)(void *)((char *)area + sizeof(struct head));
}

static int all_left(void *memory, size_t bytes)
{
    const struct head *head = memory;
    const struct member *members = members_in(memory);

    for (int i = 0; i < head->count && members_bytes(i + 1) <= bytes; i++)
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
    if (offset != SIZE_MAX) {
        memset(f->mesh->node.base + offset, 0, members_bytes(f->size));
        ((struct head *)(void *)(f->mesh->node.base + offset))->count = f->size;
    }
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
    free(f->reached);
    free(f);
}

ct_status flat_create(struct mesh *mesh, const int *members, int count, int rank, uint64_t channel,
                      int64_t deadline, const _Atomic int *given_up, struct flat **flat)
{
    struct flat *f;
    ct_status status;

    if (mesh->node.size > NODE_MOST) /* members_here can't say who they are */
        return CT_OK;
    f = calloc(1, sizeof *f);
    if (!f || !(f->locals = calloc((size_t)count, sizeof *f->locals))
        || !(f->ranks = calloc((size_t)count, sizeof *f->ranks))
        || !(f->reached = calloc((size_t)count, sizeof *f->reached))) {
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
        node_set_add(f->members_here, f->locals[i]);
    }
    status = agree_on_area(f, channel, deadline, given_up);
    if (status != CT_OK || f->offset == SIZE_MAX) {
        flat_free(f);
        return status;
    }
    f->head = (struct head *)(void *)(mesh->node.base + f->offset);
    f->members = members_in(f->head);
    f->slots = mesh->node.base + f->offset + members_bytes(count);
    f->area = slots_bytes(count);
    *flat = f;
    return CT_OK;
}

/* ---- Rounds -------------------------------------------------------------------- */

/* The member with the failure of the earliest call; -1: no member has one. */
static int earliest(const struct flat *f, uint64_t *seq)
{
    int member = -1;

    for (int i = 0; i < f->size && atomic_load_explicit(&f->head->failed, memory_order_relaxed);
         i++) {
        const uint64_t fails_from =
            atomic_load_explicit(&f->members[i].fails_from, memory_order_acquire);

        if (fails_from && (member < 0 || fails_from - 1 < *seq)) {
            member = i;
            *seq = fails_from - 1;
        }
    }
    return member;
}

static int has_failed(const struct flat *f)
{
    uint64_t seq;

    return atomic_load_explicit(f->interrupted, memory_order_relaxed)
           || (earliest(f, &seq) >= 0 && seq <= f->signature.seq);
}

void flat_call(struct flat *f, const struct signature *signature, int64_t deadline,
               const _Atomic int *interrupted)
{
    f->signature = *signature;
    f->deadline = deadline;
    f->interrupted = interrupted;
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
        if (has_failed(f))
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
            mesh_look_for_deaths(f->mesh);
            if (wait.asleep || wait.polls)
                messages_look(f->mesh); /* a probe may have come, or a failure */
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

/* ---- Buffers where they lie ----------------------------------------------------- */

void flat_offer(struct flat *f, const void *send, size_t send_bytes, void *recv, size_t recv_bytes)
{
    struct offer offer;

    flat_withdraw(f);
    f->own[SEND] = (struct region_offer){ .data = send, .bytes = send_bytes };
    f->own[RECV] = (struct region_offer){ .data = recv, .bytes = recv_bytes };
    regions_offer(&f->mesh->node, f->own, 2, f->members_here);
    offer = (struct offer){ f->own[SEND].offset, f->own[RECV].offset };
    memcpy(f->members[f->rank].lines[(f->round + 1) % 2].payload, &offer, sizeof offer);
}

void flat_withdraw(struct flat *f)
{
    regions_withdraw(&f->mesh->node, f->own, 2);
}

int flat_offers(const struct flat *f, int send, int recv)
{
    return (!send || f->own[SEND].offset) && (!recv || f->own[RECV].offset);
}

/* Of a send and a recv buffer those that matter. */
static int is_whole(const struct offer *offer, int send, int recv)
{
    return (!send || offer->send) && (!recv || offer->recv);
}

static struct offer offer_of(const struct flat *f, int rank)
{
    struct offer offer;

    memcpy(&offer, f->members[rank].lines[f->round % 2].payload, sizeof offer);
    return offer;
}

static ct_status find(struct flat *f, int rank, size_t send_bytes, size_t recv_bytes)
{
    const struct node *node = &f->mesh->node;
    const struct offer offer = offer_of(f, rank);
    char name[160];

    f->reached[rank].send = send_bytes ? region_at(node, offer.send, send_bytes) : NULL;
    f->reached[rank].recv = recv_bytes ? region_at(node, offer.recv, recv_bytes) : NULL;
    if ((send_bytes && !f->reached[rank].send) || (recv_bytes && !f->reached[rank].recv))
        return ct_fail(CT_ERR_INVALID, "the buffer of %s was given back by ct_mem_free() here",
                       mesh_peer_name(f->mesh, f->ranks[rank], name, sizeof name));
    return CT_OK;
}

ct_status flat_look_up(struct flat *f, int from, size_t send_bytes, size_t recv_bytes,
                       enum reach *reach)
{
    const int first = from < 0 ? 0 : from, end = from < 0 ? f->size : from + 1;
    ct_status status = CT_OK;
    int whole = 0, looking;

    for (int i = first; i < end; i++) {
        const struct offer offer = offer_of(f, i);

        whole += is_whole(&offer, send_bytes > 0, recv_bytes > 0);
    }
    *reach = whole == 0 ? REACH_NONE : whole < end - first ? REACH_SOME : REACH_ALL;
    if (*reach != REACH_ALL)
        return CT_OK;
    looking = regions_look(&f->mesh->node);
    for (int i = first; i < end && status == CT_OK; i++)
        status = find(f, i, send_bytes, recv_bytes);
    if (looking)
        regions_looked(&f->mesh->node);
    return status;
}

const char *flat_send_of(const struct flat *f, int rank)
{
    return f->reached[rank].send;
}

char *flat_recv_of(const struct flat *f, int rank)
{
    return f->reached[rank].recv;
}

/* Says that we are there, then looks whether somebody has given up; who gives up says so, then
 * looks who is there. */
static ct_status touch(struct flat *f, int by)
{
    atomic_store(&f->members[f->rank].touching, by);
    if (!has_failed(f)) {
        fault_pass(f->mesh->faults);
        return CT_OK;
    }
    flat_untouch(f);
    return ct_fail(CT_ERR_ABORTED, "the group is broken");
}

ct_status flat_touch(struct flat *f)
{
    return touch(f, BY_HOST);
}

ct_status flat_touch_by_device(struct flat *f)
{
    return touch(f, BY_DEVICE);
}

void flat_untouch(struct flat *f)
{
    atomic_store_explicit(&f->members[f->rank].touching, 0, memory_order_release);
}

ct_status flat_touch_in_stream(struct flat *f)
{
    atomic_fetch_add(&f->members[f->rank].in_streams, 1);
    if (!has_failed(f))
        return CT_OK;
    flat_untouch_in_stream(f);
    return ct_fail(CT_ERR_ABORTED, "the group is broken");
}

void flat_untouch_in_stream(struct flat *f)
{
    atomic_fetch_sub_explicit(&f->members[f->rank].in_streams, 1, memory_order_release);
}

/* 0: is not at the others' buffers. */
static int touching(const struct member *member)
{
    const int by = atomic_load(&member->touching);

    return by || atomic_load(&member->in_streams) == 0 ? by : BY_DEVICE;
}

/* A process that was stopped there stays there: what it might still write to is cut off.  What a
 * device might can't be; it is waited for, since it is at work and not stopped. */
/* 1: another rank's processor is at them still, however long that takes. */
static int await_untouched(struct flat *f)
{
    const int64_t begun = clock_ms();
    int by;

    for (int i = 0; i < f->size; i++)
        while (i != f->rank && (by = touching(&f->members[i])) != 0
               && !node_peer_gone(&f->mesh->node, f->locals[i])) {
            if (by == BY_DEVICE && clock_ms() - begun >= FLAT_DEVICE_SETTLING_MS)
                return 0;
            if (by == BY_HOST && clock_ms() - begun >= LONGEST_SETTLING_MS)
                return 1;
            sched_yield();
        }
    return 0;
}

void flat_await_untouched(struct flat *f)
{
    await_untouched(f);
}

void flat_settle(struct flat *f)
{
    if (await_untouched(f))
        regions_cut_off(&f->mesh->node, f->own, 2);
    flat_withdraw(f);
}

/* ---- Failing and leaving -------------------------------------------------------- */

static void ring_all(const struct flat *f)
{
    for (int i = 0; i < f->size; i++)
        node_ring_bell(&f->mesh->node, f->locals[i]);
}

void flat_fail(struct flat *f, const struct group_failure *failure)
{
    struct member *own = &f->members[f->rank];
    uint64_t seq;

    if (atomic_load(&own->fails_from) || (earliest(f, &seq) >= 0 && seq <= failure->from_call))
        return;
    own->failure = *failure;
    atomic_store(&own->fails_from, failure->from_call + 1);
    atomic_store(&f->head->failed, 1);
    ring_all(f);
}

int flat_failure(const struct flat *f, struct group_failure *failure)
{
    uint64_t seq;
    const int member = earliest(f, &seq);

    if (member < 0)
        return 0;
    *failure = f->members[member].failure;
    return 1;
}

/* A rank that failed in a later call has done its part of this one. */

void flat_destroy(struct flat *f)
{
    if (!f)
        return;
    flat_withdraw(f);
    atomic_store(&f->members[f->rank].state, LEFT);
    ring_all(f);
    if (f->rank == 0)
        node_area_retire(&f->mesh->node, f->offset, all_left);
    flat_free(f);
}
