/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group_internal.h - what a flat group is made of, for flat*.c alone.
 *
 * Each rank has two lines, used by even and odd rounds.  A line is written only
 * by its owner: the signature of the call, a small payload, and last the number
 * of the round.  A slot is written by one rank in a round, mostly its owner (shm_group.c). */
#ifndef RUNTIME_GROUP_SHM_GROUP_INTERNAL_H
#define RUNTIME_GROUP_SHM_GROUP_INTERNAL_H

#include "runtime/group/shm_group.h"
#include "runtime/shm/copy_to_shared.h"
#include "runtime/shm/shared_region.h"

#define FLAT_SMALL_SLOT ((size_t)4 << 10)

enum { ALIVE, LEFT };

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
    _Atomic int touching;      /* its owner is at buffers of the others; 0: it is not */
    _Atomic int in_streams;    /* calls in which its device is, or will be, at them: any number */
    _Atomic uint64_t breached; /* 1 + the call in which its owner knows the group broken; 0: none */
    struct breach breach;      /* written once, before that */
};

/* What lies in front of the members. */
struct head {
    _Alignas(CACHE_PAIR) _Atomic int broken; /* some member has a breach */
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
    const _Atomic int *broken;
};

int flat_is_broken(const struct flat *flat); /* for the call that is being made */

#endif
