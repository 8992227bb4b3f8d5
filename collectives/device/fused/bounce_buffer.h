/* SPDX-License-Identifier: Apache-2.0 */
/* bounce_buffer.h - device memory of the group's own, for buffers that a leader can't use where
 * they lie. */
#ifndef COLLECTIVES_DEVICE_FUSED_BOUNCE_BUFFER_H
#define COLLECTIVES_DEVICE_FUSED_BOUNCE_BUFFER_H

#include "collectives/core/call.h"

struct bounce {
    void *memory;
    size_t bytes;
    struct place place;
    int useless; /* no leader could map that either */
    /* How large a call may be that needs no more, for threads that make calls meanwhile. */
    _Atomic size_t room;
};

enum { SENDS_BOUNCE = 1, RECVS_BOUNCE = 2 }; /* sides of a call */

/* Copies what these sides give there; *given is the call with its buffers there.  0 in *bounced:
 * there is no room for it, and nothing was done. */
ct_status bounce_in(const struct call *c, int sides, struct call *given, int *bounced);
/* Copies what the call has received back to where it belongs. */
ct_status bounce_out(const struct call *c, const struct call *given);
void bounce_refuse(struct bounce *bounce); /* it turned out to be useless */
void bounce_free(struct bounce *bounce);

/* Will the call need more memory than there is?  From any thread. */
int bounce_must_grow(const struct call *c);

#endif
