/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - copies between a GPU and the host, and from memory of other GPUs.  Blocking copies use
 * libct's own stream.  Background copies use one stream for each direction, since a GPU can copy in
 * both directions at once.
 *
 * If the host memory is not registered (pinned), the driver copies the data twice. */
#include "cuda/device_internal.h"
#include "runtime/util/error.h"

/* Waits until libct's own stream is idle, even if the driver refused the copy, so that no copy uses
 * the buffers any more.  Returns the error of the copy, or else of the wait. */
static ct_status copy_done(struct device *gpu, CUresult result, size_t bytes, const char *way)
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
    return copy_done(
        gpu, gpu->driver->cuMemcpyDtoHAsync(to, (CUdeviceptr)(uintptr_t)from, bytes, gpu->stream),
        bytes, "from the GPU");
}

ct_status cuda_from_host(struct device *gpu, void *to, const void *from, size_t bytes)
{
    const ct_status status = cuda_gpu_use(gpu);

    if (status != CT_OK || bytes == 0)
        return status;
    return copy_done(
        gpu, gpu->driver->cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)to, from, bytes, gpu->stream),
        bytes, "to the GPU");
}

static CUresult copy_enqueue(struct device *gpu, enum copy_way way, void *to, const void *from,
                             size_t bytes)
{
    const CUdeviceptr there = (CUdeviceptr)(uintptr_t)to, here = (CUdeviceptr)(uintptr_t)from;
    const CUstream stream = gpu->copies[way];

    switch (way) {
    case COPY_TO_HOST:
        return gpu->driver->cuMemcpyDtoHAsync(to, here, bytes, stream);
    case COPY_FROM_HOST:
        return gpu->driver->cuMemcpyHtoDAsync(there, from, bytes, stream);
    default:
        return gpu->driver->cuMemcpyDtoDAsync(there, here, bytes, stream);
    }
}

ct_status cuda_begin_copy(struct device *gpu, enum copy_way way, void *to, const void *from,
                          size_t bytes)
{
    static const char *const ways[COPY_WAYS] = { "from the GPU", "to the GPU", "between GPUs" };
    const ct_status status = cuda_gpu_use(gpu);

    if (status != CT_OK || bytes == 0)
        return status;
    return driver_says(gpu->driver, copy_enqueue(gpu, way, to, from, bytes),
                       "beginning to copy %zu bytes %s", bytes, ways[way]);
}

ct_status cuda_mark_copies(struct device *gpu, enum copy_way way, void **mark)
{
    const ct_status status = cuda_gpu_use(gpu);

    *mark = NULL;
    return status == CT_OK ? gpu_record(gpu, gpu->copies[way], mark) : status;
}

void cuda_end_copies(struct device *gpu)
{
    for (int way = 0; way < COPY_WAYS && cuda_gpu_use(gpu) == CT_OK; way++)
        gpu->driver->cuStreamSynchronize(gpu->copies[way]);
}
