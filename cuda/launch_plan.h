/* SPDX-License-Identifier: Apache-2.0 */
/* launch_plan.h - the kernel launches that do folds, and their arguments.  It does not call the
 * driver, so that tests run the launches on the host. */
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

/* Of a launch, for each multiprocessor, at most.  On an H200 4 or 8 give the same times within 2 %,
 * and 1 gives 1.6 times those of a large exchange. */
enum { BLOCKS_EACH = 2 };

struct launch {
    enum kernel kernel;
    unsigned blocks, threads;
    struct fold_args args;
};

/* Gives the kernel's name in kernels.cu. */
const char *kernel_name(enum kernel kernel);

/* Calls enqueue() for each launch, in order; together they do combine_fold_to()'s work on each
 * part. Ends with the first failure of enqueue().  processors: multiprocessors of the GPU,
 * each of which gets BLOCKS_EACH blocks at most.  scalars: as in struct space.  called_off: as in
 * struct fold_args.  CT_ERR_UNSUPPORTED: more than FOLD_MANY sources, or FOLD_SCALED. */
ct_status fold_plan(const struct fold *fold, const void *const *scalars,
                    const struct fold_part *parts, int count, int processors, uint64_t called_off,
                    ct_status (*enqueue)(const struct launch *launch, void *arg), void *arg);

#endif
