/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - what there is, by number. */
#ifndef COLLECTIVES_REGISTRY_H
#define COLLECTIVES_REGISTRY_H

#include "collectives/core/call.h"

/* An operation's algorithms, best first, NULL at the end. */
const struct algorithm *const *operation_algorithms(int operation);

/* The name of a path of device memory, for CT_DEVICE, CT_<OPERATION> and messages. */
const char *device_path_name(enum path_number path);

#endif
