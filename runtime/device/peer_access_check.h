/* SPDX-License-Identifier: Apache-2.0 */
/* peer_access_check.h - checks that a device reads another device's memory correctly.
 *
 * The driver's word is not enough: if the IOMMU or PCIe's access control is in the way, copies
 * between GPUs succeed and bring wrong bytes.  So a test pattern of known bytes is copied first. */
#ifndef RUNTIME_DEVICE_PEER_ACCESS_CHECK_H
#define RUNTIME_DEVICE_PEER_ACCESS_CHECK_H

#include "runtime/device/memory_kind.h"

enum { TEST_PATTERN_BYTES = 16 << 10 };

/* The test pattern of the device with this id (space->test_pattern()): each device has another.
 */
void test_pattern_fill(const unsigned char id[16], unsigned char bytes[TEST_PATTERN_BYTES]);

/* A copy of a test pattern; each call of access_check_step() moves it on without waiting. */
struct access_check;

/* Copies the test pattern at `from`, of the device with that id, into the device memory `into`, and
 * from there to the host.  NULL: no memory. */
struct access_check *access_check_create(struct place place, void *into, const void *from,
                                         const unsigned char id[16]);
/* CT_OK: the bytes are right.  CT_ERR_TIMEOUT: not done yet.  CT_ERR_UNSUPPORTED: the bytes are
 * wrong. Else the device failed, and no copy is under way. */
ct_status access_check_step(struct access_check *trial);
void access_check_free(struct access_check *trial); /* NULL is fine */

#endif
