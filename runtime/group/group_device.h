/* SPDX-License-Identifier: Apache-2.0 */
/* group_device.h - which devices a group knows to reach each other's memory: a driver that
 * says so is not believed (collectives/device/peer_access_check.c; of one pair,
 * peer_access_check.h). */
#ifndef RUNTIME_GROUP_GROUP_DEVICE_H
#define RUNTIME_GROUP_GROUP_DEVICE_H

#include "runtime/device/memory_kind.h"
#include "runtime/group/group.h"

/* Waits on a device, within its space's enter(): until the mark has come (NULL: until all that
 * libct has enqueued there is done), the deadline passed (CT_ERR_TIMEOUT), or *given_up is set
 * (CT_ERR_ABORTED).  Meanwhile it looks for deaths and failures, which may set that. */
ct_status device_wait(ct_group *group, struct place place, void *mark, int64_t deadline,
                      const _Atomic int *given_up);

/* Each of these reads and writes each other's memory.  Ranks that were lent nothing any more for
 * want of this may be lent to again. */
void reach_proved(ct_group *group, unsigned char (*ids)[16], int count);
/* The one reads the other's; any thread. */
void reach_proved_to_read(ct_group *group, const unsigned char reader[16],
                          const unsigned char owner[16]);
/* Any thread.  A device reaches itself. */
int reads_as_proved(const ct_group *group, const unsigned char reader[16],
                    const unsigned char owner[16]);
void reach_free(ct_group *group);

#endif
