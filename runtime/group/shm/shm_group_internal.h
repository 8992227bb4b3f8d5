/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group_internal.h - declarations that the files of this folder share: the memory that all
 * ranks of a group on one host see, and one rank's view of it.
 *
 * Each word in the shared memory is written by one rank, its owner, unless its
 * comment says otherwise. */
#ifndef RUNTIME_GROUP_SHM_SHM_GROUP_INTERNAL_H
#define RUNTIME_GROUP_SHM_SHM_GROUP_INTERNAL_H

#include "runtime/group/shm/shm_group.h"
#include "runtime/group/shm/slots.h"
#include "runtime/shm/copy_to_shared.h"
#include "runtime/shm/shared_region.h"

#define NO_RANK (-1)
/* A rank arrives in round n when all ranks are in round n-SHM_AHEAD (rounds.c). */
#define SHM_AHEAD 8
/* A rank in round n may compare its line of round n-SHM_AHEAD+1 with that of a rank in round
 * n+SHM_AHEAD. */
#define SHM_LINES (2 * SHM_AHEAD)

/* ---- In shared memory --------------------------------------------------------- */

/* A member's arrival in a round, with its call and a small payload (rounds.c). */
struct shm_line {
    _Alignas(CACHE_PAIR) _Atomic uint64_t round; /* number of the round; written last */
    struct signature signature;
    unsigned char payload[SHM_GROUP_INLINE_BYTES];
};

enum { ALIVE, LEFT };

struct shm_member {
    struct shm_line lines[SHM_LINES];
    _Alignas(CACHE_PAIR) _Atomic int state;
    /* How the owner uses buffers of other members: BY_HOST or BY_DEVICE of direct.c; 0 if
     * it does not. */
    _Atomic int touching;
    _Atomic int in_streams; /* calls in streams whose device work uses such buffers */
    /* 1 + number of the first call that fails, as far as the owner knows; 0 if it knows of
     * no failure (shm_failure.c). */
    _Atomic uint64_t fails_from;
    struct group_failure failure; /* written once, before fails_from */
    /* Which members sleep until this one arrives, encoded as in shm_wait.c.  All
     * members write it. */
    _Alignas(CACHE_PAIR) _Atomic int awaited_by;
};

/* The start of the shared block, in front of the members.  All ranks write it. */
struct shm_head {
    _Alignas(CACHE_PAIR) _Atomic int failed; /* true once a member has a failure */
    _Atomic unsigned left;                   /* number of members that have left */
    int count;                               /* number of members */
    /* The latest round in which all ranks have arrived (tree.c). */
    _Alignas(CACHE_PAIR) _Atomic uint64_t all_in;
    /* round * SHM_GROUP_MOST + rank, of the last rank that sent without a wait (rounds.c). */
    _Alignas(CACHE_PAIR) _Atomic uint64_t sole_sender[SHM_LINES];
};

struct tree_node; /* defined in tree.c */

/* ---- A rank's view ------------------------------------------------------------ */

/* Where a rank's slots lie; used by slots.c. */
struct shm_slots {
    size_t most;         /* bytes of the largest payload of a slot */
    unsigned char *base; /* [size], `stride` bytes each */
    size_t stride;       /* bytes of one rank's slots */
    size_t at;           /* offset of the slot in use, in each rank's slots */
    size_t small;        /* offset of the last small slot */
    size_t lap;          /* large slots rotate through so many bytes, behind the small slots */
    size_t next;         /* where in these bytes the next large slot begins */
    uint64_t through;    /* total bytes of all large slots so far */
    int inlined;         /* true if this round's payload lies in the lines */
    struct copy_shared copies;
};

struct shm_peer {
    int rank;  /* in the mesh */
    int local; /* on this host */
    /* Addresses of the peer's buffers of this call, set by shm_group_resolve_peers() (direct.c). */
    const char *send;
    char *recv;
};

