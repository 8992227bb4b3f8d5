/* SPDX-License-Identifier: Apache-2.0 */
/* host_registration.c - registers (pins) host memory, which GPUs then access directly.
 *
 * Ranks that are threads may register the same memory.  The driver registers it once, for all GPUs,
 * until the last of these ranks unregisters it. */
#include <pthread.h>
#include <stdlib.h>

#include "cuda/device_internal.h"
#include "runtime/util/error.h"

struct registration {
    void *memory;
    size_t bytes;
    int users;
    struct registration *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct registration *registrations;

/* Returns the address of the pointer to the registration.  That pointer is the NULL at the end of
 * the list if the memory is not registered.  The caller holds the lock. */
static struct registration **find_registration(const void *memory)
{
    struct registration **at = &registrations;

    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    return at;
}

/* Registers the memory for all contexts.  Also maps it for the GPU: streams wait for flags in the
 * memory (stream_gate.c) and need its address on the GPU. */
static ct_status register_memory(struct device *gpu, void *memory, size_t bytes,
                                 struct registration **end)
{
    const unsigned how = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    struct registration *made = malloc(sizeof *made);
    ct_status status;

    if (!made)
        return ct_fail(CT_ERR_NOMEM, "no memory to note what is pinned");
    status = driver_says(gpu->driver, gpu->driver->cuMemHostRegister(memory, bytes, how),
                         "pinning %zu bytes of host memory", bytes);
    *made = (struct registration){ .memory = memory, .bytes = bytes, .users = 1 };
    if (status == CT_OK)
        *end = made;
    else
        free(made);
    return status;
}

ct_status gpu_address_of(struct device *gpu, const volatile void *host, CUdeviceptr *at)
{
    void *const memory = (void *)(uintptr_t)host;

    *at = (CUdeviceptr)(uintptr_t)memory;
    if (gpu->same_host_addresses)
        return CT_OK;
    return driver_says(gpu->driver, gpu->driver->cuMemHostGetDevicePointer(at, memory, 0),
                       "looking for the address of host memory");
}

ct_status cuda_register_host(struct device *gpu, void *memory, size_t bytes)
{
    ct_status status = cuda_gpu_use(gpu);
    struct registration **at;

    if (status != CT_OK)
        return status;
    if (!gpu_may_wait())
        return gpu_refuse_to_wait();
    pthread_mutex_lock(&lock);
    at = find_registration(memory);
    if (*at && (*at)->bytes == bytes)
        (*at)->users++;
    else if (*at)
        status = ct_fail(CT_ERR_CUDA, "other %zu bytes are pinned there", (*at)->bytes);
    else
        status = register_memory(gpu, memory, bytes, at);
    pthread_mutex_unlock(&lock);
    gpu_has_waited();
    return status;
}

/* Returns 1 if the removed user was the last one of the memory, else 0. */
static int registration_remove_user(void *memory)
{
    struct registration **at, *gone = NULL;

    pthread_mutex_lock(&lock);
    at = find_registration(memory);
    if (*at && --(*at)->users == 0) {
        gone = *at;
        *at = gone->next;
    }
    pthread_mutex_unlock(&lock);
    free(gone);
    return gone != NULL;
}

/* Calls the driver without holding the lock, since the driver may wait for all running work. */
ct_status cuda_unregister_host(struct device *gpu, void *memory, int may_wait)
{
    const ct_status status = cuda_gpu_use(gpu);

    if (status != CT_OK)
        return status;
    if (!may_wait && !gpu_may_wait())
        return gpu_refuse_to_wait();
    if (registration_remove_user(memory))
        gpu->driver->cuMemHostUnregister(memory);
    if (!may_wait)
        gpu_has_waited();
    return CT_OK;
}
