/* SPDX-License-Identifier: Apache-2.0 */
/* hier_leader.h - the ranks of a group that have one device, and what their executor does for them
 * beside the executors of other devices; parts of hier.c. */
#ifndef COLLECTIVES_DEVICE_NCCL_HIER_LEADER_H
#define COLLECTIVES_DEVICE_NCCL_HIER_LEADER_H

#include "collectives/device/buffer_handles.h"
#include "runtime/group/shm_group.h"

/* Bytes of an executor's device, where nobody's buffer serves; the same on all ranks.  Tests that
 * want several pieces have less. */
extern size_t team_scratch;

struct team {
    struct call *call;
    const struct executors *e;
    struct flat *flat; /* NULL: this rank alone */
    int *rank;         /* [size] in the group, the executor's first */
    int size;
    struct span *send, *recv; /* [size][sends], [size][recvs] blocks, as the executor sees them */
    int sends, recvs;
    struct offer *offer; /* room for ours */
};

/* Block `block` of what rank[i] sends, or receives. */
static inline char *team_sent(const struct team *t, int i, int block)
{
    return t->send[(size_t)i * (size_t)t->sends + (size_t)block].data;
}

static inline char *team_received(const struct team *t, int i, int block)
{
    return t->recv[(size_t)i * (size_t)t->recvs + (size_t)block].data;
}

/* In each call: */
ct_status team_show(struct team *t);       /* to its executor, where this rank's buffers are */
int team_reach(struct team *t);            /* an executor: can it reach all of them? */
ct_status team_work(const struct team *t); /* an executor: all that is to do, with NCCL */
ct_status team_wait(const struct team *t); /* all: until the executor has done it */

/* hier_blocks.c: where each rank gives or gets a block for each.  From what all ranks agree
 * on: has the scratch room for some bytes of each? */
int team_has_slots(const struct call *c, const struct executors *e);
/* Must all blocks of a side be one buffer?  Else they may lie apart. */
int team_needs_buffer(const struct call *c, const struct executors *e);
ct_status team_blocks(const struct team *t); /* enqueued is all, done may be less */

/* Between the executors, when what was enqueued is done: the call's operation with `bytes` in place
 * of its block. */
ct_status team_talk(const struct team *t, const char *from, char *to, size_t bytes);
/* Where a rank of the group is in the team; -1: elsewhere. */
int team_place(const struct team *t, int rank);

#endif
