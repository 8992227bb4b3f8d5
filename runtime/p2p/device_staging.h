/* SPDX-License-Identifier: Apache-2.0 */
/* device_staging.h - sends and receives messages in device memory.  The bytes pass through pinned
 * host memory, or the receiver copies them out of the sender's device memory (device_rendezvous.h).
 *
 * A request for a buffer in device memory has a staging.  A request for a buffer in host memory has
 * none (NULL). */
#ifndef RUNTIME_P2P_DEVICE_STAGING_H
#define RUNTIME_P2P_DEVICE_STAGING_H

#include "runtime/device/memory_kind.h"
#include "runtime/group/group.h"
#include "runtime/messaging/device_rendezvous.h"

struct device_staging;

enum { RECEIVES = -1 };

/* Starts a staging.  For a receive (to = RECEIVES), sets *buf to host memory.  For a send to rank
 * `to` of the mesh, sets *buf to host memory with the message, or leaves *buf in device memory for
 * a device rendezvous.  Before it copies, it waits for earlier work in the group's stream. */
ct_status device_staging_begin(ct_group *group, struct place place, void **buf, size_t bytes,
                               int to, int64_t deadline, struct device_staging **staging);
/* Attaches the staging to a request that is prepared but not started. staging may be NULL. */
void device_staging_attach(struct device_staging *staging, struct request *request);

/* Waits until received bytes may be written to the user's buffer.  Returns 0 if the deadline
 * passed. */
int device_staging_is_clear(struct request *receive, int64_t deadline);
/* Copies the received bytes to the user's buffer. */
ct_status device_staging_land(struct request *receive, int64_t deadline);

/* Frees the request's staging, if any, after success or failure. */
void device_staging_end(struct request *request);

/* Unmaps the memory of the group's peers when the group ends. */
void device_staging_close(ct_group *group);

#endif
