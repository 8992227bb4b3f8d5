/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - finds algorithms by operation number, and names of paths by path number. */
#ifndef COLLECTIVES_REGISTRY_H
#define COLLECTIVES_REGISTRY_H

#include "collectives/core/call.h"

/* Returns the algorithms of an operation, best first, with NULL at the end. */
const struct algorithm *const *operation_algorithms(int operation);

/* Returns the name of a path of device memory, as used in CT_DEVICE, CT_<OPERATION> and messages.
 */
const char *device_path_name(enum path_number path);

#endif
