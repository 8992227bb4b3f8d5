/* SPDX-License-Identifier: Apache-2.0 */
/* scratch_pool.c - a pool of GPU memory for libct itself, and the test pattern, which is in that
 * memory.
 *
 * The memory is never freed.  Another rank may still have it mapped, and CUDA does not define what
 * happens then.  Also, the driver waits for all running work before it frees memory.  A stream at a
 * gate may be part of that work.  The stream may wait for the very call that frees the memory or,
 * if ranks are threads, for another rank's call.  So the pool keeps a released block for the next
 * caller of any group.
 *
 * Sizes are powers of two.  The pool has as many blocks of a size as were in use at the same time.
 *
 * The test pattern is created when it is first needed, and is never changed: another rank may be
 * reading the pattern for its peer-access check. */
#include <stdlib.h>

#include "cuda/device_internal.h"
#include "runtime/device/peer_access_check.h"
#include "runtime/util/error.h"

enum { LEAST = 64 << 10 };

struct pool_block {
    struct pool_block *next;
    CUdeviceptr at;
    size_t bytes;
    int is_used;
};

static size_t pool_size_for(size_t bytes)
{
    size_t size = LEAST;

    while (size < bytes && size <= SIZE_MAX / 2)
        size *= 2;
    return size;
}

static struct pool_block *pool_take_idle(struct device *gpu, size_t bytes)
{
    struct pool_block *block;

    pthread_mutex_lock(&gpu->lock);
    block = gpu->scratch_pool;
    while (block && (block->is_used || block->bytes != bytes))
        block = block->next;
    if (block)
        block->is_used = 1;
    pthread_mutex_unlock(&gpu->lock);
    return block;
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

static ct_status get_more(struct device *gpu, size_t bytes, int may_wait, struct pool_block **made)
{
    struct pool_block *block = malloc(sizeof *block);
    CUdeviceptr at = 0;
    ct_status status;

    if (!block)
        return ct_fail(CT_ERR_NOMEM, "no memory to note some of the GPU's");
    status = ask_driver(gpu, bytes, may_wait, &at);
    if (status != CT_OK) {
        free(block);
        return status;
    }
    pthread_mutex_lock(&gpu->lock);
    *block = (struct pool_block){ gpu->scratch_pool, at, bytes, 1 };
    gpu->scratch_pool = block;
    pthread_mutex_unlock(&gpu->lock);
    *made = block;
    return CT_OK;
}

static ct_status pool_alloc(struct device *gpu, size_t bytes, int may_wait, void **memory)
{
    const size_t size = pool_size_for(bytes);
    ct_status status = cuda_gpu_use(gpu);
    struct pool_block *block = status == CT_OK ? pool_take_idle(gpu, size) : NULL;

    if (status == CT_OK && !block)
        status = get_more(gpu, size, may_wait, &block);
    if (status == CT_OK)
        *memory = (void *)(uintptr_t)block->at;
    return status;
}

ct_status cuda_alloc(struct device *gpu, size_t bytes, void **memory)
{
    return pool_alloc(gpu, bytes, 1, memory);
}

ct_status cuda_alloc_now(struct device *gpu, size_t bytes, void **memory)
{
    return pool_alloc(gpu, bytes, 0, memory);
}

void cuda_release(struct device *gpu, void *memory)
{
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)memory;

    pthread_mutex_lock(&gpu->lock);
    for (struct pool_block *block = gpu->scratch_pool; block; block = block->next)
        if (block->at == at)
            block->is_used = 0;
    pthread_mutex_unlock(&gpu->lock);
}

/* ---- The test pattern ---------------------------------------------------------------- */

/* held while a test pattern is created */
static pthread_mutex_t pattern_lock = PTHREAD_MUTEX_INITIALIZER;

ct_status cuda_test_pattern(struct device *gpu, void **memory)
{
    unsigned char id[16], bytes[TEST_PATTERN_BYTES];
    ct_status status = CT_OK;
    void *made = NULL;

    pthread_mutex_lock(&pattern_lock);
    if (!gpu->test_pattern) {
        status = cuda_alloc_now(gpu, TEST_PATTERN_BYTES, &made);
        cuda_gpu_id(gpu, id);
        test_pattern_fill(id, bytes);
        if (status == CT_OK
            && (status = cuda_from_host(gpu, made, bytes, TEST_PATTERN_BYTES)) == CT_OK)
            gpu->test_pattern = made;
        else
            cuda_release(gpu, made);
    }
    *memory = gpu->test_pattern;
    pthread_mutex_unlock(&pattern_lock);
    return status;
}
