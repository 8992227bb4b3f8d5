/* SPDX-License-Identifier: Apache-2.0 */
/* fused_group.h - the path "fused": on each device one rank, the leader, works for all ranks,
 * directly in their buffers (fused.c). */
#ifndef COLLECTIVES_DEVICE_FUSED_FUSED_GROUP_H
#define COLLECTIVES_DEVICE_FUSED_FUSED_GROUP_H

#include "collectives/device/fused/bounce_buffer.h"
#include "collectives/device/fused/buffer_handles.h"
#include "collectives/device/fused/copy_plan.h"
#include "collectives/device/fused/stream_handover.h"
#include "collectives/device/group/device_group.h"
#include "runtime/group/shm/shm_group.h"

extern const struct device_path fused_path;

enum peer_access { PEERS_UNCHECKED, PEERS_REACHED, PEERS_OUT_OF_REACH };

/* The state of a group for the path. */
struct fused_group {
    enum peer_access peer_access; /* the result of the check of several leaders' devices */
    struct bounce checked;        /* the memory that the check used */
    struct handover handover;
    /* the device that has other ranks' memory mapped; zeros if no memory is mapped */
    struct place mapped;
    struct bounce bounce;
    int said; /* 1 after the log line that tells why a call can't be fused */

    /* The next fields belong to the running call, from prepare() to the end of run(). */
    struct offer *offer; /* this rank's offer; the memory is kept for the next call */
    size_t offer_bytes;
    struct call given;     /* the call with the buffers that the leaders map */
    struct all_blocks all; /* set only on a leader */
    const struct offer *offers[SHM_GROUP_MOST];
};

/* Returns the group's state for the path, or NULL if the group has not created it yet. */
static inline struct fused_group *fused_of(const ct_group *group)
{
    return group->device->path[PATH_FUSED].own;
}

/* peer_access_check.c: Each leader's device reads and writes the other devices' memory, and the
 * leader compares the bytes.  All ranks call this function once.  It sets ->peer_access to the same
 * value on all ranks. */
ct_status fused_check_peers(struct call *c, struct fused_group *f);

#endif
