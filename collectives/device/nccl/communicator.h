/* SPDX-License-Identifier: Apache-2.0 */
/* communicator.h - the path "nccl": each rank has a device to itself, and NCCL makes the call
 * between them (nccl.c). */
#ifndef COLLECTIVES_DEVICE_NCCL_COMMUNICATOR_H
#define COLLECTIVES_DEVICE_NCCL_COMMUNICATOR_H

#include "collectives/device/group/device_group.h"

extern const struct device_path nccl_path;

/* A group's communicator.  struct comm_library (memory_kind.h) calls NCCL itself. */
struct communicator {
    int joined; /* all ranks have joined; calls do not use it once the path is disabled */
    struct device_comm *nccl; /* kept until the group ends, even if it was given up */
    const struct comm_library *library;
    struct device *device; /* of this rank */
    int said_order;        /* the log has said that NCCL has its own order */
    int said_cant;         /* the log has said that NCCL can't make some calls */
};

/* NULL: no memory. */
struct communicator *communicator_of(ct_group *group);

/* All ranks join, once, each with a device to itself.  Afterwards ->joined is set, or the path is
 * disabled; the same on all ranks. */
ct_status communicator_join(struct call *c, struct communicator *comm);
/* Waits until the call that this rank has begun is over. */
ct_status communicator_wait(struct call *c, const struct communicator *comm);
/* After a failed call: makes NCCL stop using the buffers.  No further call takes this path. */
void communicator_fail(ct_group *group, struct communicator *comm);

#define NCCL_SAME_GPU "two ranks have the same GPU" /* why NCCL can't be used */

#endif
