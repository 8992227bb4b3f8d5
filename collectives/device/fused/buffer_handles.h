/* SPDX-License-Identifier: Apache-2.0 */
/* buffer_handles.h - what a rank offers of its buffers, and how a leader reaches them. */
#ifndef COLLECTIVES_DEVICE_FUSED_BUFFER_HANDLES_H
#define COLLECTIVES_DEVICE_FUSED_BUFFER_HANDLES_H

#include "collectives/core/call.h"

enum side { SENDS, RECVS };

/* Behind it lie the handles of what it sends and of what it receives; then, where the ranks' blocks
 * differ, a struct offered_block for each block of either side that has a handle. */
struct offer {
    _Alignas(8) unsigned char device[16];
    int32_t usable; /* 0: not this call */
    int32_t by_streams;
    int32_t scaled; /* premul_sum: what it sends is to be multiplied by the scalar */
    char why[160];  /* if it is not usable */
    unsigned char scalar[16];
    /* Of each side: 0 where there is nothing, one for all blocks, or one for each. */
    int32_t handles[2];
};

/* From where the handle points. */
struct offered_block {
    uint64_t at, bytes;
};

/* No offer of such a call has more bytes, on any rank. */
size_t offer_most(const struct call *c);
/* This rank's, and its bytes.  *bounce: which sides make it unusable, and would not elsewhere
 * (bounce_buffer.h).  CT_ERR_INVALID: a buffer is longer than its allocation. */
ct_status offer_make(const struct call *c, struct offer *offer, size_t *bytes, int *bounce);
/* Which sides will bounce, as far as can be seen before; from any thread. */
int offer_bounces(const struct call *c);
/* What a rank has offered of one side, as `count` blocks that this process reaches. */
ct_status offer_take(const struct call *c, const struct offer *offer, enum side side,
                     struct span *blocks, int count);

#endif
