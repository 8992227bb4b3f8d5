/* SPDX-License-Identifier: Apache-2.0 */
/* buffer_handles.h - how a rank offers its buffers, and how a leader maps them. */
#ifndef COLLECTIVES_DEVICE_FUSED_BUFFER_HANDLES_H
#define COLLECTIVES_DEVICE_FUSED_BUFFER_HANDLES_H

#include "collectives/core/call.h"

enum side { SENDS, RECVS };

/* Behind it lie the handles of the send and of the receive side; then, where the ranks' blocks
 * differ, a struct offered_block for each block of a side that has a handle. */
struct offer {
    _Alignas(8) unsigned char device[16];
    int32_t usable; /* 0: no leader can use it in this call */
    int32_t by_streams;
    int32_t scaled; /* premul_sum: the leader multiplies what it sends by the scalar */
    char why[160];  /* why it is not usable */
    unsigned char scalar[16];
    /* Of each side: 0 where there is nothing, one for all blocks, or one for each. */
    int32_t handles[2];
};

/* at: from the first byte of the handle's memory. */
struct offered_block {
    uint64_t at, bytes;
};

/* The most bytes of an offer for such a call, on any rank. */
size_t offer_most(const struct call *c);
/* Fills this rank's offer.  *bytes: its length.  *bounce: the sides that can be offered only
 * through a bounce buffer.  CT_ERR_INVALID: a buffer is longer than its allocation. */
ct_status offer_make(const struct call *c, struct offer *offer, size_t *bytes, int *bounce);
/* The sides that will need the bounce buffer, as far as is known before the call; any thread. */
int offer_bounces(const struct call *c);
/* Maps one side of a rank's offer: `count` blocks in this process. */
ct_status offer_take(const struct call *c, const struct offer *offer, enum side side,
                     struct span *blocks, int count);

#endif
