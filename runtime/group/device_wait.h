/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_GROUP_DEVICE_WAIT_H
#define RUNTIME_GROUP_DEVICE_WAIT_H

#include "runtime/device/memory_kind.h"
#include "runtime/group/group.h"

/* Waits on a device, within its space's enter(): until the mark has come (NULL: until all that
 * libct has enqueued there is done), the deadline passed (CT_ERR_TIMEOUT), or *given_up is set
 * (CT_ERR_ABORTED).  Meanwhile it looks for deaths and failures, which may set that. */
ct_status device_wait(ct_group *group, struct place place, void *mark, int64_t deadline,
                      const _Atomic int *given_up);

#endif
