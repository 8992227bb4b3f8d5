/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group_internal.h - what the files of this folder share: the memory that all ranks of a group
 * on one host see, and a rank's own view of it.
 *
 * In shared memory each word has one writer, its owner, unless its comment says otherwise. */
#ifndef RUNTIME_GROUP_SHM_SHM_GROUP_INTERNAL_H
#define RUNTIME_GROUP_SHM_SHM_GROUP_INTERNAL_H

#include "runtime/group/shm/shm_group.h"
#include "runtime/group/shm/slots.h"
#include "runtime/shm/copy_to_shared.h"
#include "runtime/shm/shared_region.h"

#define NO_RANK (-1)

/* ---- In shared memory --------------------------------------------------------- */

/* What a member shows in a round; rounds.c. */
struct shm_line {
    _Alignas(CACHE_PAIR) _Atomic uint64_t round; /* written last */
    struct signature signature;
    unsigned char payload[SHM_GROUP_INLINE_BYTES];
};

enum { ALIVE, LEFT };

struct shm_member {
    struct shm_line lines[2]; /* for even and odd rounds */
    _Alignas(CACHE_PAIR) _Atomic int state;
    /* direct.c: how its owner uses buffers of the others; 0: it does not */
    _Atomic int touching;
    _Atomic int in_streams; /* number of calls in which its device uses them, or will */
    /* shm_failure.c: 1 + the call from which on the group fails, as its owner knows; 0: none */
    _Atomic uint64_t fails_from;
    struct group_failure failure; /* written once, before that */
    /* shm_wait.c: which members sleep until this one arrives; all write it */
    _Alignas(CACHE_PAIR) _Atomic int awaited_by;
};

/* What lies in front of the members.  All ranks write it. */
struct shm_head {
    _Alignas(CACHE_PAIR) _Atomic int failed; /* a member has a failure */
    _Atomic unsigned left;                   /* how many members have left */
    int count;                               /* of the members */
    /* tree.c: the last round in which all ranks are */
    _Alignas(CACHE_PAIR) _Atomic uint64_t all_in;
    /* rounds.c: the last round in which a rank sent without a wait, and that rank */
    _Alignas(CACHE_PAIR) _Atomic uint64_t sole_sender;
};

struct tree_node; /* tree.c */

/* ---- A rank's view ------------------------------------------------------------ */

/* slots.c */
struct shm_slots {
    size_t most;         /* the largest payload of a slot */
    unsigned char *base; /* [size], `stride` bytes each */
    size_t stride;       /* bytes of a rank's slots */
    size_t at;           /* in them: the slot in use, */
    size_t small;        /* the last small one; behind the small ones: */
    size_t lap;          /* how many bytes are used for large ones, */
    size_t next;         /* where the next large one begins, */
    uint64_t through;    /* and the bytes of all large ones so far */
    int inlined;         /* this round's payload lies in the lines */
    struct copy_shared copies;
};

struct shm_peer {
    int rank;  /* in the mesh */
    int local; /* in the node */
    /* direct.c: its buffers of this call, since shm_group_resolve_peers() */
    const char *send;
    char *recv;
};

struct shm_group {
    struct mesh *mesh;
    int rank, size;
    struct shm_peer *peers; /* [size] */
    /* The group has ranks on other hosts, too: what its waits wait for may take a network's time,
     * so they yield at once and do not spin first. */
    int has_network;
    struct shm_head *head;
    struct shm_member *members;
    uint64_t offset; /* of the head in the host's memory; SIZE_MAX: there was no room */
    /* the call */
    struct signature signature;
    int64_t deadline;
    const _Atomic int *given_up;
    /* rounds.c */
    uint64_t round;            /* that this rank is in */
    uint64_t all_in;           /* the last round in which all ranks were seen */
    struct signature calls[2]; /* a copy of those in our lines, which lie in other caches by now */
    /* tree.c */
    struct tree_node *tree; /* its leaves first, its root last; NULL: a small group has none */
    uint64_t before;        /* the round before the first one */
    struct shm_slots slots;
    /* direct.c */
    uint64_t members_here[NODE_SET_WORDS]; /* as a set of ranks on the host */
    struct region_offer own[2];            /* our send and recv buffer */
};

/* ---- slots.c, tree.c, direct.c: what a group needs when it is made -------------- */

size_t shm_slots_bytes(int count); /* of each rank's slots */
void shm_slots_open(struct shm_group *f, unsigned char *base);
size_t shm_tree_bytes(int count); /* 0: a group of so many ranks has no tree */

/* ---- shm_failure.c --------------------------------------------------------------- */

/* Has the group failed, as far as this call is concerned? */
int shm_has_failed(const struct shm_group *f);
/* CT_ERR_PEER: that member will not arrive. */
ct_status shm_look_at(const struct shm_group *f, int rank);

/* ---- tree.c ------------------------------------------------------------------------ */

/* This rank's line is written, and does not show the round yet: counts its arrival.  The last one
 * wakes the gate, or all if that is NO_RANK. */
ct_status shm_tree_count(const struct shm_group *f, int gate);
/* Until all are counted. */
ct_status shm_tree_wait(struct shm_group *f, uint64_t round);

/* ---- rounds.c ---------------------------------------------------------------------- */

static inline struct shm_line *shm_line(const struct shm_group *f, int rank, uint64_t round)
{
    return &f->members[rank].lines[round % 2];
}

ct_status shm_mismatch(const struct shm_group *f, int rank, uint64_t round);

/* That rank has arrived in the round: does it make the same call there? */
static inline ct_status shm_compare(const struct shm_group *f, int rank, uint64_t round)
{
    return signature_equal(&shm_line(f, rank, round)->signature, &f->calls[round % 2])
               ? CT_OK
               : shm_mismatch(f, rank, round);
}

/* Waits until all ranks are in that round. */
ct_status shm_wait_all_in(struct shm_group *f, uint64_t round);

/* ---- Doorbells: after a bell_fence() ----------------------------------------------- */

static inline void shm_ring(const struct shm_group *f, int rank)
{
    const struct node *node = &f->mesh->node;

    bell_ring_stored(&node->bells[f->peers[rank].local], node->wake_fd);
}

/* All but this rank. */
static inline void shm_ring_members(const struct shm_group *f)
{
    for (int i = f->rank + 1; i < f->size; i++)
        shm_ring(f, i);
    for (int i = 0; i < f->rank; i++)
        shm_ring(f, i);
}

#endif