struct shm_group {
    struct mesh *mesh;
    int rank, size;
    struct shm_peer *peers; /* [size] */
    /* True if the group also has ranks on other hosts.  A wait may then last as long as a network
     * transfer, so it yields at once and does not spin first. */
    int has_network;
    struct shm_head *head;
    struct shm_member *members;
    uint64_t offset; /* of `head` in the host's memory; SIZE_MAX if there was no room */
    /* the current call */
    struct signature signature;
    int64_t deadline;
    const _Atomic int *given_up;
    /* used by rounds.c */
    uint64_t round;  /* the round in which this rank is */
    uint64_t all_in; /* the latest round in which this rank has seen all ranks */
    int gate;        /* the gate for which this rank waits, or NO_RANK */
    /* Copies of the signatures in this rank's lines.  The lines themselves would be slower to
     * read, since they are in other processors' caches by now. */
    struct signature calls[SHM_LINES];
    /* used by tree.c */
    struct tree_node *tree; /* leaves first, root last; NULL if the group is too small */
    uint64_t before;        /* the round before the group's first one */
    struct shm_slots slots;
    /* used by direct.c */
    uint64_t members_here[NODE_SET_WORDS]; /* the members, as a set of ranks on the host */
    struct region_offer own[2];            /* this rank's send and recv buffer */
};

/* ---- Used when a group is created: slots.c, tree.c -------------------------- */

size_t shm_slots_bytes(int count); /* bytes of each rank's slots */
void shm_slots_open(struct shm_group *f, unsigned char *base);
/* Returns SHM_AHEAD, or 1 for a group with a tree, which counts one round at a time. */
int shm_ahead(int count);
/* Returns the bytes of the tree; 0 if a group of `count` ranks has no tree. */
size_t shm_tree_bytes(int count);

/* ---- shm_failure.c --------------------------------------------------------------- */

/* True if the group has failed in this call or an earlier one, or if given_up is set. */
int shm_has_failed(const struct shm_group *f);
/* Returns CT_ERR_PEER if that member has died or left the group and so will not
 * arrive; else CT_OK. */
ct_status shm_look_at(const struct shm_group *f, int rank);

/* ---- tree.c ------------------------------------------------------------------------ */

/* Counts this rank's arrival in the tree.  The rank has written its line, but the line
 * does not show the round yet.  The last rank to arrive wakes the gate, or all ranks if
 * `gate` is NO_RANK. */
ct_status shm_tree_count(const struct shm_group *f, int gate);
/* Waits until all ranks have been counted in that round. */
ct_status shm_tree_wait(struct shm_group *f, uint64_t round);

/* ---- rounds.c ---------------------------------------------------------------------- */

/* Successive rounds use lines that do not lie one after the other.  Otherwise the prefetcher of a
 * rank that reads them fetches the next line just before its owner writes it.  The index is a
 * permutation for any power of two.  [Rivest et al., "The RC6 block cipher", 1998] */
_Static_assert((SHM_LINES & (SHM_LINES - 1)) == 0, "a power of two");
static inline struct shm_line *shm_line(const struct shm_group *f, int rank, uint64_t round)
{
    return &f->members[rank].lines[round * (2 * round + 1) % SHM_LINES];
}

ct_status shm_mismatch(const struct shm_group *f, int rank, uint64_t round);

/* Compares the call of `rank` with ours.  `rank` has arrived in the round.  Returns CT_ERR_MISMATCH
 * if the calls differ. */
static inline ct_status shm_compare(const struct shm_group *f, int rank, uint64_t round)
{
    return signature_equal(&shm_line(f, rank, round)->signature, &f->calls[round % SHM_LINES])
               ? CT_OK
               : shm_mismatch(f, rank, round);
}

static inline int shm_has_arrived(const struct shm_group *f, int rank, uint64_t round)
{
    return atomic_load_explicit(&shm_line(f, rank, round)->round, memory_order_acquire) >= round;
}

/* Waits until all ranks are in that round. */
ct_status shm_wait_all_in(struct shm_group *f, uint64_t round);
/* Waits until this rank may use the line and the small slot of its next round. */
ct_status shm_wait_for_line(struct shm_group *f);

/* ---- Ringing doorbells, after a bell_fence() ----------------------------------- */

static inline void shm_ring(const struct shm_group *f, int rank)
{
    const struct node *node = &f->mesh->node;

    bell_ring_stored(&node->bells[f->peers[rank].local], node->wake_fd);
}

/* Rings the doorbells of all members but this rank. */
static inline void shm_ring_members(const struct shm_group *f)
{
    for (int i = f->rank + 1; i < f->size; i++)
        shm_ring(f, i);
    for (int i = 0; i < f->rank; i++)
        shm_ring(f, i);
}

#endif
