/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c - bytes between a GPU and the host, on libct's own stream.
 *
 * The host's memory need not be pinned; the driver then copies it once more. */
#include "cuda/gpu_parts.h"

/* Also where the copy was refused: the buffers are the caller's again. */
static ct_status done(struct device *gpu, CUresult result, size_t bytes, const char *way)
{
    const CUresult finished = gpu->driver->cuStreamSynchronize(gpu->stream);

    return driver_says(gpu->driver, result != CUDA_SUCCESS ? result : finished,
                       "copying %zu bytes %s", bytes, way);
}

ct_status cuda_to_host(struct device *gpu, void *to, const void *from, size_t bytes)
{
    const ct_status status = cuda_gpu_use(gpu);

    if (status != CT_OK || bytes == 0)
        return status;
    return done(
        gpu, gpu->driver->cuMemcpyDtoHAsync(to, (CUdeviceptr)(uintptr_t)from, bytes, gpu->stream),
        bytes, "from the GPU");
}

ct_status cuda_from_host(struct device *gpu, void *to, const void *from, size_t bytes)
{
    const ct_status status = cuda_gpu_use(gpu);

    if (status != CT_OK || bytes == 0)
        return status;
    return done(
        gpu, gpu->driver->cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)to, from, bytes, gpu->stream),
        bytes, "to the GPU");
}

ct_status cuda_pin(struct device *gpu, void *memory, size_t bytes)
{
    const ct_status status = cuda_gpu_use(gpu);

    if (status != CT_OK)
        return status;
    return driver_says(gpu->driver,
                       gpu->driver->cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE),
                       "pinning %zu bytes of host memory", bytes);
}

void cuda_unpin(struct device *gpu, void *memory)
{
    if (cuda_gpu_use(gpu) == CT_OK)
        gpu->driver->cuMemHostUnregister(memory);
}
