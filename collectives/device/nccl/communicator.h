/* SPDX-License-Identifier: Apache-2.0 */
/* communicator.h - the path "nccl": each rank has a device of its own, and NCCL makes the call
 * between them (nccl.c). */
#ifndef COLLECTIVES_DEVICE_NCCL_COMMUNICATOR_H
#define COLLECTIVES_DEVICE_NCCL_COMMUNICATOR_H

#include "collectives/device/group/device_group.h"

extern const struct device_path nccl_path;

/* What a group has of NCCL; NCCL itself is reached by struct talks (memory_kind.h). */
struct communicator {
    int joined;        /* all ranks are in it.  Once the path is disabled it takes no call more */
    struct talk *talk; /* also one that was given up, until the group ends */
    const struct talks *library;
    struct device *device; /* ours, in it */
    int said_order;        /* that NCCL's order is its own, */
    int said_cant;         /* and that some calls can't go by it */
};

/* NULL: no memory. */
struct communicator *communicator_of(ct_group *group);

/* communicator.c.  All ranks join, once, each with a device of its own; afterwards they are in it,
 * or the path is disabled, the same on all. */
ct_status communicator_join(struct call *c, struct communicator *comm);
/* Until what was begun is over, here. */
ct_status communicator_wait(struct call *c, const struct communicator *comm);
/* A call failed in it: nothing of it is at the buffers any more, and no call will be. */
void communicator_give_up(ct_group *group, struct communicator *comm);

#define NCCL_SAME_GPU "two ranks have the same GPU" /* why it can't be, for the user */

#endif
