/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.c - ct_barrier and its algorithms. */
#include "collectives/core/registry.h"

extern const struct algorithm barrier_shm, barrier_nodes, barrier_dissemination;

const struct algorithm *const barrier_algorithms[] = { &barrier_shm, &barrier_nodes,
                                                       &barrier_dissemination, NULL };

ct_status ct_barrier(ct_group *group, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_BARRIER,
        .op = NONE,
        .root = NONE,
    };

    return call_run(&request, work);
}
