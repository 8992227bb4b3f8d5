/* SPDX-License-Identifier: Apache-2.0 */
/* communicator.h - the path "nccl": NCCL runs calls in which each rank has its own device (nccl.c).
 */
#ifndef COLLECTIVES_DEVICE_NCCL_COMMUNICATOR_H
#define COLLECTIVES_DEVICE_NCCL_COMMUNICATOR_H

#include "collectives/device/group/device_group.h"

extern const struct device_path nccl_path;

/* The communicator of a group. struct comm_library (memory_kind.h) has the calls of NCCL. */
struct communicator {
    /* 1 if all ranks have joined; calls don't use the communicator once the path is disabled */
    int joined;
    struct device_comm *nccl; /* kept until the group ends, even after a failure */
    const struct comm_library *library;
    struct device *device; /* this rank's device */
    int said_order;        /* 1 after the log line about NCCL's own fold order */
    int said_cant;         /* 1 after the log line about calls that NCCL can't run */
};

/* Returns the group's communicator, or NULL if memory ran out. */
struct communicator *communicator_of(ct_group *group);

/* Joins all ranks to a NCCL communicator.  All ranks call this function once, and each must have
 * its own device.  Afterwards either ->joined is set or the path is disabled, the same on all
 * ranks. */
ct_status communicator_join(struct call *c, struct communicator *comm);
/* Waits until the NCCL call that this rank started has ended. */
ct_status communicator_wait(struct call *c, const struct communicator *comm);
/* Makes NCCL stop using the buffers of a failed call.  No later call uses this path. */
void communicator_fail(ct_group *group, struct communicator *comm);

#define NCCL_SAME_GPU "two ranks have the same GPU" /* a reason why NCCL can't be used */

#endif
