/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_alloc.c - to get, to free and to ask about the fake driver's memory. */
#include "tests/fake/libcuda.h"

#include <stdlib.h>
#include <string.h>

/* As the real one waits for whatever stands still. */
static void wait_for_words(void)
{
    const int keeps = fake_keep_driver();

    fake_wait_for_words();
    fake_release_driver(keeps);
}

/* Of the context, as the real one may; so this one does. */
static CUresult wait_for_all(CUcontext context)
{
    const int keeps = fake_keep_driver();
    const CUresult result = fake_wait_for_all(context);

    fake_release_driver(keeps);
    return result;
}

static CUresult allocate(const char *function, enum block_kind kind, CUdeviceptr *at, size_t bytes)
{
    struct block *block;
    CUcontext context;
    CUresult result = fake_begin_in(function, &context);

    if (result == CUDA_SUCCESS && bytes == 0)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = block_create(context, kind, bytes, -1, 0, &block);
    if (result == CUDA_SUCCESS)
        *at = block->base;
    return result;
}

CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
    if (fake_setting_is("FAKE_CUDA_ALLOC", "waits"))
        wait_for_words();
    return allocate(__func__, PLAIN, at, bytes);
}

CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream stream)
{
    CUresult result = fake_begin_stream(__func__, &stream);

    if (result == CUDA_SUCCESS)
        result = capture_asks(stream); /* no graph here allocates */
    /* It is there even before its turn in the stream comes. */
    return result == CUDA_SUCCESS ? allocate(__func__, POOLED, at, bytes) : result;
}

CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(__func__, MANAGED, at, bytes);
}

CUresult cuMemAllocHost(void **at, size_t bytes)
{
    CUdeviceptr address;
    const CUresult result = allocate(__func__, PINNED, &address, bytes);

    if (result == CUDA_SUCCESS)
        *at = (void *)(uintptr_t)address;
    return result;
}

CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned flags)
{
    CUcontext context;
    CUresult result = fake_begin_in(__func__, &context);

    if (result == CUDA_SUCCESS)
        result = wait_for_all(context);
    if (result != CUDA_SUCCESS)
        return result;
    /* Other contexts use it; without the second a GPU has no address for the words in it. */
    if (bytes == 0 || flags != (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))
        return CUDA_ERROR_INVALID_VALUE;
    return block_take_in(context, (CUdeviceptr)(uintptr_t)memory, bytes);
}

/* The real one waits for the whole device first; who relies on that waits too long, so here what is
 * still used must not be freed.  kind: PLAIN stands for all of the device. */
static CUresult release(const char *function, CUdeviceptr at, enum block_kind kind)
{
    const CUresult result = fake_begin(function);
    struct block *block = block_of(at);

    if (result != CUDA_SUCCESS)
        return result;
    if (kind == PLAIN)
        wait_for_words();
    if (!block || block->base != at
        || (kind == PLAIN ? block->kind > MANAGED : block->kind != kind))
        return CUDA_ERROR_INVALID_VALUE;
    block_destroy(block);
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr at)
{
    return release(__func__, at, PLAIN);
}

CUresult cuMemFreeHost(void *at)
{
    return release(__func__, (CUdeviceptr)(uintptr_t)at, PINNED);
}

CUresult cuMemHostUnregister(void *at)
{
    CUcontext context;
    CUresult result = fake_begin_in(__func__, &context);

    if (result == CUDA_SUCCESS)
        result = wait_for_all(context);
    return result == CUDA_SUCCESS ? release(__func__, (CUdeviceptr)(uintptr_t)at, TAKEN_IN)
                                  : result;
}

/* Without a block: of a pointer that the driver has never heard of. */
static CUresult tell(const struct block *block, CUpointer_attribute attribute, void *value)
{
    static const struct block nobodys = { .kind = POOLED, .device = CU_DEVICE_INVALID };
    const struct block *of = block ? block : &nobodys;

    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = of->kind == POOLED ? NULL : of->context;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = !block                                       ? 0
                             : of->kind == PINNED || of->kind == TAKEN_IN ? CU_MEMORYTYPE_HOST
                                                                          : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)value = of->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = of->kind == MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = of->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)value = of->kind == PLAIN;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)value = of->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = of->bytes;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr at)
{
    const CUresult result = fake_begin(__func__);
    const struct block *block = block_of(at);

    if (result != CUDA_SUCCESS)
        return result;
    return block ? tell(block, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

/* What one attribute says is an error of one pointer; of several it is zeros. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *which, void **into,
                                CUdeviceptr at)
{
    CUresult result = fake_begin(__func__);
    const struct block *block = block_of(at);

    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = tell(block, which[i], into[i]);
    return result;
}
