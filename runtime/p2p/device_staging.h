/* SPDX-License-Identifier: Apache-2.0 */
/* device_staging.h - a message from or to device memory: its bytes go through pinned host memory,
 * or the receiver copies them out of the sender's device memory (device_rendezvous.h).
 *
 * A request has a staging, or NULL for a buffer in host memory. */
#ifndef RUNTIME_P2P_DEVICE_STAGING_H
#define RUNTIME_P2P_DEVICE_STAGING_H

#include "runtime/device/memory_kind.h"
#include "runtime/group/group.h"
#include "runtime/messaging/device_rendezvous.h"

struct device_staging;

enum { RECEIVES = -1 };

/* Starts a staging.  *buf becomes host memory, which has the message to send when this returns, or
 * stays device memory for a device rendezvous with rank `to` of the mesh.  Waits for earlier work
 * in the group's stream. */
ct_status device_staging_begin(ct_group *group, struct place place, void **buf, size_t bytes,
                               int to, int64_t deadline, struct device_staging **staging);
/* Gives the staging to a request that is prepared but not started.  staging NULL is fine. */
void device_staging_attach(struct device_staging *staging, struct request *request);

/* Waits until received bytes may be written to the user's buffer.  0: the deadline passed. */
int device_staging_is_clear(struct request *receive, int64_t deadline);
/* Copies the received bytes into the user's buffer. */
ct_status device_staging_land(struct request *receive, int64_t deadline);

/* Frees the request's staging, if it has one, also after a failure. */
void device_staging_end(struct request *request);

/* Called when the group ends: unmaps the memory of its peers. */
void device_staging_close(ct_group *group);

#endif
