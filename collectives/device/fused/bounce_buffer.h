/* SPDX-License-Identifier: Apache-2.0 */
/* bounce_buffer.h - device memory of a group that replaces buffers which a leader can't map. */
#ifndef COLLECTIVES_DEVICE_FUSED_BOUNCE_BUFFER_H
#define COLLECTIVES_DEVICE_FUSED_BOUNCE_BUFFER_H

#include "collectives/core/call.h"

struct bounce {
    void *memory;
    size_t bytes;
    struct place place;
    int useless;         /* 1 if a leader could not map the bounce buffer either */
    _Atomic size_t room; /* the same as bytes, for other threads that make calls */
};

enum { SENDS_BOUNCE = 1, RECVS_BOUNCE = 2 }; /* the sides of a call that need the bounce buffer */

/* Copies the send blocks of these sides to the bounce buffer.  Sets *given to the call with its
 * buffers in the bounce buffer.  Sets *bounced to 0 if the bounce buffer has no room; then nothing
 * was copied. */
ct_status bounce_in(const struct call *c, int sides, struct call *given, int *bounced);
/* Copies the received blocks from the bounce buffer back to the caller's buffer. */
ct_status bounce_out(const struct call *c, const struct call *given);
void bounce_refuse(struct bounce *bounce); /* stops further use of the buffer */
void bounce_free(struct bounce *bounce);

/* Returns 1 if the call needs a larger bounce buffer.  Any thread may call this function. */
int bounce_must_grow(const struct call *c);

#endif
