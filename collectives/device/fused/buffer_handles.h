/* SPDX-License-Identifier: Apache-2.0 */
/* buffer_handles.h - how a rank offers its buffers, and how a leader maps them. */
#ifndef COLLECTIVES_DEVICE_FUSED_BUFFER_HANDLES_H
#define COLLECTIVES_DEVICE_FUSED_BUFFER_HANDLES_H

#include "collectives/core/call.h"

enum side { SENDS, RECVS };

/* The handles of the send side lie behind it, then those of the receive side.  If the ranks' blocks
 * differ, a struct offered_block follows for each block of a side that has a handle. */
struct offer {
    _Alignas(8) unsigned char device[16];
    int32_t usable; /* 0: leaders can't use it in this call */
    int32_t by_streams;
    int32_t scaled; /* premul_sum: the leader multiplies this rank's input by the scalar */
    char why[160];  /* the reason if it is not usable */
    unsigned char scalar[16];
    /* For each side: 0 if it has no bytes, 1 for all blocks, or one for each block. */
    int32_t handles[2];
};

/* at: offset from the first byte of the handle's memory. */
struct offered_block {
    uint64_t at, bytes;
};

/* Gives the most bytes that an offer for such a call has, on any rank. */
size_t offer_most(const struct call *c);
/* Fills this rank's offer.  *bytes: its length.  *bounce: the sides that can be offered only
 * through a bounce buffer.  CT_ERR_INVALID: a buffer is longer than its allocation. */
ct_status offer_make(const struct call *c, struct offer *offer, size_t *bytes, int *bounce);
/* Gives the sides that will need the bounce buffer, as far as this is known before the call.  Any
 * thread may call it. */
int offer_bounces(const struct call *c);
/* Maps one side of a rank's offer, and gives its `count` blocks in this process. */
ct_status offer_take(const struct call *c, const struct offer *offer, enum side side,
                     struct span *blocks, int count);

#endif
