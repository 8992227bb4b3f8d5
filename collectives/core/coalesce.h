/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLECTIVES_CORE_COALESCE_H
#define COLLECTIVES_CORE_COALESCE_H

#include "collectives/core/call.h"

/* call_run() in a group that collects calls: checked, and kept for ct_coalesce_end(). */
ct_status coalesce_add(const struct request_of_call *request, ct_group *group, struct place place,
                       int has_work);

/* CT_ERR_INVALID: one of calls[first] and the count - 1 behind it writes what another of them reads
 * or writes. */
ct_status coalesce_check_apart(const struct call *calls, int first, int count);

/* Calls that were collected are not made: the group ends. */
void coalesce_drop(ct_group *group);

#endif
