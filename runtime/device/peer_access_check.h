/* SPDX-License-Identifier: Apache-2.0 */
/* peer_access_check.h - checks that a device reads another device's memory correctly.
 *
 * The driver's answer is not enough.  If the IOMMU or PCIe access control is in the way, copies
 * between GPUs succeed but bring wrong bytes.  So a test pattern of known bytes is copied first. */
#ifndef RUNTIME_DEVICE_PEER_ACCESS_CHECK_H
#define RUNTIME_DEVICE_PEER_ACCESS_CHECK_H

#include "runtime/device/memory_kind.h"

enum { TEST_PATTERN_BYTES = 16 << 10 };

/* Writes the test pattern of the device with this id (space->test_pattern()).  Each device has a
 * different test pattern. */
void test_pattern_fill(const unsigned char id[16], unsigned char bytes[TEST_PATTERN_BYTES]);

/* A check that copies a test pattern.  Each access_check_step() moves the copy on without waiting.
 */
struct access_check;

/* Creates a check that copies the test pattern at `from` into the device memory `into`, and from
 * there to the host.  `id` is the id of the device that owns the test pattern.  Returns NULL if
 * there is no memory. */
struct access_check *access_check_create(struct place place, void *into, const void *from,
                                         const unsigned char id[16]);
/* Returns CT_OK if the bytes are right, CT_ERR_UNSUPPORTED if they are wrong, and CT_ERR_TIMEOUT if
 * the check is not done yet.  Any other status means that the device failed.  Then no copy is under
 * way. */
ct_status access_check_step(struct access_check *trial);
void access_check_free(struct access_check *trial); /* NULL is fine */

#endif
