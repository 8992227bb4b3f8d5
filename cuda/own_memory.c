/* SPDX-License-Identifier: Apache-2.0 */
/* own_memory.c - GPU memory of libct's own.
 *
 * To free some waits for all that runs, so it would wait for a stream that stands still for the
 * very call which frees.  What can't be freed now is, when some more is allocated or freed; what is
 * left at the end the driver frees with the process. */
#include <stdlib.h>

#include "cuda/gpu_parts.h"

struct leftover {
    struct leftover *next;
    CUdeviceptr at;
};

/* The lock is held. */
static void free_leftovers(struct device *gpu)
{
    while (gpu->leftovers && !gpu_holds(gpu)) {
        struct leftover *left = gpu->leftovers;

        gpu->leftovers = left->next;
        gpu->driver->cuMemFree(left->at);
        free(left);
    }
}

ct_status cuda_alloc(struct device *gpu, size_t bytes, void **memory)
{
    ct_status status = cuda_gpu_use(gpu);
    CUdeviceptr at = 0;

    if (status != CT_OK)
        return status;
    pthread_mutex_lock(&gpu->lock);
    free_leftovers(gpu);
    pthread_mutex_unlock(&gpu->lock);
    status = driver_says(gpu->driver, gpu->driver->cuMemAlloc(&at, bytes),
                         "allocating %zu bytes on the GPU", bytes);
    if (status == CT_OK)
        *memory = (void *)(uintptr_t)at;
    return status;
}

void cuda_release(struct device *gpu, void *memory)
{
    struct leftover *left = malloc(sizeof *left); /* without it the memory stays */

    if (!memory || !left || cuda_gpu_use(gpu) != CT_OK) {
        free(left);
        return;
    }
    pthread_mutex_lock(&gpu->lock);
    *left = (struct leftover){ gpu->leftovers, (CUdeviceptr)(uintptr_t)memory };
    gpu->leftovers = left;
    free_leftovers(gpu);
    pthread_mutex_unlock(&gpu->lock);
}
