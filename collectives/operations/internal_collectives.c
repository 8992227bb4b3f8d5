/* SPDX-License-Identifier: Apache-2.0 */
/* internal_collectives.c - the collectives that ct_new_group() and similar calls run inside
 * (group_extension.h). */
#include "collectives/operations/internal_collectives.h"

#include "collectives/core/algorithms.h"
#include "collectives/core/call.h"

ct_status agree_gather(ct_group *group, int operation, const void *mine, void *all, size_t count,
                       ct_dtype dtype, const void *caller)
{
    const struct request_of_call request = {
        .group = group,
        .caller = caller,
        .operation = operation,
        .algorithms = all_gather_algorithms,
        .dtype = dtype,
        .op = NONE,
        .root = NONE,
        .count = count,
        .send = { .base = (void *)(uintptr_t)mine, .count = count, .blocks = 1 },
        .recv = { .base = all, .count = count, .blocks = group->size },
        .in_place = IN_PLACE_OWN_RECV,
    };

    return call_run(&request, NULL);
}

ct_status agree_max(ct_group *group, int operation, int32_t mine, int32_t *largest,
                    const void *caller)
{
    const struct request_of_call request = {
        .group = group,
        .caller = caller,
        .operation = operation,
        .algorithms = all_reduce_algorithms,
        .dtype = CT_I32,
        .op = CT_MAX,
        .root = NONE,
        .count = 1,
        .send = { .base = &mine, .count = 1, .blocks = 1 },
        .recv = { .base = largest, .count = 1, .blocks = 1 },
    };

    return call_run(&request, NULL);
}
