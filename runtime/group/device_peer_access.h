/* SPDX-License-Identifier: Apache-2.0 */
/* device_peer_access.h - which devices a group knows to reach each other's memory: a driver that
 * says so is not believed (collectives/device/peer_access_check.c; of one pair,
 * peer_access_check.h). */
#ifndef RUNTIME_GROUP_DEVICE_PEER_ACCESS_H
#define RUNTIME_GROUP_DEVICE_PEER_ACCESS_H

#include "runtime/group/group.h"

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
