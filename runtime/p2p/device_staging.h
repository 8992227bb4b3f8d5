/* SPDX-License-Identifier: Apache-2.0 */
/* device_staging.h - a message from or to device memory: it travels in host memory of its own, or
 * is lent to a neighbour, who copies it where it lies (device_rendezvous.c).
 *
 * A request has one, or NULL for a buffer that the host reaches itself. */
#ifndef RUNTIME_P2P_DEVICE_STAGING_H
#define RUNTIME_P2P_DEVICE_STAGING_H

#include <stdatomic.h>

#include "runtime/device/memory_kind.h"
#include "runtime/group/group.h"
#include "runtime/messaging/device_rendezvous.h"

struct crossing;

enum { RECEIVES = -1 };

/* *buf becomes host memory, where what is sent to rank `to` of the mesh lies when this returns; or
 * it stays what it was, and is lent.  What is in the group's stream now comes first. */
ct_status crossing_begin(ct_group *group, struct place place, void **buf, size_t bytes, int to,
                         int64_t deadline, struct crossing **crossing);
/* The request, prepared and not started, has it from now on.  NULL is fine. */
void crossing_attach(struct crossing *crossing, struct request *request);
/* May what is received be written to the caller's buffer now?  By the deadline. */
int crossing_is_clear(struct crossing *crossing, int64_t deadline);
/* What was received goes into the caller's buffer. */
ct_status crossing_land(struct crossing *crossing, int64_t deadline);
void crossing_end(struct crossing *crossing); /* however it went; NULL is fine */

/* ---- Errands of device_rendezvous.c: one thread at a time, which never waits ---- */

enum crossing_step {
    CROSSING_GOES_ON,
    CROSSING_DONE,
    CROSSING_CANT,         /* nor has begun to */
    CROSSING_NEVER_CAN,    /* of that rank's memory, as it is now */
    CROSSING_NEEDS_SAMPLE, /* nobody knows whether it can */
    CROSSING_FAILED        /* with *status and a sentence; the device is through */
};

/* What is received is to come from there. */
void crossing_borrows(struct crossing *crossing, const struct loan *loan);
/* It comes through the host after all. */
void crossing_is_not_taken(struct crossing *crossing);
/* From there into the caller's buffer.  given_up: nothing is begun any more. */
enum crossing_step crossing_take(struct crossing *crossing, int given_up, ct_status *status);
/* What was lent into host memory, which is crossing_host() then. */
enum crossing_step crossing_stage(struct crossing *crossing, int given_up, ct_status *status);
void *crossing_host(const struct crossing *crossing);
/* The group ends: of what was lent to it nothing stays mapped. */
void crossings_close(ct_group *group);

#endif
