/* SPDX-License-Identifier: Apache-2.0 */
/* peer_access_check.h - does a device read another one's memory as it is?  A driver that says so is
 * not believed: where the IOMMU or PCIe's access control is in the way, copies between GPUs end
 * well and bring other bytes.  So a sample of known bytes is copied first. */
#ifndef RUNTIME_DEVICE_PEER_ACCESS_CHECK_H
#define RUNTIME_DEVICE_PEER_ACCESS_CHECK_H

#include "runtime/device/memory_kind.h"

enum { SAMPLE_BYTES = 16 << 10 };

/* What lies in the sample of the device with this id (space->sample()): unlike any other's. */
void sample_fill(const unsigned char id[16], unsigned char bytes[SAMPLE_BYTES]);

/* A copy of a sample, moved on by who looks; nobody waits. */
struct trial;

/* The sample at `from`, of the device with that id, is copied into the device memory `into`, and
 * from there to the host.  NULL: no memory. */
struct trial *trial_make(struct place place, void *into, const void *from,
                         const unsigned char id[16]);
/* CT_OK: it is as it should be.  CT_ERR_TIMEOUT: it goes on.  CT_ERR_UNSUPPORTED: other bytes have
 * come.  Else the device failed, and is through with it. */
ct_status trial_step(struct trial *trial);
void trial_free(struct trial *trial); /* NULL is fine */

#endif
