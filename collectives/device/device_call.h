/* SPDX-License-Identifier: Apache-2.0 */
/* device_call.h - the ways in which a call on device memory can be made; device_call.c tries them
 * in order.
 */
#ifndef COLLECTIVES_DEVICE_DEVICE_CALL_H
#define COLLECTIVES_DEVICE_DEVICE_CALL_H

#include "collectives/core/algorithm_wishes.h"
#include "collectives/core/call.h"
#include "collectives/device/fused/stream_handover.h"
#include "collectives/device/leaders.h"
#include "runtime/device/memory_kind.h"

/* Which devices the ranks of a group have, as all of them know it. */
struct devices {
    int known;
    int apart; /* no two have the same */
    int talks; /* each was built with a library for them */
    enum device_wish wish;
    int by_streams;     /* all wish that streams hand fused calls over */
    struct place place; /* ours */
    struct executors executors;
};

/* What a group has of such a library (nccl.c). */
struct talking {
    enum { NOT_TRIED, TALKS, NO_TALK } state;
    struct talk *talk; /* also one that was given up, until the group ends */
    const struct talks *by;
    struct device *device; /* ours, in it */
    int said;              /* that its order is the library's, */
    int said_cant;         /* and that some calls can't go by it */
    char why[300];         /* NO_TALK */
};

/* Its own memory on a device (bounce_buffer.c). */
struct bounce {
    void *memory;
    size_t bytes;
    struct place place;
    int useless; /* nobody could map that either */
};

void bounce_free(struct bounce *bounce);

/* What a group keeps for such calls. */
struct staging {
    int said; /* why something is staged */
    struct devices devices;
    struct talking talking;
    struct bounce tried;   /* in peer_access_test.c */
    struct bounce scratch; /* in hier_leader.c */
    enum { HIER_NOT_TRIED, HIER, NO_HIER } hier;
    struct handover handover;
    int unfused;           /* its buffers can't be reached by who works: not tried again */
    struct place mapped;   /* its device has the others' memory mapped; NULLs: none does */
    struct staged *staged; /* staged.c; NULL: nothing yet */
    struct bounce bounce;
    _Atomic size_t bounce_room; /* its bytes, for who makes calls meanwhile */
    _Atomic int nccl_first;     /* what NCCL can make it makes */
    void *offer;                /* fused.c: room for what this rank shows */
    size_t offer_bytes;
};

struct staging *staging_of(ct_group *group); /* NULL: no memory */
void staging_drop(ct_group *group);          /* it ends */

/* device_table.c: what the ranks tell each other in a call, before any of its data moves.  All
 * make these calls, in the same order. */

/* `bytes` of each rank's to all of them: all is [size][bytes]. */
ct_status device_tell(struct call *c, const void *mine, size_t bytes, void *all);
/* CT_ERR_UNSUPPORTED, on all ranks: one has no device (ours: c->place). */
ct_status device_cards(struct call *c, struct devices *devices);

/* device_call.c: what was in the group's stream when the call was made is over. */
ct_status device_wait_for_mark(struct call *c);

/* path_select.c.  An operation's wish, or else the group's. */
int device_wish(const struct call *c, const struct devices *devices);
/* A way at a time; *done: it was one of them. */
ct_status device_try_ways(struct call *c, struct staging *staging, int *done);
/* The call is over: which way it went, and why (CT_EXPLAIN). */
void device_explain(const struct call *c);

/* The ways of a call of which device_is_agreed().  *done 0: not this one, on any rank, and nothing
 * was touched. */
typedef ct_status device_way(struct call *c, int *done);

int device_is_first(const struct call *c, device_way *way); /* as the ranks wish; path_select.c */
int device_handover_is_to_come(const ct_group *group);      /* with the next agreed call */
/* A call that streams can't hand over, on all ranks: as any other from here on. */
ct_status device_go_by_hosts(struct call *c);

/* fused.c: the devices read and write all ranks' buffers where they lie. */
device_way device_fused;

/* nccl.c: by a library of the devices' maker, each rank with a device of its own. */
device_way device_nccl;
/* It was not tried, and some call may try it. */
int device_nccl_is_to_come(const ct_group *group);
/* Such a call will go by it, once another that is not captured has led all ranks there. */
int device_nccl_can_join(const struct call *c);
/* Does it make this call with our contract's bits, or may it have an order of its own?  From what
 * all ranks agree on. */
int nccl_can(const struct call *c);
void nccl_say_order(const struct call *c, struct talking *talking);
#define NCCL_SAME_GPU "two ranks have the same GPU" /* why it can't be, for the user */

/* nccl_session.c.  The executors talk.  All ranks call it, once; afterwards ->state is TALKS or
 * NO_TALK, the same on all. */
ct_status talking_begin(struct call *c, struct talking *talking);
/* Until what was begun is over, here. */
ct_status talking_wait(struct call *c, const struct talking *talking);
/* No call will go by it any more, and nothing of it is at the buffers; within a call. */
void talking_give_up(struct talking *talking);
/* With the group, which no stream waits for any more. */
void talking_end(struct talking *talking, int sound);

/* hier.c: the ranks of a device by the one that works for them, and these by NCCL. */
device_way device_hier;
/* As device_nccl_is_to_come(). */
int device_hier_is_to_come(const ct_group *group);

/* staged.c: through host memory, by the algorithms of host memory. */
ct_status device_staged(struct call *c);
void staged_end(ct_group *group, struct staged *staged); /* NULL is fine */

/* copy_plan.c: what is to be folded or copied where, with everybody's buffers at hand.  For the
 * operations of which device_is_agreed(). */

/* All ranks' blocks, [rank][block]; bytes 0 where a rank has none. */
struct everybody {
    struct span *send, *recv;
    int sends, recvs; /* of each rank's */
};

/* How many a rank has, where it has any. */
int device_sends(const struct call *c);
int device_recvs(const struct call *c);

ct_status everybody_make(const struct call *c, struct everybody *all);
void everybody_free(struct everybody *all);

struct plan {
    int folds; /* 0: copies, of bytes */
    struct fold_part *parts;
    int count;
    void **pointers; /* of the parts */
    size_t used;
    int unlike; /* a rank awaits other bytes than another one gives it */
    int *near;  /* [count] the rank whose device does the part best */
    int one;    /* the only part: several devices may share it */
};

/* The parts may be done in any order.  CT_ERR_UNSUPPORTED: the ranks' counts differ where they must
 * not; the way over messages says where.  To be freed where it failed, too. */
ct_status plan_make(const struct call *c, const struct everybody *all, struct plan *plan);
void plan_free(struct plan *plan);

#endif
