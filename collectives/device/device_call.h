/* SPDX-License-Identifier: Apache-2.0 */
/* device_call.h - the executor of calls on device memory.  The executor also runs calls in which a
 * rank may have no block at all, so that the rank's buffers don't tell whether the call is on
 * device memory. */
#ifndef COLLECTIVES_DEVICE_DEVICE_CALL_H
#define COLLECTIVES_DEVICE_DEVICE_CALL_H

#include "collectives/device/group/device_group.h"

extern const struct executor device_executor;

/* The paths, indexed by enum path_number.  From PATH_NCCL on, calls try the paths in this order. */
extern const struct device_path *const device_paths[PATH_COUNT];

void device_end_group(ct_group *group);

#endif
