/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the GPUs that this process uses.
 *
 * A pointer belongs to a CUDA context.  The first pointer of a context creates the struct device of
 * that context, with its streams, gates and kernels.  All of these are created at once: the driver
 * may wait for all running work to create them, and later a stream may be waiting at a gate.  The
 * struct joins a list that only grows, so later pointers find it without a lock.  The struct is
 * never freed, because the driver may be unloaded before libct at exit. */
#include "cuda/device_internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/launch_plan.h"
#include "runtime/util/error.h"

static _Atomic(struct device *) gpus;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while a GPU is added */
/* The primary contexts of the first GPUs, by GPU number; NULL if not retained yet.  libct retains
 * each context only once, since the program could not release a context that libct retains more
 * often. */
static _Atomic(CUcontext) primaries[64];

/* Fills in the struct from the context that is current on this thread, and creates the streams. */
static ct_status gpu_fill(struct device *gpu)
{
    const struct driver *driver = gpu->driver;
    int least = 0, greatest = 0;
    CUresult result;

    result = driver->cuCtxGetDevice(&gpu->device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetUuid(&gpu->uuid, gpu->device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(
            &gpu->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu->device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(
            &gpu->same_host_addresses, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
            gpu->device);
    if (result == CUDA_SUCCESS)
        result = driver->cuCtxGetStreamPriorityRange(&least, &greatest);
    if (result != CUDA_SUCCESS)
        return driver_says(driver, result, "asking which GPU it is");
    result = driver->cuStreamCreateWithPriority(&gpu->stream, CU_STREAM_NON_BLOCKING, greatest);
    for (int way = 0; way < COPY_WAYS && result == CUDA_SUCCESS; way++)
        result =
            driver->cuStreamCreateWithPriority(&gpu->copies[way], CU_STREAM_NON_BLOCKING, greatest);
    return driver_says(driver, result, "making a stream");
}

static ct_status gpu_create(const struct driver *driver, CUcontext context, struct device **made)
{
    struct device *gpu = calloc(1, sizeof *gpu);
    ct_status status;
    void *before;

    if (!gpu)
        return ct_fail(CT_ERR_NOMEM, "no memory to describe a GPU");
    gpu->driver = driver;
    gpu->context = context;
    pthread_mutex_init(&gpu->lock, NULL);
    status = cuda_enter(&before);
    if (status == CT_OK) {
        status = cuda_gpu_use(gpu);
        if (status == CT_OK)
            status = gpu_fill(gpu);
        if (status == CT_OK) {
            gpu_load_kernels(gpu); /* if this fails, a fold that needs a kernel fails later */
            gpu_prepare_gates(gpu);
        }
        cuda_leave(before);
    }
    if (status != CT_OK) {
        pthread_mutex_destroy(&gpu->lock);
        free(gpu);
        return status;
    }
    *made = gpu;
    return CT_OK;
}

struct device *gpu_first(void)
{
    return atomic_load_explicit(&gpus, memory_order_acquire);
}

static struct device *gpu_of_context(CUcontext context)
{
    struct device *gpu = gpu_first();

    while (gpu && gpu->context != context)
        gpu = gpu->next;
    return gpu;
}

static ct_status gpu_add(const struct driver *driver, CUcontext context, struct device **gpu)
{
    ct_status status = CT_OK;

    pthread_mutex_lock(&lock);
    *gpu = gpu_of_context(context); /* another thread may have added it */
    if (!*gpu) {
        status = gpu_create(driver, context, gpu);
        if (status == CT_OK) {
            (*gpu)->next = atomic_load_explicit(&gpus, memory_order_relaxed);
            atomic_store_explicit(&gpus, *gpu, memory_order_release);
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

ct_status gpu_primary_context(const struct driver *driver, CUdevice device, CUcontext *context)
{
    const int kept = device >= 0 && device < (int)(sizeof primaries / sizeof primaries[0]);
    CUresult result;

    *context = kept ? atomic_load(&primaries[device]) : NULL;
    if (*context)
        return CT_OK;
    result = driver->cuDevicePrimaryCtxRetain(context, device);
    if (result == CUDA_SUCCESS && kept)
        atomic_store(&primaries[device], *context);
    return driver_says(driver, result, "using the primary context of GPU %d", device);
}

static ct_status gpu_of(const struct driver *driver, CUcontext context, struct device **gpu)
{
    struct device *known = gpu_of_context(context);
    const ct_status status = known ? CT_OK : gpu_add(driver, context, &known);

    if (status == CT_OK)
        *gpu = known;
    return status;
}

ct_status cuda_gpu_of(const void *pointer, struct device **gpu)
{
    const struct driver *driver;
    CUcontext context = NULL;
    CUdevice device = 0;
    ct_status status;

    *gpu = NULL;
    if (!gpu_memory_of(pointer, &context, &device))
        return CT_OK;
    status = driver_find(&driver);
    if (status == CT_OK && !context)
        status = gpu_primary_context(driver, device, &context);
    return status == CT_OK ? gpu_of(driver, context, gpu) : status;
}

ct_status cuda_gpu_current(struct device **gpu)
{
    const struct driver *driver;
    CUcontext context = NULL;
    ct_status status = driver_find(&driver);

    if (status == CT_OK)
        status = driver_says(driver, driver->cuCtxGetCurrent(&context),
                             "asking which CUDA context is current");
    if (status == CT_OK && !context)
        status = ct_fail(CT_ERR_UNSUPPORTED, "no CUDA context is current on this thread");
    return status == CT_OK ? gpu_of(driver, context, gpu) : status;
}

void cuda_gpu_id(const struct device *gpu, unsigned char id[16])
{
    memcpy(id, gpu->uuid.bytes, 16);
}
