/* SPDX-License-Identifier: Apache-2.0 */
/* staged.h - the path "staged": through host memory, by the algorithms of host memory (staged.c).
 */
#ifndef COLLECTIVES_DEVICE_STAGED_STAGED_H
#define COLLECTIVES_DEVICE_STAGED_STAGED_H

#include "collectives/device/group/device_group.h"

extern const struct device_path staged_path;

#endif
