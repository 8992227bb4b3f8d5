/* SPDX-License-Identifier: Apache-2.0 */
/* ipc_export.c - exports GPU memory as a handle with which another process maps it (ipc_import.c).
 *
 * cuIpcGetMemHandle() returns 64 bytes that name the allocation in which a buffer lies.  Our handle
 * also contains the allocation's address and id.  No other allocation of this process ever gets the
 * same id.  So a process that has mapped an allocation notices when another allocation has replaced
 * it. */
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cuda/device_internal.h"
#include "runtime/util/clock.h"
#include "runtime/util/error.h"

_Static_assert(sizeof(CUipcMemHandle) == sizeof((struct device_handle *)NULL)->ipc,
               "a handle of the driver's travels whole");

/* Returns a random number of this process, never 0.  The pid does not suffice, since processes in
 * other containers may have the same pid. */
static uint64_t process_mark(void)
{
    static _Atomic uint64_t mark;
    uint64_t known = atomic_load(&mark), drawn;

    if (known)
        return known;
    if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        drawn = (uint64_t)clock_ns(CLOCK_REALTIME);
    drawn |= 1;
    return atomic_compare_exchange_strong(&mark, &known, drawn) ? drawn : known;
}

int gpu_is_ours(const struct device_handle *handle)
{
    return handle->process == process_mark() && handle->pid == (int32_t)getpid();
}

static ct_status export_refuse(const void *pointer, const char *why)
{
    return ct_fail(CT_ERR_UNSUPPORTED,
                   "the GPU memory at %p can't be mapped by other processes: %s; memory of "
                   "cudaMalloc() or cuMemAlloc() can",
                   pointer, why);
}

/* Finds the allocation of the pointer, checks that it can be exported, and sets base, bytes, id and
 * offset of the handle. */
static ct_status export_look_up(const struct driver *driver, const void *pointer, size_t bytes,
                                struct device_handle *handle)
{
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)pointer;
    CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                    CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                    CU_POINTER_ATTRIBUTE_RANGE_SIZE };
    unsigned managed = 0, capable = 0;
    unsigned long long id = 0;
    CUdeviceptr base = 0;
    size_t size = 0;
    void *into[] = { &managed, &capable, &id, &base, &size };
    CUresult result;

    result = driver->cuPointerGetAttributes(sizeof which / sizeof which[0], which, into, at);
    if (result != CUDA_SUCCESS)
        return driver_says(driver, result, "asking about the GPU memory at %p", pointer);
    if (managed)
        return export_refuse(pointer, "it is managed memory");
    if (!capable && size > 0)
        return export_refuse(pointer, "it is of a memory pool or of cuMemCreate()");
    if (at - base > size || bytes > size - (at - base))
        return ct_fail(CT_ERR_INVALID,
                       "%zu bytes at %p are more than the GPU memory that was allocated there: %zu",
                       bytes, pointer, size > at - base ? size - (size_t)(at - base) : 0);
    handle->base = base;
    handle->bytes = size;
    handle->id = id;
    handle->offset = at - base;
    return CT_OK;
}

int cuda_is_exportable(struct device *gpu, const void *pointer)
{
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)pointer;
    unsigned capable = 0;

    return gpu->driver->cuPointerGetAttribute(&capable,
                                              CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at)
               == CUDA_SUCCESS
           && capable;
}

/* Sets handle->ipc to the driver's handle of the allocation.  Calls the driver only if the
 * allocation is not among the last EXPORTS_KEPT exported ones.  The caller holds gpu->lock. */
static ct_status make_handle(struct device *gpu, struct device_handle *handle)
{
    struct exported *made = NULL;
    CUresult result;

    for (unsigned i = 0; i < EXPORTS_KEPT && i < gpu->exports_made && !made; i++)
        if (gpu->exports[i].id == handle->id)
            made = &gpu->exports[i];
    if (!made) {
        CUipcMemHandle ipc;

        result = gpu->driver->cuIpcGetMemHandle(&ipc, (CUdeviceptr)handle->base);
        if (result != CUDA_SUCCESS) {
            const ct_status status =
                driver_says(gpu->driver, result, "letting other processes map GPU memory");

            return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_VALUE
                       ? CT_ERR_UNSUPPORTED
                       : status;
        }
        made = &gpu->exports[gpu->exports_made++ % EXPORTS_KEPT];
        made->id = handle->id;
        made->ipc = ipc;
    }
    memcpy(handle->ipc, &made->ipc, sizeof handle->ipc);
    return CT_OK;
}

ct_status cuda_export(struct device *gpu, const void *pointer, size_t bytes,
                      struct device_handle *handle)
{
    struct device_handle made = { .pid = (int32_t)getpid(),
                                  .process = process_mark(),
                                  .number = gpu->device };
    ct_status status = cuda_gpu_use(gpu);

    if (status == CT_OK)
        status = export_look_up(gpu->driver, pointer, bytes, &made);
    if (status != CT_OK)
        return status;
    pthread_mutex_lock(&gpu->lock);
    status = make_handle(gpu, &made);
    pthread_mutex_unlock(&gpu->lock);
    if (status == CT_OK)
        *handle = made;
    return status;
}
