/* SPDX-License-Identifier: Apache-2.0 */
/* fused_group.h - the path "fused": on each device one rank, its leader, works for all ranks on
 * their buffers in place (fused.c). */
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

/* What a group keeps for the path. */
struct fused_group {
    enum peer_access peer_access; /* of the leaders' devices, if there are several */
    struct bounce checked;        /* the memory that the check used */
    struct handover handover;
    struct place mapped; /* the device that has other ranks' memory mapped; NULLs: none */
    struct bounce bounce;
    int said; /* the log has said why a call can't be fused */

    /* The call under way, from prepare() to the end of run(): */
    struct offer *offer; /* this rank's; kept for the next call */
    size_t offer_bytes;
    struct call given;     /* the call with the buffers that the leaders map */
    struct all_blocks all; /* only at a leader */
    const struct offer *offers[SHM_GROUP_MOST];
};

/* NULL: the group has not created it yet. */
static inline struct fused_group *fused_of(const ct_group *group)
{
    return group->device->path[PATH_FUSED].own;
}

/* peer_access_check.c: each leader's device reads and writes the other devices' memory, and
 * compares what arrived.  All ranks call it, once.  Afterwards ->peer_access is the same on all
 * ranks. */
ct_status fused_check_peers(struct call *c, struct fused_group *f);

#endif
