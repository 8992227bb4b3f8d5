/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLECTIVES_CORE_REGISTRY_H
#define COLLECTIVES_CORE_REGISTRY_H

#include "collectives/core/call.h"

/* Each operation's algorithms, best first; defined in its entry file. */
extern const struct algorithm *const broadcast_algorithms[];
extern const struct algorithm *const reduce_algorithms[];
extern const struct algorithm *const all_reduce_algorithms[];
extern const struct algorithm *const reduce_scatter_algorithms[];
extern const struct algorithm *const gather_algorithms[];
extern const struct algorithm *const all_gather_algorithms[];
extern const struct algorithm *const scatter_algorithms[];
extern const struct algorithm *const all_to_all_algorithms[];
extern const struct algorithm *const barrier_algorithms[];
extern const struct algorithm *const monitored_barrier_algorithms[];
extern const struct algorithm *const nccl_comm_algorithms[];

/* collectives/registry.c has one row for each: operations, executors, paths. */

enum { HOST_EXECUTOR, DEVICE_EXECUTOR, EXECUTORS };
extern const struct executor *const executors[EXECUTORS];
extern const struct executor host_executor; /* call.c */

/* What a path of device memory is called, for CT_DEVICE, CT_<OPERATION> and messages. */
const char *device_path_name(enum path_number path);

/* Do all ranks know the sizes of all blocks?  Rounds over slots need it. */
static inline int sizes_are_agreed(const struct call *c)
{
    return operation_sizes_are_agreed(c->signature.operation);
}

/* fits() of every algorithm over shared slots. */
static inline int fits_shm(const struct call *c)
{
    return c->group->flat && c->group->size <= FLAT_MOST && sizes_are_agreed(c);
}

#endif
