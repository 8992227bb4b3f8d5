/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group.c - rounds over shared slots.
 *
 * Each rank has two lines, used by even and odd rounds.  Only its owner writes a line: the
 * signature of the call, a small payload, and last the number of the round.  Numbers have 64 bits
 * and only grow, so nothing is ever reset, and a late reader can't mistake an old round for a new
 * one.
 *
 * Round n may overwrite the line of round n-2 when all ranks are in round n-1: no rank reads n-2
 * any more.  The same holds for the slots.  Each wait compares signatures.  So a rank that makes
 * another call is found by the first rank that waits for it, at the latest in its next call.  Ranks
 * that wait for no rank compare with the ranks that have arrived: shm_group_send_alone(),
 * shm_group_glance().
 *
 * A slot has one writer in a round, mostly its owner.  In a scatter the root writes to all slots,
 * each rank's piece into that rank's slot.  That is allowed: no other rank has data to send, and
 * ranks that read there two rounds ago are done, as above.  The root's own line announces that the
 * pieces are there.
 *
 * Cost of a round: one line written, p-1 lines read.
 *
 * That is the fastest while each rank has a processor, but p ranks together read p (p-1) lines and
 * look at as many doorbells.  So in a group of more than TREE_FROM ranks arrivals are counted in a
 * tree, each node of which has up to TREE_RADIX ranks or nodes below it.  The rank that completes a
 * node counts it in the node above; the one that completes the root writes the number of the round
 * into the head, which all others wait for, and rings those that sleep.  So no rank has to wake for
 * the arrival of another one.  The rank that completes a node compares the signatures below it.
 * Cost of a round: one line written, log p counters added to, one word read; p doorbells looked at
 * by one rank.  [Yew, Tzeng, Lawrie, "Distributing hot-spot addressing in large-scale
 * multiprocessors", 1987: software combining trees]
 *
 * In a round with a gate the others wait for the gate's line alone, which it writes last.  With a
 * tree the gate counts itself as all do; the rank that completes the root rings the gate alone, and
 * the gate writes the number of the round into the head.
 *
 * The block with lines and slots lies in the arena of the first member.  That of the mesh's first
 * group is the first one there; else the first member allocates it and sends its offset to the
 * others.  The block is free again when all members have left.
 *
 * Buffers in memory of ct_mem_alloc() need no slot: each rank writes into its line where they
 * lie, as offsets in the file that the ranks of the host share.  A rank also marks itself while
 * it reads or writes buffers of others: a rank whose call has failed must not return while
 * another one may still write to memory that then belongs to the program again. */
#include "runtime/group/shm_group.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messages.h"
#include "runtime/shm/copy_to_shared.h"
#include "runtime/shm/shared_region.h"
#include "runtime/trace/trace.h"
#include "runtime/util/clock.h"

/* ---- What a group has in shared memory, and each rank beside ------------------ */

#define SHM_GROUP_SMALL_SLOT ((size_t)4 << 10)
#define GROWS_AFTER 8 /* the part of the memory that is used grows after so many laps */
#define LONGEST_SETTLING_MS 200
#define TREE_FROM 24 /* ranks; measured in docs/scale.md */
#define TREE_RADIX 16
#define UNCOUNTED_LOOKS 20 /* some 2 s: a member that is alive may be off its processor so long */
/* Slots of a group together: with 256 ranks and less each slot may be of SHM_GROUP_MOST_SLOT. */
#define ALL_SLOTS ((size_t)64 << 20)
#define BY_HOST 1
#define BY_DEVICE 2

enum { ALIVE, LEFT };
enum { SEND, RECV };

/* Offsets in the host's shared file (shared_region.h); 0: not there. */
struct shm_offer {
    uint64_t send, recv;
};

struct line {
    _Alignas(CACHE_PAIR) _Atomic uint64_t round;
    struct signature signature;
    unsigned char payload[SHM_GROUP_INLINE_BYTES];
};

struct shm_member {
    struct line lines[2];
    _Alignas(CACHE_PAIR) _Atomic int state;
    /* its owner uses buffers of the others: BY_HOST or BY_DEVICE; 0: it does not */
    _Atomic int touching;
    _Atomic int in_streams; /* number of calls in which its device uses them, or will */
    /* 1 + the call from which on the group fails, as its owner knows; 0: none */
    _Atomic uint64_t fails_from;
    struct group_failure failure; /* written once, before that */
    /* In a tree: 1 + the member that sleeps until this one arrives; SEVERAL: more than one; 0:
     * none. */
    _Alignas(CACHE_PAIR) _Atomic int awaited_by;
};

#define SEVERAL (-1)

/* What lies in front of the members. */
struct shm_head {
    _Alignas(CACHE_PAIR) _Atomic int failed; /* a member has a failure */
    _Atomic int left;                        /* how many members have left */
    int count;                               /* of the members */
    /* In a tree: the last round in which all ranks are, and may go on; */
    _Alignas(CACHE_PAIR) _Atomic uint64_t all_in;
    /* the last one with a gate in which all ranks are. */
    _Alignas(CACHE_PAIR) _Atomic uint64_t at_gate;
    /* The last round in which a rank sent without a wait, and that rank. */
    _Alignas(CACHE_PAIR) _Atomic uint64_t sole_sender;
};

struct tree_node {
    _Alignas(CACHE_PAIR) _Atomic uint64_t arrivals; /* from below, since the start */
};

struct shm_group {
    struct mesh *mesh;
    int rank, size;
    int *locals;                           /* [size] ranks in the node */
    int *ranks;                            /* [size] in the mesh */
    uint64_t members_here[NODE_SET_WORDS]; /* the same as a set */
    struct mapped { /* [size] the buffers of this call, since shm_group_resolve_peers() */
        const char *send;
        char *recv;
    } * mapped;
    struct region_offer own[2]; /* our send and recv buffer */
    struct shm_head *head;
    struct shm_member *members;
    struct tree_node *tree; /* its leaves first, its root last; NULL: a small group has none */
    size_t slot_bytes;      /* the largest payload of a slot */
    unsigned char *slots;   /* [size], `stride` bytes each */
    size_t offset;          /* of the block, for the member that allocated it */
    uint64_t before;        /* the round before the first one */
    uint64_t round;         /* the round that this rank is in */
    uint64_t all_in;        /* the last round in which all ranks were seen */
    size_t stride;          /* bytes of a rank's slots */
    size_t at;              /* in them: the slot in use, */
    size_t small;           /* the last small one; behind the small ones: */
    size_t round_it;        /* how many bytes are used for large ones, */
    size_t next;            /* where the next large one begins, */
    uint64_t through;       /* and the bytes of all large ones so far */
    int inlined;            /* this turn's payload lies in the lines */
    int has_network;        /* shm_group_has_network() */
    struct copy_shared copies;
    struct signature signature;
    struct signature calls[2]; /* a copy of those in our lines, which lie in other caches by now */
    int64_t deadline;
    const _Atomic int *given_up;
};

/* ---- Making --------------------------------------------------------------------- */

/* Of the level above `count` ranks or nodes. */
static int nodes_above(int count)
{
    return (count + TREE_RADIX - 1) / TREE_RADIX;
}

static int tree_nodes(int count)
{
    int nodes = 0;

    if (count <= TREE_FROM)
        return 0;
    do
        nodes += count = nodes_above(count);
    while (count > 1);
    return nodes;
}

static size_t tree_offset(int count)
{
    return sizeof(struct shm_head) + (size_t)count * sizeof(struct shm_member);
}

static size_t members_bytes(int count)
{
    return (tree_offset(count) + (size_t)tree_nodes(count) * sizeof(struct tree_node) + 4095) / 4096
           * 4096;
}

static size_t slot_bytes_of(int count)
{
    size_t bytes = SHM_GROUP_MOST_SLOT;

    while (bytes * (size_t)count > ALL_SLOTS)
        bytes /= 2;
    return bytes;
}

/* A rank that writes a line which another processor still holds must first get it back from
 * there.  If the slots rotate through more memory than a processor's own cache holds, that cache
 * has dropped the line by then: two ranks that share only the third-level cache copy 256 KiB in
 * 32 us when they reuse 256 KiB, and in 9 us when they rotate through 2 MiB. */
static size_t slots_bytes(int count)
{
    return (count <= 2 ? 8 : count <= 4 ? 4 : 3) * slot_bytes_of(count) + 2 * SHM_GROUP_SMALL_SLOT;
}

static size_t block_bytes(int count)
{
    return members_bytes(count) + (size_t)count * slots_bytes(count);
}

static struct shm_member *members_in(void *block)
{
    return (struct shm_member *)(void *)((char *)block + sizeof(struct shm_head));
}

static int all_left(void *memory, size_t bytes)
{
    const struct shm_head *head = memory;
    const struct shm_member *members = members_in(memory);

    for (int i = 0; i < head->count && members_bytes(i + 1) <= bytes; i++)
        if (atomic_load(&members[i].state) != LEFT)
            return 0;
    return 1;
}

/* The mesh's first group has all ranks of the host, whose memory is new and full of zeros. */
static void take_first_block(struct shm_group *f)
{
    struct node *node = &f->mesh->node;

    f->offset = SIZE_MAX;
    if (block_bytes(f->size) > ARENA_BYTES)
        return;
    f->offset =
        f->rank == 0 ? node_arena_alloc(node, block_bytes(f->size)) : node_first_block(node);
    if (f->rank == 0 && f->offset != SIZE_MAX)
        ((struct shm_head *)(void *)(node->base + f->offset))->count = f->size;
}

/* The first member allocates the block and sends its offset in the host segment; SIZE_MAX: there
 * was no room. */
static ct_status agree_on_block(struct shm_group *f, uint64_t channel, int64_t deadline,
                                const _Atomic int *given_up)
{
    const struct signature signature = { .op = -1, .root = -1 }; /* for no call: seq 0 */
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
    f->offset = offset = node_arena_alloc(&f->mesh->node, block_bytes(f->size));
    if (offset != SIZE_MAX) {
        memset(f->mesh->node.base + offset, 0, members_bytes(f->size));
        ((struct shm_head *)(void *)(f->mesh->node.base + offset))->count = f->size;
    }
    for (int i = 1; i < f->size && status == CT_OK; i++) {
        request_send(f->mesh, &request, channel, f->ranks[i], 0, &offset, sizeof offset,
                     &signature);
        status = request_wait(f->mesh, &request, deadline, given_up);
        if (status == CT_ERR_PEER)
            /* it died: the first call will report that, and the others wait for us */
            status = CT_OK;
    }
    return status;
}

static void shm_group_free(struct shm_group *f)
{
    free(f->locals);
    free(f->ranks);
    free(f->mapped);
    free(f);
}

ct_status shm_group_create(struct mesh *mesh, const int *members, int count, int rank, int is_first,
                           uint64_t channel, int64_t deadline, const _Atomic int *given_up,
                           struct shm_group **shm)
{
    struct shm_group *f;
    ct_status status = CT_OK;

    if (mesh->node.size > NODE_MOST) /* members_here has no room for them */
        return CT_OK;
    f = calloc(1, sizeof *f);
    if (!f || !(f->locals = calloc((size_t)count, sizeof *f->locals))
        || !(f->ranks = calloc((size_t)count, sizeof *f->ranks))
        || !(f->mapped = calloc((size_t)count, sizeof *f->mapped))) {
        if (f)
            shm_group_free(f);
        return ct_fail(CT_ERR_NOMEM, "no memory for a group of %d ranks", count);
    }
    f->mesh = mesh;
    f->rank = rank;
    f->size = count;
    f->round = f->all_in = f->before = fault_first_seq(mesh->faults) - 1;
    for (int i = 0; i < count; i++) {
        f->ranks[i] = members[i];
        f->locals[i] = mesh->peers[members[i]].local;
        node_set_add(f->members_here, f->locals[i]);
    }
    if (is_first)
        take_first_block(f);
    else
        status = agree_on_block(f, channel, deadline, given_up);
    if (status != CT_OK || f->offset == SIZE_MAX) {
        shm_group_free(f);
        return status;
    }
    f->head = (struct shm_head *)(void *)(mesh->node.base + f->offset);
    f->members = members_in(f->head);
    if (tree_nodes(count) > 0)
        f->tree = (struct tree_node *)(void *)((char *)f->head + tree_offset(count));
    f->slot_bytes = slot_bytes_of(count);
    f->slots = mesh->node.base + f->offset + members_bytes(count);
    f->stride = slots_bytes(count);
    *shm = f;
    return CT_OK;
}

void shm_group_has_network(struct shm_group *f)
{
    f->has_network = 1;
}

/* ---- Rounds -------------------------------------------------------------------- */

/* The member with the failure of the earliest call; -1: no member has one. */
static int earliest(const struct shm_group *f, uint64_t *seq)
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

static int shm_has_failed(const struct shm_group *f)
{
    uint64_t seq;

    return atomic_load_explicit(f->given_up, memory_order_relaxed)
           || (earliest(f, &seq) >= 0 && seq <= f->signature.seq);
}

void shm_group_begin_call(struct shm_group *f, const struct signature *signature, int64_t deadline,
                          const _Atomic int *given_up)
{
    f->signature = *signature;
    f->deadline = deadline;
    f->given_up = given_up;
}

static ct_status mismatch(int rank, const struct signature *mine, const struct signature *theirs)
{
    char words[256];

    signature_differ(mine, theirs, rank, words, sizeof words);
    return ct_fail_because((struct blame){ rank, BLAME_MISMATCH }, CT_ERR_MISMATCH, "%s", words);
}

static ct_status shm_look_at_peer(const struct shm_group *f, int rank)
{
    const int state = atomic_load(&f->members[rank].state);
    const struct blame died = { f->ranks[rank], BLAME_DIED };
    char name[160];

    mesh_peer_name(f->mesh, f->ranks[rank], name, sizeof name);
    if (mesh_death(f->mesh, f->ranks[rank])) {
        mesh_death_words(f->mesh, f->ranks[rank], name, sizeof name);
        return ct_fail_because(died, CT_ERR_PEER, "%s", name);
    }
    if (state == LEFT)
        return ct_fail_because((struct blame){ f->ranks[rank], BLAME_LEFT }, CT_ERR_PEER,
                               "%s destroyed the group without making this call", name);
    if (node_peer_gone(&f->mesh->node, f->locals[rank]))
        return ct_fail_because(died, CT_ERR_PEER, "%s is gone: its process ended", name);
    return CT_OK;
}

/* Was a rank that has not arrived in the round last on the processor that we are on? */
static int awaited_rank_needs_cpu(const struct shm_group *f, uint64_t round)
{
    const int here = sched_getcpu();

    for (int i = 0; i < f->size; i++)
        if (i != f->rank && bell_is_on(&f->mesh->node.bells[f->locals[i]], here)
            && atomic_load_explicit(&f->members[i].lines[round % 2].round, memory_order_relaxed)
                   < round)
            return 1;
    return 0;
}

/* Before this rank sleeps until another one arrives: that one rings a rank only if it is announced.
 * Pairs with ring_awaiting(), which takes the announcement back.  1: it is new, so the caller looks
 * once more whether that rank has arrived. */
static int announce_awaited(_Atomic int *awaited_by, int rank)
{
    int now = atomic_load(awaited_by);

    if (now == rank + 1 || now == SEVERAL)
        return 0;
    while (!atomic_compare_exchange_weak(awaited_by, &now, now == 0 ? rank + 1 : SEVERAL))
        if (now == rank + 1 || now == SEVERAL)
            return 0;
    return 1;
}

/* The slow part of a wait: rank is not in the round yet. */
static ct_status wait_slowly(struct shm_group *f, int rank, const struct line *line, uint64_t round)
{
    const uint64_t traced = trace_wait(f->mesh->trace, f->ranks[rank], 0);
    enum wait_turn turn = WAIT_AGAIN;
    ct_status status = CT_OK;
    struct wait wait;

    wait_begin(&wait, &f->mesh->waiter, f->deadline);
    if (f->has_network)
        wait_for_processor(&wait);
    while (status == CT_OK && atomic_load_explicit(&line->round, memory_order_acquire) < round) {
        if (f->tree && (wait.asleep || wait.polls)
            && announce_awaited(&f->members[rank].awaited_by, f->rank)
            && atomic_load_explicit(&line->round, memory_order_acquire) >= round)
            break;
        if (shm_has_failed(f))
            status = ct_fail_because((struct blame){ f->ranks[rank], BLAME_LATE }, CT_ERR_ABORTED,
                                     "the group is broken");
        else if (turn == WAIT_OVER)
            status = ct_fail_late(f->ranks[rank]);
        else if ((turn == WAIT_LOOK || atomic_load(&f->mesh->node.ended[f->locals[rank]])
                  || atomic_load_explicit(&f->members[rank].state, memory_order_acquire) != ALIVE)
                 && atomic_load_explicit(&line->round, memory_order_acquire) < round) {
            status = shm_look_at_peer(f, rank);
            /* It may have come, and then ended, since the check. */
            if (atomic_load_explicit(&line->round, memory_order_acquire) >= round)
                status = CT_OK;
        }
        if (status == CT_OK && turn != WAIT_OVER) {
            wait_for_rank(&wait, f->locals[rank]);
            if (wait_is_about_to_yield(&wait))
                wait.alone = !awaited_rank_needs_cpu(f, round);
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

/* Polls the number of the round for about as long as a cache line takes from one processor to
 * another. */
static int spin_for_round(const struct shm_group *f, const struct line *line, uint64_t round)
{
    for (int i = f->mesh->waiter.spins ? LOOKS_BEFORE_WAIT : 1; i > 0; i--)
        if (atomic_load_explicit(&line->round, memory_order_acquire) >= round)
            return 1;
    return 0;
}

/* Waits until `rank` is in `round`, the current one or the one before, and compares its call
 * with ours of that round. */
static ct_status shm_wait_for(struct shm_group *f, int rank, uint64_t round)
{
    const struct line *line = &f->members[rank].lines[round % 2];
    const struct signature *own = &f->calls[round % 2];
    ct_status status;

    if (!spin_for_round(f, line, round)) {
        status = wait_slowly(f, rank, line, round);
        if (status != CT_OK)
            return status;
    }
    if (!signature_equal(&line->signature, own))
        return mismatch(f->ranks[rank], own, &line->signature);
    return CT_OK;
}

static ct_status compare_with(const struct shm_group *f, int rank)
{
    const struct signature *own = &f->calls[f->round % 2];
    const struct signature *theirs = &f->members[rank].lines[f->round % 2].signature;

    return signature_equal(theirs, own) ? CT_OK : mismatch(f->ranks[rank], own, theirs);
}

/* An exchange is cheaper than reading all lines, which are in the caches of ranks that are about to
 * write them. */
ct_status shm_group_send_alone(struct shm_group *f)
{
    const uint64_t here = f->round * SHM_GROUP_MOST + (uint64_t)f->rank;
    const uint64_t last = f->tree ? 0 : atomic_exchange(&f->head->sole_sender, here);

    return last / SHM_GROUP_MOST == f->round ? compare_with(f, (int)(last % SHM_GROUP_MOST))
                                             : CT_OK;
}

ct_status shm_group_glance(struct shm_group *f, int rank)
{
    const struct line *line = &f->members[rank].lines[f->round % 2];

    return !f->tree && atomic_load_explicit(&line->round, memory_order_acquire) == f->round
               ? compare_with(f, rank)
               : CT_OK;
}

/* ---- The tree ------------------------------------------------------------------ */

/* What a rank waits for in a tree. */
struct tree_wait {
    const _Atomic uint64_t *word; /* head->all_in or head->at_gate */
    uint64_t round;
    int gate; /* the rank that writes the word when all are in; NO_RANK: the last that comes */
};

#define NO_RANK (-1)

static int shm_is_over(const struct tree_wait *w)
{
    return atomic_load_explicit(w->word, memory_order_acquire) >= w->round;
}

/* -1: none is missing. */
static int first_missing(const struct shm_group *f, uint64_t round)
{
    for (int i = 0; i < f->size; i++)
        if (atomic_load_explicit(&f->members[i].lines[round % 2].round, memory_order_acquire)
            < round)
            return i;
    return -1;
}

/* All lines are in, and the tree is not complete: a member has yet to count itself.  That takes no
 * time, unless it ended just there.  One that has left had counted itself. */
static ct_status look_at_uncounted(struct shm_group *f, const struct tree_wait *w)
{
    ct_status status = CT_OK;

    for (int i = 0; i < f->size && status == CT_OK; i++)
        if (i != f->rank && atomic_load(&f->members[i].state) == ALIVE)
            status = shm_look_at_peer(f, i);
    return shm_is_over(w) ? CT_OK : status;
}

/* uncounted: how many looks after a whole sleep found no rank missing, in a row. */
static ct_status look_at_missing(struct shm_group *f, const struct tree_wait *w, int slept,
                                 int *uncounted)
{
    const int missing = first_missing(f, w->round);
    ct_status status;

    if (missing < 0 && w->gate != NO_RANK) {
        status = shm_look_at_peer(f, w->gate);
        return shm_is_over(w) ? CT_OK : status;
    }
    if (missing < 0) {
        *uncounted += slept;
        return *uncounted < UNCOUNTED_LOOKS ? CT_OK : look_at_uncounted(f, w);
    }
    *uncounted = 0;
    status = shm_look_at_peer(f, missing);
    /* It may have come, and then ended, since the check. */
    return status != CT_OK && first_missing(f, w->round) != missing ? CT_OK : status;
}

static ct_status fail_for_missing(const struct shm_group *f, const struct tree_wait *w,
                                  ct_status status)
{
    const int missing = first_missing(f, w->round), rank = missing < 0 ? w->gate : missing;

    return rank == NO_RANK
               ? ct_fail(status, "a rank did not come")
               : ct_fail_because((struct blame){ f->ranks[rank], BLAME_LATE }, status, "%s", "");
}

/* wait_slowly() for all ranks.  A member that has left, or a process that has ended, may be one
 * that is missing: the first turn looks at those that did so before, the next ones at what is new.
 */
static ct_status wait_for_tree(struct shm_group *f, const struct tree_wait *w)
{
    struct waiter *waiter = &f->mesh->waiter;
    const uint64_t traced = trace_wait(f->mesh->trace, f->ranks[0], 0);
    enum wait_turn turn = WAIT_AGAIN;
    ct_status status = CT_OK;
    struct wait wait;
    unsigned ends = 0;
    int left = 0, uncounted = 0;

    wait_begin(&wait, waiter, f->deadline);
    if (waiter->spins == 0)
        wait_sleeps_at_once(&wait);
    while (status == CT_OK && !shm_is_over(w)) {
        if (shm_has_failed(f))
            status = fail_for_missing(f, w, CT_ERR_ABORTED);
        else if (turn == WAIT_OVER)
            status = fail_for_missing(f, w, CT_ERR_TIMEOUT);
        else if (turn == WAIT_LOOK || atomic_load(&waiter->ends) != ends
                 || atomic_load_explicit(&f->head->left, memory_order_acquire) != left) {
            ends = atomic_load(&waiter->ends);
            left = atomic_load(&f->head->left);
            status = look_at_missing(f, w, turn == WAIT_LOOK, &uncounted);
        }
        if (status == CT_OK && turn != WAIT_OVER) {
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

/* The signatures of the first ranks below a node of that level, which this rank has completed. What
 * is below those was compared before. */
static ct_status compare_below(const struct shm_group *f, int node, int count, int ranks_each)
{
    const struct signature *own = &f->calls[f->round % 2];

    for (int i = node * TREE_RADIX; i < (node + 1) * TREE_RADIX && i < count; i++) {
        const struct line *line = &f->members[i * ranks_each].lines[f->round % 2];

        if (!signature_equal(&line->signature, own))
            return mismatch(f->ranks[i * ranks_each], own, &line->signature);
    }
    return CT_OK;
}

static void ring(const struct shm_group *f, int rank);
static void ring_members(const struct shm_group *f);

/* All ranks may go on. */
static void release_tree(struct shm_group *f)
{
    f->all_in = f->round;
    atomic_store_explicit(&f->head->all_in, f->round, memory_order_release);
    bell_fence();
    ring_members(f);
}

/* All are in a round with a gate. */
static void call_gate(struct shm_group *f, int gate)
{
    atomic_store_explicit(&f->head->at_gate, f->round, memory_order_release);
    bell_fence();
    if (gate != f->rank)
        ring(f, gate);
}

static ct_status arrive_in_tree(struct shm_group *f, int gate)
{
    struct tree_node *level = f->tree;
    int index = f->rank, count = f->size, ranks_each = 1;

    for (;;) {
        const int node = index / TREE_RADIX;
        const int below =
            count - node * TREE_RADIX < TREE_RADIX ? count - node * TREE_RADIX : TREE_RADIX;
        ct_status status;

        if (atomic_fetch_add(&level[node].arrivals, 1) + 1
            != (f->round - f->before) * (uint64_t)below)
            return CT_OK;
        status = compare_below(f, node, count, ranks_each);
        if (status != CT_OK)
            return status;
        level += nodes_above(count);
        count = nodes_above(count);
        index = node;
        ranks_each *= TREE_RADIX;
        if (count == 1)
            break;
    }
    if (gate == NO_RANK)
        release_tree(f);
    else
        call_gate(f, gate);
    return CT_OK;
}

static ct_status wait_in_tree(struct shm_group *f, const struct tree_wait *w)
{
    for (int i = f->mesh->waiter.spins ? LOOKS_BEFORE_WAIT : 1; i > 0; i--)
        if (shm_is_over(w))
            return CT_OK;
    return wait_for_tree(f, w);
}

static ct_status wait_all_for(struct shm_group *f, uint64_t round)
{
    const struct tree_wait w = { &f->head->all_in, round, NO_RANK };
    ct_status status = CT_OK;

    if (f->all_in >= round)
        return CT_OK;
    if (f->tree)
        status = wait_in_tree(f, &w);
    for (int i = 1; i < f->size && !f->tree && status == CT_OK; i++)
        status = shm_wait_for(f, (f->rank + i) % f->size, round);
    if (status == CT_OK)
        f->all_in = round;
    return status;
}

/* ---- Slots ---------------------------------------------------------------------- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Small slots alternate at the front: it is faster to get a few lines back from another
 * processor's cache than from memory.  Large slots rotate through the rest.  At first they use a
 * part of it, since a page fault costs more than the copy; the part grows with the bytes that
 * have gone through it.  There is always room for three of the largest so far, so the slot at
 * the start never overlaps the last one. */
static size_t next_slot(struct shm_group *f, size_t bytes)
{
    const size_t slot = (bytes + CACHE_PAIR - 1) / CACHE_PAIR * CACHE_PAIR;
    size_t at;

    if (slot <= SHM_GROUP_SMALL_SLOT)
        return (f->small ^= SHM_GROUP_SMALL_SLOT);
    f->through += slot;
    f->round_it = larger(f->round_it, larger(3 * slot, f->through / GROWS_AFTER));
    f->round_it = smaller(f->round_it, f->stride - 2 * SHM_GROUP_SMALL_SLOT);
    f->copies.lap = f->round_it;
    at = f->next + slot <= f->round_it ? f->next : 0;
    f->next = at + slot;
    return 2 * SHM_GROUP_SMALL_SLOT + at;
}

/* When all ranks are in the last round, no rank reads the line of the round before it, nor the
 * slots of the turns before the last one: we may write them. */
ct_status shm_group_next_slot(struct shm_group *f, size_t bytes)
{
    f->inlined = bytes <= SHM_GROUP_INLINE_BYTES;
    if (!f->inlined)
        f->at = next_slot(f, smaller(bytes, f->slot_bytes));
    return wait_all_for(f, f->round);
}

static unsigned char *slot(const struct shm_group *f, int rank)
{
    return f->slots + (size_t)rank * f->stride + f->at;
}

void *shm_group_own(const struct shm_group *f)
{
    return f->inlined ? f->members[f->rank].lines[(f->round + 1) % 2].payload : slot(f, f->rank);
}

const void *shm_group_slot(const struct shm_group *f, int rank)
{
    return f->inlined ? f->members[rank].lines[f->round % 2].payload : slot(f, rank);
}

void shm_group_write(struct shm_group *f, size_t at, const void *from, size_t bytes)
{
    copy_shared(&f->copies, (char *)shm_group_own(f) + at, from, bytes);
}

int shm_group_streams(const struct shm_group *f)
{
    return f->copies.streams;
}

void shm_group_write_to(struct shm_group *f, int rank, const void *from, size_t bytes)
{
    unsigned char *to =
        f->inlined ? (unsigned char *)shm_group_own(f) + (size_t)rank * bytes : slot(f, rank);

    copy_shared(&f->copies, to, from, bytes);
}

const void *shm_group_written_here(const struct shm_group *f, int from, size_t bytes)
{
    return f->inlined ? (const unsigned char *)shm_group_slot(f, from) + (size_t)f->rank * bytes
                      : slot(f, f->rank);
}

static void ring(const struct shm_group *f, int rank)
{
    const struct node *node = &f->mesh->node;

    bell_ring_fenced(&node->bells[f->locals[rank]], node->wake_fd);
}

static void ring_members(const struct shm_group *f)
{
    for (int i = f->rank + 1; i < f->size; i++)
        ring(f, i);
    for (int i = 0; i < f->rank; i++)
        ring(f, i);
}

/* The members that sleep until this one arrives. */
static void ring_awaiting(const struct shm_group *f)
{
    _Atomic int *const awaited_by = &f->members[f->rank].awaited_by;
    const int by =
        atomic_load_explicit(awaited_by, memory_order_relaxed) ? atomic_exchange(awaited_by, 0) : 0;

    if (by == SEVERAL)
        ring_members(f);
    else if (by > 0)
        ring(f, by - 1);
}

/* The next round begins here; its line is not yet for all to see.  NULL: *status says why not. */
static struct line *shm_begin_round(struct shm_group *f, ct_status *status)
{
    struct line *line = &f->members[f->rank].lines[(f->round + 1) % 2];

    *status = wait_all_for(f, f->round);
    if (*status != CT_OK)
        return NULL;
    f->round++;
    line->signature = f->calls[f->round % 2] = f->signature;
    wait_note_processor(&f->mesh->waiter);
    return line;
}

static void shm_show_line(const struct shm_group *f, struct line *line)
{
    atomic_store_explicit(&line->round, f->round, memory_order_release);
    bell_fence();
}

/* gate: the rank that the others wait for; NO_RANK: all wait for all. */
static ct_status arrive(struct shm_group *f, int gate)
{
    ct_status status;
    struct line *line = shm_begin_round(f, &status);

    if (!line)
        return status;
    shm_show_line(f, line);
    if (f->tree)
        ring_awaiting(f);
    else if (gate == NO_RANK)
        ring_members(f);
    else
        ring(f, gate);
    status = f->tree ? arrive_in_tree(f, gate) : CT_OK;
    fault_pass(f->mesh->faults);
    return status;
}

ct_status shm_group_publish(struct shm_group *f)
{
    return arrive(f, NO_RANK);
}

ct_status shm_group_enter_gate(struct shm_group *f, int gate)
{
    return arrive(f, gate);
}

ct_status shm_group_pass_gate(struct shm_group *f, int gate)
{
    const struct tree_wait w = { &f->head->all_in, f->round, gate };
    const ct_status status = f->tree ? wait_in_tree(f, &w) : shm_wait_for(f, gate, f->round);

    if (status == CT_OK) /* the gate saw all of them */
        f->all_in = f->round;
    return status;
}

ct_status shm_group_hold_gate(struct shm_group *f, int gate)
{
    ct_status status;
    struct line *line = shm_begin_round(f, &status);
    const struct tree_wait w = { &f->head->at_gate, f->round, NO_RANK };

    if (!line)
        return status;
    if (f->tree) {
        shm_show_line(f, line);
        ring_awaiting(f); /* a rank in another call, which finds that out */
        status = arrive_in_tree(f, gate);
        if (status == CT_OK)
            status = wait_in_tree(f, &w);
    }
    for (int i = 1; i < f->size && !f->tree && status == CT_OK; i++)
        status = shm_wait_for(f, (f->rank + i) % f->size, f->round);
    fault_pass(f->mesh->faults);
    return status;
}

void *shm_group_answer(const struct shm_group *f)
{
    return (void *)(uintptr_t)shm_group_slot(f, f->rank);
}

void shm_group_open_gate(struct shm_group *f)
{
    if (f->tree) {
        release_tree(f);
        return;
    }
    f->all_in = f->round;
    shm_show_line(f, &f->members[f->rank].lines[f->round % 2]);
    ring_members(f);
}

size_t shm_group_slot_bytes(const struct shm_group *f)
{
    return f->slot_bytes;
}

ct_status shm_group_wait(struct shm_group *f, int rank)
{
    return shm_wait_for(f, rank, f->round);
}

ct_status shm_group_wait_all(struct shm_group *f)
{
    return wait_all_for(f, f->round);
}

/* ---- Buffers where they lie ----------------------------------------------------- */

void shm_group_offer(struct shm_group *f, const void *send, size_t send_bytes, void *recv,
                     size_t recv_bytes)
{
    struct shm_offer offer;

    shm_group_withdraw(f);
    f->own[SEND] = (struct region_offer){ .data = send, .bytes = send_bytes };
    f->own[RECV] = (struct region_offer){ .data = recv, .bytes = recv_bytes };
    regions_offer(&f->mesh->node, f->own, 2, f->members_here);
    offer = (struct shm_offer){ f->own[SEND].offset, f->own[RECV].offset };
    memcpy(f->members[f->rank].lines[(f->round + 1) % 2].payload, &offer, sizeof offer);
}

void shm_group_withdraw(struct shm_group *f)
{
    regions_withdraw(&f->mesh->node, f->own, 2);
}

int shm_group_offers(const struct shm_group *f, int send, int recv)
{
    return (!send || f->own[SEND].offset) && (!recv || f->own[RECV].offset);
}

/* Did that rank offer those of its two buffers that matter? */
static int is_whole(const struct shm_offer *offer, int send, int recv)
{
    return (!send || offer->send) && (!recv || offer->recv);
}

static struct shm_offer offer_of(const struct shm_group *f, int rank)
{
    struct shm_offer offer;

    memcpy(&offer, f->members[rank].lines[f->round % 2].payload, sizeof offer);
    return offer;
}

static ct_status shm_find(struct shm_group *f, int rank, size_t send_bytes, size_t recv_bytes)
{
    const struct node *node = &f->mesh->node;
    const struct shm_offer offer = offer_of(f, rank);
    char name[160];

    f->mapped[rank].send = send_bytes ? region_at(node, offer.send, send_bytes) : NULL;
    f->mapped[rank].recv = recv_bytes ? region_at(node, offer.recv, recv_bytes) : NULL;
    if ((send_bytes && !f->mapped[rank].send) || (recv_bytes && !f->mapped[rank].recv))
        return ct_fail(CT_ERR_INVALID, "the buffer of %s was given back by ct_mem_free() here",
                       mesh_peer_name(f->mesh, f->ranks[rank], name, sizeof name));
    return CT_OK;
}

ct_status shm_group_resolve_peers(struct shm_group *f, int from, size_t send_bytes,
                                  size_t recv_bytes, enum direct_access *reach)
{
    const int first = from < 0 ? 0 : from, end = from < 0 ? f->size : from + 1;
    ct_status status = CT_OK;
    int whole = 0, looking;

    for (int i = first; i < end; i++) {
        const struct shm_offer offer = offer_of(f, i);

        whole += is_whole(&offer, send_bytes > 0, recv_bytes > 0);
    }
    *reach = whole == 0 ? DIRECT_NONE : whole < end - first ? DIRECT_SOME : DIRECT_ALL;
    if (*reach != DIRECT_ALL)
        return CT_OK;
    looking = regions_look(&f->mesh->node);
    for (int i = first; i < end && status == CT_OK; i++)
        status = shm_find(f, i, send_bytes, recv_bytes);
    if (looking)
        regions_looked(&f->mesh->node);
    return status;
}

const char *shm_group_send_of(const struct shm_group *f, int rank)
{
    return f->mapped[rank].send;
}

char *shm_group_recv_of(const struct shm_group *f, int rank)
{
    return f->mapped[rank].recv;
}

/* A rank that uses buffers first marks itself, then checks whether the group has failed.  A rank
 * whose call fails first records the failure, then checks the marks.  So one of the two sees the
 * other. */
static ct_status shm_touch(struct shm_group *f, int by)
{
    atomic_store(&f->members[f->rank].touching, by);
    if (!shm_has_failed(f)) {
        fault_pass(f->mesh->faults);
        return CT_OK;
    }
    shm_group_untouch(f);
    return ct_fail(CT_ERR_ABORTED, "the group is broken");
}

ct_status shm_group_touch(struct shm_group *f)
{
    return shm_touch(f, BY_HOST);
}

ct_status shm_group_touch_by_device(struct shm_group *f)
{
    return shm_touch(f, BY_DEVICE);
}

void shm_group_untouch(struct shm_group *f)
{
    atomic_store_explicit(&f->members[f->rank].touching, 0, memory_order_release);
}

ct_status shm_group_touch_in_stream(struct shm_group *f)
{
    atomic_fetch_add(&f->members[f->rank].in_streams, 1);
    if (!shm_has_failed(f))
        return CT_OK;
    shm_group_untouch_in_stream(f, 1);
    return ct_fail(CT_ERR_ABORTED, "the group is broken");
}

/* Another thread may have taken all of them back meanwhile. */
void shm_group_untouch_in_stream(struct shm_group *f, int calls)
{
    _Atomic int *const in_streams = &f->members[f->rank].in_streams;
    int count = atomic_load(in_streams);

    while (!atomic_compare_exchange_weak(in_streams, &count, count < calls ? 0 : count - calls))
        ;
}

/* BY_HOST, BY_DEVICE; 0: the member does not use buffers of others. */
static int touching(const struct shm_member *member)
{
    const int by = atomic_load(&member->touching);

    return by || atomic_load(&member->in_streams) == 0 ? by : BY_DEVICE;
}

/* Waits until no other rank uses our buffers.  1: one still does, through its processor: a
 * process that was stopped there may stay for ever, so the buffers must be cut off.  That is
 * impossible for a device; but a device works on, so this waits for it. */
static int await_untouched(struct shm_group *f)
{
    const int64_t begun = clock_ms();
    int by;

    for (int i = 0; i < f->size; i++)
        while (i != f->rank && (by = touching(&f->members[i])) != 0
               && !node_peer_gone(&f->mesh->node, f->locals[i])) {
            if (by == BY_DEVICE && clock_ms() - begun >= SHM_GROUP_DEVICE_SETTLING_MS)
                return 0;
            if (by == BY_HOST && clock_ms() - begun >= LONGEST_SETTLING_MS)
                return 1;
            sched_yield();
        }
    return 0;
}

int shm_group_is_gone(const struct shm_group *f, int rank)
{
    return rank != f->rank && node_peer_gone(&f->mesh->node, f->locals[rank]);
}

void shm_group_settle(struct shm_group *f)
{
    if (await_untouched(f))
        regions_cut_off(&f->mesh->node, f->own, 2);
    shm_group_withdraw(f);
}

/* ---- Failing and leaving -------------------------------------------------------- */

static void ring_all(const struct shm_group *f)
{
    for (int i = 0; i < f->size; i++)
        node_ring_bell(&f->mesh->node, f->locals[i]);
}

void shm_group_set_failure(struct shm_group *f, const struct group_failure *failure)
{
    struct shm_member *own = &f->members[f->rank];
    uint64_t seq;

    if (atomic_load(&own->fails_from) || (earliest(f, &seq) >= 0 && seq <= failure->from_call))
        return;
    own->failure = *failure;
    atomic_store(&own->fails_from, failure->from_call + 1);
    atomic_store(&f->head->failed, 1);
    ring_all(f);
}

int shm_group_failure(const struct shm_group *f, struct group_failure *failure)
{
    uint64_t seq;
    const int member = earliest(f, &seq);

    if (member < 0)
        return 0;
    *failure = f->members[member].failure;
    return 1;
}

void shm_group_destroy(struct shm_group *f)
{
    if (!f)
        return;
    shm_group_withdraw(f);
    atomic_store(&f->members[f->rank].state, LEFT);
    atomic_fetch_add(&f->head->left, 1);
    ring_all(f);
    if (f->rank == 0)
        node_arena_retire(&f->mesh->node, f->offset, all_left);
    shm_group_free(f);
}
