/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLECTIVES_CORE_CHECK_ARGUMENTS_H
#define COLLECTIVES_CORE_CHECK_ARGUMENTS_H

#include "collectives/core/call.h"

/* Resolves request->group and refuses whatever ct.h says is refused, with a
 * sentence; nothing was changed then.  *place: where the buffers are. */
ct_status check_call(const struct request_of_call *request, ct_group **group, struct place *place);

#endif
