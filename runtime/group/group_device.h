/* SPDX-License-Identifier: Apache-2.0 */
/* group_device.h - a group and the devices of its ranks.
 *
 * A driver may report peer access that does not work, so a group relies on the peer-access check:
 * collectives/device/fused/peer_access_check.c for all devices of a group, peer_access_check.h for
 * one pair. */
#ifndef RUNTIME_GROUP_GROUP_DEVICE_H
#define RUNTIME_GROUP_GROUP_DEVICE_H

#include "runtime/device/memory_kind.h"
#include "runtime/group/group.h"

/* Waits for a device, within its space's enter(): until the device reaches the mark (NULL: until
 * all of libct's work there is done), the deadline passes (CT_ERR_TIMEOUT), or *given_up is set
 * (CT_ERR_ABORTED).  Meanwhile it looks for death notices and failures of the group, which may set
 * *given_up. */
ct_status device_wait(ct_group *group, struct place place, void *mark, int64_t deadline,
                      const _Atomic int *given_up);

/* Notes that all these devices passed the check with each other.  The group's ranks may again offer
 * device memory to peers that refused it because there was no check. */
void peer_access_add_all(ct_group *group, unsigned char (*ids)[16], int count);
/* Notes that the reader passed the check with the owner's memory.  Any thread may call it. */
void peer_access_add(ct_group *group, const unsigned char reader[16],
                     const unsigned char owner[16]);
/* 1: the reader may read the owner's memory; a device always may read its own.  Any thread may
 * call it. */
int peer_access_checked(const ct_group *group, const unsigned char reader[16],
                        const unsigned char owner[16]);
void peer_access_free(ct_group *group);

#endif
