/* SPDX-License-Identifier: Apache-2.0 */
/* device_staging.h - a message from or to device memory: it travels in host memory of its own, or
 * is lent to a neighbour, who copies it where it lies (runtime/messaging/device_rendezvous.c).
 *
 * A request has one, or NULL for a buffer that the host reaches itself. */
#ifndef RUNTIME_P2P_DEVICE_STAGING_H
#define RUNTIME_P2P_DEVICE_STAGING_H

#include "runtime/device/memory_kind.h"
#include "runtime/group/group.h"
#include "runtime/messaging/device_rendezvous.h"

struct device_staging;

enum { RECEIVES = -1 };

/* *buf becomes host memory, where what is sent to rank `to` of the mesh lies when this returns; or
 * it stays what it was, and is lent.  What is in the group's stream now comes first. */
ct_status device_staging_begin(ct_group *group, struct place place, void **buf, size_t bytes,
                               int to, int64_t deadline, struct device_staging **staging);
/* The request, prepared and not started, has it from now on.  NULL is fine. */
void device_staging_attach(struct device_staging *staging, struct request *request);

/* Of a receive.  May what was received be written to the caller's buffer now?  By the deadline. */
int device_staging_is_clear(struct request *receive, int64_t deadline);
/* What was received goes into the caller's buffer. */
ct_status device_staging_land(struct request *receive, int64_t deadline);

/* However the request went, which has none any more then; a request without one is fine. */
void device_staging_end(struct request *request);

/* The group ends: of what was lent to it nothing stays mapped. */
void device_staging_close(ct_group *group);

#endif
