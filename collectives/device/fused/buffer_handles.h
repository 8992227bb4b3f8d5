/* SPDX-License-Identifier: Apache-2.0 */
/* buffer_handles.h - offers a rank's buffers to the leaders, which map the buffers. */
#ifndef COLLECTIVES_DEVICE_FUSED_BUFFER_HANDLES_H
#define COLLECTIVES_DEVICE_FUSED_BUFFER_HANDLES_H

#include "collectives/core/call.h"

enum side { SENDS, RECVS };

/* The handles of the send side follow this struct, then the handles of the receive side.  If the
 * ranks' blocks differ in size, a struct offered_block follows for each block of a side that has a
 * handle. */
struct offer {
    _Alignas(8) unsigned char device[16];
    int32_t usable; /* 0 if leaders can't use the offer in this call */
    int32_t by_streams;
    int32_t scaled; /* 1 if the leader must multiply this rank's input by the scalar (premul_sum) */
    char why[160];  /* the reason if usable is 0 */
    unsigned char scalar[16];
    /* The number of handles of each side: 0 if the side has no bytes, 1 for all blocks together, or
     * one handle for each block. */
    int32_t handles[2];
};

/* A block within a handle's memory.  `at` is the offset from the memory's first byte. */
struct offered_block {
    uint64_t at, bytes;
};

/* Returns the largest size in bytes that a rank's offer for such a call can have. */
size_t offer_most(const struct call *c);
/* Fills this rank's offer.  Sets *bytes to its length, and *bounce to the sides that can be offered
 * only through a bounce buffer.  Returns CT_ERR_INVALID if a buffer is longer than its allocation.
 */
ct_status offer_make(const struct call *c, struct offer *offer, size_t *bytes, int *bounce);
/* Returns the sides that will need the bounce buffer, as far as this is known before the call.  Any
 * thread may call this function. */
int offer_bounces(const struct call *c);
/* Maps one side of a rank's offer, and writes the addresses of its `count` blocks in this process
 * to blocks. */
ct_status offer_take(const struct call *c, const struct offer *offer, enum side side,
                     struct span *blocks, int count);

#endif
