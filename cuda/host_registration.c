/* SPDX-License-Identifier: Apache-2.0 */
/* host_registration.c - host memory that GPUs reach where it lies.
 *
 * Ranks that are threads may have the same memory, of which the driver is told once: by the first,
 * for all GPUs, and until the last of them lets it go. */
#include <pthread.h>
#include <stdlib.h>

#include "cuda/device_internal.h"
#include "runtime/util/error.h"

struct pin {
    void *memory;
    size_t bytes;
    int users;
    struct pin *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pin *pins;

/* The lock is held.  Where it is in the list; the end: it is not there. */
static struct pin **find(const void *memory)
{
    struct pin **at = &pins;

    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    return at;
}

/* For all contexts.  Mapped, for streams wait for words in it (stream_flag.c): of memory that is
 * not, the driver gives no address. */
static ct_status pin(struct device *gpu, void *memory, size_t bytes, struct pin **end)
{
    const unsigned how = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    struct pin *made = malloc(sizeof *made);
    ct_status status;

    if (!made)
        return ct_fail(CT_ERR_NOMEM, "no memory to note what is pinned");
    status = driver_says(gpu->driver, gpu->driver->cuMemHostRegister(memory, bytes, how),
                         "pinning %zu bytes of host memory", bytes);
    *made = (struct pin){ .memory = memory, .bytes = bytes, .users = 1 };
    if (status == CT_OK)
        *end = made;
    else
        free(made);
    return status;
}

ct_status cuda_pin(struct device *gpu, void *memory, size_t bytes)
{
    ct_status status = cuda_gpu_use(gpu);
    struct pin **at;

    if (status != CT_OK)
        return status;
    if (!gpu_may_wait())
        return gpu_refuse_to_wait();
    pthread_mutex_lock(&lock);
    at = find(memory);
    if (*at && (*at)->bytes == bytes)
        (*at)->users++;
    else if (*at)
        status = ct_fail(CT_ERR_CUDA, "other %zu bytes are pinned there", (*at)->bytes);
    else
        status = pin(gpu, memory, bytes, at);
    pthread_mutex_unlock(&lock);
    gpu_has_waited();
    return status;
}

/* 1: that was its last user. */
static int let_go(void *memory)
{
    struct pin **at, *gone = NULL;

    pthread_mutex_lock(&lock);
    at = find(memory);
    if (*at && --(*at)->users == 0) {
        gone = *at;
        *at = gone->next;
    }
    pthread_mutex_unlock(&lock);
    free(gone);
    return gone != NULL;
}

/* Without the lock: the driver may wait for all that runs. */
ct_status cuda_unpin(struct device *gpu, void *memory, int may_wait)
{
    const ct_status status = cuda_gpu_use(gpu);

    if (status != CT_OK)
        return status;
    if (!may_wait && !gpu_may_wait())
        return gpu_refuse_to_wait();
    if (let_go(memory))
        gpu->driver->cuMemHostUnregister(memory);
    if (!may_wait)
        gpu_has_waited();
    return CT_OK;
}
