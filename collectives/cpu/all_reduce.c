/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce.c - ct_all_reduce and the table of its algorithms, best first.  The rows shm_... need
 * a group on one host, the rows nodes... several hosts. */
#include "collectives/core/call.h"

extern const struct algorithm all_reduce_shm_one_shot, all_reduce_shm_two_shot, all_reduce_nodes,
    all_reduce_nodes_doubling, all_reduce_nodes_halving, all_reduce_recursive_doubling,
    all_reduce_one_shot, all_reduce_ring, all_reduce_two_shot;

const struct algorithm *const all_reduce_algorithms[] = {
    &all_reduce_shm_one_shot,  &all_reduce_shm_two_shot,
    &all_reduce_nodes,         &all_reduce_nodes_doubling,
    &all_reduce_nodes_halving, &all_reduce_recursive_doubling,
    &all_reduce_one_shot,      &all_reduce_ring,
    &all_reduce_two_shot,      NULL
};

ct_status ct_all_reduce(ct_group *group, const void *send, void *recv, size_t count, ct_dtype dtype,
                        ct_op op, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_ALL_REDUCE,
        .dtype = dtype,
        .op = op,
        .root = NONE,
        .count = count,
        .send = { .base = (void *)(uintptr_t)send, .count = count, .blocks = 1 },
        .recv = { .base = recv, .count = count, .blocks = 1 },
        .in_place = IN_PLACE_WHOLE,
    };

    return call_run(&request, work);
}
