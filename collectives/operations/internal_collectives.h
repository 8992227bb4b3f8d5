/* SPDX-License-Identifier: Apache-2.0 */
/* internal_collectives.h - collectives that the library runs within calls like ct_new_group().
 *
 * An internal collective has the operation and the return address of the program's own call.  So
 * ctctl and messages show ct_new_group() in the program, not a gather in libct. */
#ifndef COLLECTIVES_OPERATIONS_INTERNAL_COLLECTIVES_H
#define COLLECTIVES_OPERATIONS_INTERNAL_COLLECTIVES_H

#include "runtime/group/group.h"

/* Gathers `count` elements from each rank's `mine` to `all`, which is [size][count].  caller: the
 * return address of the public call. */
ct_status agree_gather(ct_group *group, int operation, const void *mine, void *all, size_t count,
                       ct_dtype dtype, const void *caller);
/* Sets *largest to the maximum of `mine` over all ranks. */
ct_status agree_max(ct_group *group, int operation, int32_t mine, int32_t *largest,
                    const void *caller);

#endif
