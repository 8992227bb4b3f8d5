/* SPDX-License-Identifier: Apache-2.0 */
/* combine.c - folds on a GPU, copies among them, enqueued on libct's own stream.
 *
 * The kernels lie in libct (kernels/embed.S).  They are loaded when a GPU is first used, all at
 * once (gpu.c says why then); where that failed, a fold tries again and says why not. */
#include <stdlib.h>

#include "cuda/fold_plan.h"
#include "cuda/gpu_parts.h"
#include "runtime/error.h"

extern const unsigned char cuda_kernels[];
extern const uint64_t cuda_kernels_bytes; /* 0: built without nvcc */

/* Each goes into gpu when it is whole; after a failure the next load goes on from there. */
static ct_status load_module(struct device *gpu)
{
    CUmodule module;
    CUresult result;

    if (cuda_kernels_bytes == 0)
        return ct_fail(CT_ERR_UNSUPPORTED, "this libct was built without nvcc: it has no kernels");
    result = gpu->driver->cuModuleLoadData(&module, cuda_kernels);
    if (result == CUDA_SUCCESS)
        gpu->module = module;
    return driver_says(gpu->driver, result, "loading libct's kernels");
}

static ct_status load_kernels(struct device *gpu)
{
    CUfunction *const kernels = calloc(KERNEL_COUNT, sizeof *kernels);
    CUresult result = CUDA_SUCCESS;

    if (!kernels)
        return ct_fail(CT_ERR_NOMEM, "no memory for the list of kernels");
    for (int k = 0; k < KERNEL_COUNT; k++) {
        result =
            gpu->driver->cuModuleGetFunction(&kernels[k], gpu->module, kernel_name((enum kernel)k));
        if (result != CUDA_SUCCESS) {
            free(kernels);
            return driver_says(gpu->driver, result, "finding kernel %s",
                               kernel_name((enum kernel)k));
        }
    }
    gpu->kernels = kernels;
    return CT_OK;
}

ct_status gpu_load_kernels(struct device *gpu)
{
    ct_status status = CT_OK;

    pthread_mutex_lock(&gpu->lock);
    if (!gpu->module)
        status = load_module(gpu);
    if (status == CT_OK && !gpu->kernels)
        status = load_kernels(gpu);
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

static ct_status enqueue(const struct launch *launch, void *to)
{
    struct device *const gpu = to;
    void *parameter[] = { (void *)&launch->args };

    return driver_says(gpu->driver,
                       gpu->driver->cuLaunchKernel(gpu->kernels[launch->kernel], launch->blocks, 1,
                                                   1, launch->threads, 1, 1, 0, gpu->stream,
                                                   parameter, NULL),
                       "launching kernel %s", kernel_name(launch->kernel));
}

ct_status cuda_fold(struct device *gpu, const struct fold *fold, const void *const *scalars,
                    const struct fold_part *parts, int count)
{
    ct_status status = cuda_gpu_use(gpu);

    if (status == CT_OK)
        status = gpu_load_kernels(gpu);
    return status == CT_OK ? fold_plan(fold, scalars, parts, count, gpu->processors, enqueue, gpu)
                           : status;
}
