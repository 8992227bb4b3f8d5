/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - tables of the algorithms of each operation, and of the paths of calls on device
 * memory.  All algorithms and paths lie in layers below this file. */
#include "collectives/core/algorithms.h"
#include "collectives/device/device_call.h"
#include "collectives/registry.h"

/* The algorithms of each operation.  A v form has those of the plain form. */
static const struct algorithm *const *const algorithms[OPERATION_COUNT] = {
    [OPERATION_BROADCAST] = broadcast_algorithms,
    [OPERATION_REDUCE] = reduce_algorithms,
    [OPERATION_ALL_REDUCE] = all_reduce_algorithms,
    [OPERATION_REDUCE_SCATTER] = reduce_scatter_algorithms,
    [OPERATION_REDUCE_SCATTER_V] = reduce_scatter_algorithms,
    [OPERATION_GATHER] = gather_algorithms,
    [OPERATION_GATHER_V] = gather_algorithms,
    [OPERATION_ALL_GATHER] = all_gather_algorithms,
    [OPERATION_ALL_GATHER_V] = all_gather_algorithms,
    [OPERATION_SCATTER] = scatter_algorithms,
    [OPERATION_SCATTER_V] = scatter_algorithms,
    [OPERATION_ALL_TO_ALL] = all_to_all_algorithms,
    [OPERATION_ALL_TO_ALL_V] = all_to_all_algorithms,
    [OPERATION_BARRIER] = barrier_algorithms,
    [OPERATION_MONITORED_BARRIER] = monitored_barrier_algorithms,
    [OPERATION_NEW_GROUP] = all_gather_algorithms,
    [OPERATION_SPLIT_GROUP] = all_gather_algorithms,
    [OPERATION_SHOULD_STOP] = all_reduce_algorithms,
    [OPERATION_MEM_ALLOC] = all_gather_algorithms,
    [OPERATION_MEM_FREE] = all_gather_algorithms,
    [OPERATION_NCCL_COMM] = nccl_comm_algorithms,
};

const struct algorithm *const *operation_algorithms(int operation)
{
    return algorithms[operation];
}

const char *ct_algorithm(const char *operation, int i)
{
    const struct algorithm *const *rows;
    const int number = operation ? collective_named(operation) : -1;

    if (number < 0 || i < 0)
        return NULL;
    rows = operation_algorithms(number);
    for (int row = 0; row < i && rows[row]; row++)
        if (!rows[row + 1])
            return NULL;
    return rows[i] ? rows[i]->name : NULL;
}

const char *device_path_name(enum path_number path)
{
    return device_paths[path]->name;
}
