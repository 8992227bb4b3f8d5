/* SPDX-License-Identifier: Apache-2.0 */
/* device_bounce.h - buffers that the rank which works for all can't use where they lie, in device
 * memory of the group's own; a part of device_fused.c. */
#ifndef COLLECTIVES_DEVICE_BOUNCE_H
#define COLLECTIVES_DEVICE_BOUNCE_H

#include "collectives/call.h"

enum { SENDS_BOUNCE = 1, RECVS_BOUNCE = 2 }; /* sides of a call */

/* Copies what these sides give there; *given is the call with its buffers there.  0 in *bounced:
 * there is no room for it, and nothing was done. */
ct_status bounce_in(const struct call *c, int sides, struct call *given, int *bounced);
/* Copies what the call has received back to where it belongs. */
ct_status bounce_out(const struct call *c, const struct call *given);

#endif
