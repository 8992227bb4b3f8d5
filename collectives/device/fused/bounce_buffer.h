/* SPDX-License-Identifier: Apache-2.0 */
/* bounce_buffer.h - buffers that the rank which works for all can't use where they lie, in device
 * memory of the group's own; a part of fused.c. */
#ifndef COLLECTIVES_DEVICE_FUSED_BOUNCE_BUFFER_H
#define COLLECTIVES_DEVICE_FUSED_BOUNCE_BUFFER_H

#include "collectives/core/call.h"

struct staging;

enum { SENDS_BOUNCE = 1, RECVS_BOUNCE = 2 }; /* sides of a call */

/* Copies what these sides give there; *given is the call with its buffers there.  0 in *bounced:
 * there is no room for it, and nothing was done. */
ct_status bounce_in(const struct call *c, int sides, struct call *given, int *bounced);
/* Copies what the call has received back to where it belongs. */
ct_status bounce_out(const struct call *c, const struct call *given);

/* Will the call need more memory than there is?  Asked by who makes it, while an earlier one may be
 * at that memory: so each call notes what there is.  !is_used: no call bounces. */
int bounce_must_grow(const struct call *c);
void bounce_note(struct staging *s, int is_used);

#endif
