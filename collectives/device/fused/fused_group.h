/* SPDX-License-Identifier: Apache-2.0 */
/* fused_group.h - the path "fused": on each device one rank, its leader, works for all ranks that
 * have it, on their buffers where they lie (fused.c). */
#ifndef COLLECTIVES_DEVICE_FUSED_FUSED_GROUP_H
#define COLLECTIVES_DEVICE_FUSED_FUSED_GROUP_H

#include "collectives/device/fused/bounce_buffer.h"
#include "collectives/device/fused/buffer_handles.h"
#include "collectives/device/fused/copy_plan.h"
#include "collectives/device/fused/stream_handover.h"
#include "collectives/device/group/device_group.h"
#include "runtime/group/shm_group.h"

extern const struct device_path fused_path;

enum peer_access { PEERS_UNTESTED, PEERS_REACHED, PEERS_OUT_OF_REACH };

/* What a group keeps for it. */
struct fused_group {
    enum peer_access peer_access; /* of the leaders' devices, where there are several */
    struct bounce tested;         /* memory by which that was found out */
    struct handover handover;
    struct place mapped; /* its device has the others' memory mapped; NULLs: none does */
    struct bounce bounce;
    int said; /* why a call can't be fused */

    /* The call under way, from prepare() to the end of run(). */
    struct offer *offer; /* room for what this rank shows; kept for the next */
    size_t offer_bytes;
    struct call given;    /* as the leaders reach it */
    struct everybody all; /* of a leader */
    const struct offer *offers[FLAT_MOST];
};

/* NULL: the group has not made any yet. */
static inline struct fused_group *fused_of(const ct_group *group)
{
    return group->device->path[PATH_FUSED].own;
}

/* peer_access_test.c: each leader's device reads and writes each other's memory, and finds there
 * what must be.  All ranks call it, once; ->peer_access is the same on all afterwards. */
ct_status fused_test_peers(struct call *c, struct fused_group *f);

#endif
