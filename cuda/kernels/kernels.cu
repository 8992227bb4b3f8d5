/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.cu - the kernels.  Each row of kernel_args.h becomes a function that calls its body. */
#include "cuda/kernels/kernel_bodies.h"

/* `blocks` is the largest number of blocks that can run on a multiprocessor at a time while the
 * registers hold what the threads have in flight.  Without this number ptxas guesses a number, and
 * for some kernels it spills registers to reach that number. */
#define KERNEL(name, blocks)                                            \
    extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, blocks) \
        name(const __grid_constant__ struct fold_args args)

static __device__ struct kernel_place here(void)
{
    const struct kernel_place place = { blockIdx.x, gridDim.x, threadIdx.x, blockDim.x };

    return place;
}

#define FEW_KERNEL(name, NAME, sources, unrolled, exchanges)                   \
    KERNEL(name, 2)                                                            \
    {                                                                          \
        fold_few_body<NAME##_sum, sources, unrolled, exchanges>(args, here()); \
    }
FEW_KERNELS(FEW_KERNEL)

#define FOLD_KERNEL(NAME, name, ...)                      \
    KERNEL(fold_##name, 1)                                \
    {                                                     \
        if (args.divisor > 0)                             \
            fold_many_body<NAME##_average>(args, here()); \
        else                                              \
            fold_many_body<NAME##_form>(args, here());    \
    }
DTYPES(FOLD_KERNEL)
