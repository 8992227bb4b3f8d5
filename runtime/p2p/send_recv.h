/* SPDX-License-Identifier: Apache-2.0 */
/* send_recv.h - a send or receive as its caller names it. */
#ifndef RUNTIME_P2P_SEND_RECV_H
#define RUNTIME_P2P_SEND_RECV_H

#include "runtime/device/memory_kind.h"
#include "runtime/p2p/work.h"

struct device_staging;

struct transfer {
    ct_group *group;
    const char *verb;
    struct signature signature;
    size_t bytes;
    int peer; /* in the mesh */
    int tag;
    struct place place; /* of the buffer */
};

/* Its arguments, before anything happens; fills all but group and verb, which are there. */
ct_status transfer_check(struct transfer *t, const void *buf, size_t count, ct_dtype dtype,
                         int peer, int tag, int is_send);
/* Its buffer is on a device: *buf becomes host memory that travels instead, of *staging; else that
 * is NULL. */
ct_status transfer_stage(const struct transfer *t, void **buf, int is_send, int64_t deadline,
                         struct device_staging **staging);

#endif
