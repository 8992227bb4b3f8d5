/* SPDX-License-Identifier: Apache-2.0 */
/* launch_plan.h - plans the kernel launches that do folds, and their arguments.  The functions do
 * not call the driver, so that tests can run the launches on the host. */
#ifndef CUDA_LAUNCH_PLAN_H
#define CUDA_LAUNCH_PLAN_H

#include <stddef.h>

#include "cuda/kernels/kernel_args.h"
#include "include/ct.h"
#include "runtime/device/memory_kind.h"
#include "runtime/reduction/combine.h"

#define NUMBER_FEW(name, ...) KERNEL_##name,
#define NUMBER_FOLD(NAME, ...) KERNEL_FOLD_##NAME,
enum kernel { FEW_KERNELS(NUMBER_FEW) DTYPES(NUMBER_FOLD) KERNEL_COUNT };
#undef NUMBER_FEW
#undef NUMBER_FOLD

/* Most blocks of a launch for each multiprocessor.  On an H200, 4 or 8 blocks take the same time
 * within 2 %, and 1 block takes 1.6 times as long for a large exchange. */
enum { BLOCKS_EACH = 2 };

struct launch {
    enum kernel kernel;
    unsigned blocks, threads;
    struct fold_args args;
};

/* Returns the kernel's name in kernels.cu. */
const char *kernel_name(enum kernel kernel);

/* Calls enqueue() for each launch, in order.  Together the launches do the work of
 * combine_fold_to() on each part.  If enqueue() fails, returns its status and ends.  `processors`
 * is the number of multiprocessors of the GPU; each of them gets BLOCKS_EACH blocks of a launch at
 * most.  struct space explains `scalars`, and struct fold_args explains `called_off`.  Returns
 * CT_ERR_UNSUPPORTED if the fold has more than FOLD_MANY sources, or more than FOLD_SCALED sources
 * with scalars. */
ct_status fold_plan(const struct fold *fold, const void *const *scalars,
                    const struct fold_part *parts, int count, int processors, uint64_t called_off,
                    ct_status (*enqueue)(const struct launch *launch, void *arg), void *arg);

#endif
