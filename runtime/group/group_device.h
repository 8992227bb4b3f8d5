/* SPDX-License-Identifier: Apache-2.0 */
/* group_device.h - waits for a device in a group's call, and records which devices can read each
 * other's memory.
 *
 * A driver may report peer access that does not work.  So a group uses peer access only between
 * devices that passed a check.  collectives/device/fused/peer_access_check.c checks all devices of
 * a group, and peer_access_check.h checks one pair. */
#ifndef RUNTIME_GROUP_GROUP_DEVICE_H
#define RUNTIME_GROUP_GROUP_DEVICE_H

#include "runtime/device/memory_kind.h"
#include "runtime/group/group.h"

/* Waits until the device reaches the mark or, if mark is NULL, until the device has done all of
 * libct's work.  Returns CT_ERR_TIMEOUT at the deadline, and CT_ERR_ABORTED when *given_up is set.
 * During the wait, checks for death notices and failures of the group, which may set *given_up.
 * The caller has called the space's enter(). */
ct_status device_wait(ct_group *group, struct place place, void *mark, int64_t deadline,
                      const _Atomic int *given_up);

/* Records that all these devices passed the check with each other.  From now on, this rank again
 * offers device memory to peers that refused it before the check. */
void peer_access_add_all(ct_group *group, unsigned char (*ids)[16], int count);
/* Records that the device `reader` passed the check of reading the memory of the device `owner`.
 * Any thread may call this function. */
void peer_access_add(ct_group *group, const unsigned char reader[16],
                     const unsigned char owner[16]);
/* Returns 1 if the device `reader` may read the memory of the device `owner`.  A device may always
 * read its own memory.  Any thread may call this function. */
int peer_access_checked(const ct_group *group, const unsigned char reader[16],
                        const unsigned char owner[16]);
void peer_access_free(ct_group *group);

#endif
