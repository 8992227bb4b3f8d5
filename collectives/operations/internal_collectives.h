/* SPDX-License-Identifier: Apache-2.0 */
/* internal_collectives.h - collectives that the library makes within calls like ct_new_group().
 *
 * They have the name and the return address of the program's own call, so ctctl and messages show
 * ct_new_group() in the program, not a gather in libct. */
#ifndef COLLECTIVES_OPERATIONS_INTERNAL_COLLECTIVES_H
#define COLLECTIVES_OPERATIONS_INTERNAL_COLLECTIVES_H

#include "runtime/group/group.h"

/* all: [size][count], what each rank passed as `mine`. */
ct_status agree_gather(ct_group *group, int operation, const void *mine, void *all, size_t count,
                       ct_dtype dtype, const void *caller);
/* *largest: of what the ranks passed as `mine`. */
ct_status agree_max(ct_group *group, int operation, int32_t mine, int32_t *largest,
                    const void *caller);

#endif
