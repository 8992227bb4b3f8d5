/* SPDX-License-Identifier: Apache-2.0 */
/* bounce_buffer.h - device memory of a group, used in place of buffers that a leader can't map. */
#ifndef COLLECTIVES_DEVICE_FUSED_BOUNCE_BUFFER_H
#define COLLECTIVES_DEVICE_FUSED_BOUNCE_BUFFER_H

#include "collectives/core/call.h"

struct bounce {
    void *memory;
    size_t bytes;
    struct place place;
    int useless;         /* a leader could not map the bounce buffer either */
    _Atomic size_t room; /* the same as bytes, for threads that make calls meanwhile */
};

enum { SENDS_BOUNCE = 1, RECVS_BOUNCE = 2 }; /* sides of a call */

/* Copies what these sides send to the bounce buffer.  *given: the call with its buffers there.
 * *bounced 0: the bounce buffer has no room, and nothing was done. */
ct_status bounce_in(const struct call *c, int sides, struct call *given, int *bounced);
/* Copies what the call has received back to the caller's buffer. */
ct_status bounce_out(const struct call *c, const struct call *given);
void bounce_refuse(struct bounce *bounce); /* it is not used from now on */
void bounce_free(struct bounce *bounce);

/* Says whether the call needs a larger bounce buffer.  Any thread may call it. */
int bounce_must_grow(const struct call *c);

#endif
