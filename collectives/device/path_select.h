/* SPDX-License-Identifier: Apache-2.0 */
/* path_select.h - the paths of a call on device memory, and which of them makes it. */
#ifndef COLLECTIVES_DEVICE_PATH_SELECT_H
#define COLLECTIVES_DEVICE_PATH_SELECT_H

#include "collectives/device/group/device_group.h"

/* Each by its number; from PATH_NCCL on in the order in which they are tried. */
extern const struct device_path *const device_paths[PATH_COUNT];

/* One path after the other, until one has made the call; *result: PATH_OK, or none could. */
ct_status device_try_paths(struct call *c, enum path_result *result);
/* What was in the group's stream when the call was made is over. */
ct_status device_wait_for_mark(struct call *c);
/* The call is over: which path it took, and why (CT_EXPLAIN). */
void device_explain(const struct call *c);

#endif
