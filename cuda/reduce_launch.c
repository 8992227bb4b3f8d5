/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_launch.c - enqueues folds, including copies, on a GPU.
 *
 * The kernels are embedded in libct (kernels/embed.S) and loaded when a GPU is first used
 * (device.c).  If that fails, each fold tries again to load them and returns the error.  The error
 * is CT_ERR_UNSUPPORTED if libct has no kernels for this GPU or for this driver. */
#include <stdlib.h>

#include "cuda/device_internal.h"
#include "cuda/launch_plan.h"
#include "runtime/util/error.h"

extern const unsigned char cuda_kernels[];
extern const uint64_t cuda_kernels_bytes; /* 0 if libct was built without nvcc */

/* Returns 1 if this result means that the driver can never run the kernels on this GPU, else 0. */
static int are_not_for_it(CUresult result)
{
    return result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_IMAGE
           || result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION
           || result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND
           || result == CUDA_ERROR_JIT_COMPILATION_DISABLED;
}

/* Fails with an error message that says why libct has no kernels for this GPU.  The driver's own
 * text would not say that the driver is too old. */
static ct_status has_none(const struct device *gpu)
{
    int version = 0;

    gpu->driver->cuDriverGetVersion(&version);
    if (version > 0 && version < CUDA_VERSION)
        return ct_fail(CT_ERR_UNSUPPORTED,
                       "the driver supports CUDA %d.%d, but libct's kernels were built with CUDA "
                       "%d.%d and may need a driver as new as that",
                       version / 1000, version % 1000 / 10, CUDA_VERSION / 1000,
                       CUDA_VERSION % 1000 / 10);
    return ct_fail(CT_ERR_UNSUPPORTED, "this libct has no kernels for GPU %d", gpu->device);
}

/* Loads the module of kernels.  After a failure the next call tries again, unless the driver can
 * never run the kernels on this GPU. */
static ct_status load_module(struct device *gpu)
{
    CUmodule module;
    CUresult result;

    if (cuda_kernels_bytes == 0)
        return ct_fail(CT_ERR_UNSUPPORTED, "this libct was built without nvcc: it has no kernels");
    if (gpu->has_no_kernels) /* in another try the driver might wait for all running work */
        return has_none(gpu);
    result = gpu->driver->cuModuleLoadData(&module, cuda_kernels);
    if (result == CUDA_SUCCESS)
        gpu->module = module;
    gpu->has_no_kernels = are_not_for_it(result);
    return gpu->has_no_kernels ? has_none(gpu)
                               : driver_says(gpu->driver, result, "loading libct's kernels");
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

struct target {
    struct device *gpu;
    CUstream stream;
};

static ct_status reduce_enqueue(const struct launch *launch, void *to)
{
    const struct target *target = to;
    const struct device *gpu = target->gpu;
    void *parameter[] = { (void *)&launch->args };

    return driver_says(gpu->driver,
                       gpu->driver->cuLaunchKernel(gpu->kernels[launch->kernel], launch->blocks, 1,
                                                   1, launch->threads, 1, 1, 0, target->stream,
                                                   parameter, NULL),
                       "launching kernel %s", kernel_name(launch->kernel));
}

ct_status cuda_fold(struct device *gpu, const struct in_stream *in, const struct fold *fold,
                    const void *const *scalars, const struct fold_part *parts, int count)
{
    struct target target = { gpu, in ? (CUstream)in->stream : gpu->stream };
    CUdeviceptr called_off = 0;
    ct_status status = cuda_gpu_use(gpu);

    if (status == CT_OK && in && in->called_off)
        status = gpu_address_of(gpu, in->called_off, &called_off);
    if (status == CT_OK)
        status = gpu_load_kernels(gpu);
    return status == CT_OK ? fold_plan(fold, scalars, parts, count, gpu->processors, called_off,
                                       reduce_enqueue, &target)
                           : status;
}
