/* SPDX-License-Identifier: Apache-2.0 */
/* bounce_buffer.h - device memory of the group's own, for buffers that a leader can't map. */
#ifndef COLLECTIVES_DEVICE_FUSED_BOUNCE_BUFFER_H
#define COLLECTIVES_DEVICE_FUSED_BOUNCE_BUFFER_H

#include "collectives/core/call.h"

struct bounce {
    void *memory;
    size_t bytes;
    struct place place;
    int useless;         /* a leader could not map it either */
    _Atomic size_t room; /* = bytes, for threads that make calls meanwhile */
};

enum { SENDS_BOUNCE = 1, RECVS_BOUNCE = 2 }; /* sides of a call */

/* Copies what these sides send to the bounce buffer; *given: the call with its buffers there.
 * *bounced 0: there is no room, and nothing was done. */
ct_status bounce_in(const struct call *c, int sides, struct call *given, int *bounced);
/* Copies what the call has received back to the caller's buffer. */
ct_status bounce_out(const struct call *c, const struct call *given);
void bounce_refuse(struct bounce *bounce); /* from now on it is not used */
void bounce_free(struct bounce *bounce);

/* Does the call need more memory than there is?  From any thread. */
int bounce_must_grow(const struct call *c);

#endif
