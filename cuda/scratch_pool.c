/* SPDX-License-Identifier: Apache-2.0 */
/* scratch_pool.c - GPU memory of libct's own.
 *
 * None is ever freed.  Another rank may still have it mapped, of which CUDA leaves open what
 * becomes then; and to free waits for all that runs: for a stream that stands still for the very
 * call which frees, or, where ranks are threads, for another rank's.  So what is released is kept
 * for who asks next, of whatever group.
 *
 * Sizes are powers of two: of each size there is as much as was in use at one time. */
#include <stdlib.h>

#include "cuda/device_internal.h"
#include "runtime/util/error.h"

enum { LEAST = 64 << 10 };

struct own_memory {
    struct own_memory *next;
    CUdeviceptr at;
    size_t bytes;
    int is_used;
};

static size_t size_for(size_t bytes)
{
    size_t size = LEAST;

    while (size < bytes && size <= SIZE_MAX / 2)
        size *= 2;
    return size;
}

static struct own_memory *take_idle(struct device *gpu, size_t bytes)
{
    struct own_memory *own;

    pthread_mutex_lock(&gpu->lock);
    own = gpu->own_memory;
    while (own && (own->is_used || own->bytes != bytes))
        own = own->next;
    if (own)
        own->is_used = 1;
    pthread_mutex_unlock(&gpu->lock);
    return own;
}

static ct_status ask_driver(struct device *gpu, size_t bytes, int may_wait, CUdeviceptr *at)
{
    ct_status status;

    if (!may_wait && !gpu_may_wait())
        return gpu_refuse_to_wait();
    status = driver_says(gpu->driver, gpu->driver->cuMemAlloc(at, bytes),
                         "allocating %zu bytes on the GPU", bytes);
    if (!may_wait)
        gpu_has_waited();
    return status;
}

static ct_status get_more(struct device *gpu, size_t bytes, int may_wait, struct own_memory **made)
{
    struct own_memory *own = malloc(sizeof *own);
    CUdeviceptr at = 0;
    ct_status status;

    if (!own)
        return ct_fail(CT_ERR_NOMEM, "no memory to note some of the GPU's");
    status = ask_driver(gpu, bytes, may_wait, &at);
    if (status != CT_OK) {
        free(own);
        return status;
    }
    pthread_mutex_lock(&gpu->lock);
    *own = (struct own_memory){ gpu->own_memory, at, bytes, 1 };
    gpu->own_memory = own;
    pthread_mutex_unlock(&gpu->lock);
    *made = own;
    return CT_OK;
}

static ct_status alloc(struct device *gpu, size_t bytes, int may_wait, void **memory)
{
    const size_t size = size_for(bytes);
    ct_status status = cuda_gpu_use(gpu);
    struct own_memory *own = status == CT_OK ? take_idle(gpu, size) : NULL;

    if (status == CT_OK && !own)
        status = get_more(gpu, size, may_wait, &own);
    if (status == CT_OK)
        *memory = (void *)(uintptr_t)own->at;
    return status;
}

ct_status cuda_alloc(struct device *gpu, size_t bytes, void **memory)
{
    return alloc(gpu, bytes, 1, memory);
}

ct_status cuda_alloc_now(struct device *gpu, size_t bytes, void **memory)
{
    return alloc(gpu, bytes, 0, memory);
}

void cuda_release(struct device *gpu, void *memory)
{
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)memory;

    pthread_mutex_lock(&gpu->lock);
    for (struct own_memory *own = gpu->own_memory; own; own = own->next)
        if (own->at == at)
            own->is_used = 0;
    pthread_mutex_unlock(&gpu->lock);
}
