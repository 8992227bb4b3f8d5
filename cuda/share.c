/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - GPU memory that several processes use.
 *
 * The owner exports the allocation that a buffer lies in: cuIpcGetMemHandle()
 * gives 64 bytes, which travel as they are.  Another process opens them and has
 * the same memory at another address.  Opening costs some 100 us, so mappings are
 * kept while they have users (groups), and found again by (process, base, bytes, id
 * of the allocation).
 *
 * The owner may free an allocation and get another one at the same place; nobody
 * tells us.  But the id is another one then, so what was mapped of that place is
 * seen to be stale, and closed, before the new one is opened.
 *
 * To close may be to wait for all that runs, so for a stream that stands still for
 * the very call which closes.  Then what has no user stays, until somebody looks at
 * that place again or a user goes, and no stream is held.
 *
 * The driver refuses to open a handle in the process that made it: there the
 * buffer is simply where it is. */
#include "cuda/gpu_parts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/error.h"

struct user {
    const void *who;
    struct user *next;
};

struct import {
    struct device_handle of;
    CUdeviceptr mapped;
    struct user *users;
    struct import *next;
};

_Static_assert(sizeof(CUipcMemHandle) == sizeof((struct device_handle *)NULL)->ipc,
               "a handle of the driver's travels whole");

/* A number that no other process has, of whatever container; never 0. */
static uint64_t this_process(void)
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

/* ---- Export --------------------------------------------------------------- */

static ct_status refuse(const void *pointer, const char *why)
{
    return ct_fail(CT_ERR_UNSUPPORTED,
                   "the GPU memory at %p can't be mapped by other processes: %s; memory of "
                   "cudaMalloc() or cuMemAlloc() can",
                   pointer, why);
}

/* Which allocation, and whether it can be exported. */
static ct_status look_up(const struct driver *driver, const void *pointer, size_t bytes,
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
        return refuse(pointer, "it is managed memory");
    if (!capable && size > 0)
        return refuse(pointer, "it is of a memory pool or of cuMemCreate()");
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

/* Asks the driver, unless the allocation was exported lately.  The GPU is locked. */
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
                                  .process = this_process(),
                                  .number = gpu->device };
    ct_status status = cuda_gpu_use(gpu);

    if (status == CT_OK)
        status = look_up(gpu->driver, pointer, bytes, &made);
    if (status != CT_OK)
        return status;
    pthread_mutex_lock(&gpu->lock);
    status = make_handle(gpu, &made);
    pthread_mutex_unlock(&gpu->lock);
    if (status == CT_OK)
        *handle = made;
    return status;
}

/* ---- Import --------------------------------------------------------------- */

static int of_one_process(const struct device_handle *a, const struct device_handle *b)
{
    return a->pid == b->pid && a->process == b->process;
}

static int is_own(const struct device_handle *handle)
{
    return handle->process == this_process() && handle->pid == (int32_t)getpid();
}

static int same_allocation(const struct device_handle *a, const struct device_handle *b)
{
    return a->id == b->id && a->base == b->base && a->bytes == b->bytes;
}

/* Two allocations that overlap in one process have not both lived at one time. */
static int overlap(const struct device_handle *a, const struct device_handle *b)
{
    return a->base < b->base + b->bytes && b->base < a->base + a->bytes;
}

/* Unlinks and frees it, if nobody needs it and no stream is held; gives where the next one is. That
 * the driver may refuse says nothing new: the memory is gone. */
static struct import **close_unused(struct device *gpu, struct import **place)
{
    struct import *import = *place;

    if (import->users || !gpu_may_wait())
        return &import->next;
    *place = import->next;
    gpu->driver->cuIpcCloseMemHandle(import->mapped);
    gpu_has_waited();
    free(import);
    return place;
}

static void close_all_unused(struct device *gpu)
{
    struct import **place = &gpu->imports;

    while (*place)
        place = close_unused(gpu, place);
}

static void remove_users(struct import *import)
{
    while (import->users) {
        struct user *next = import->users->next;

        free(import->users);
        import->users = next;
    }
}

static ct_status add_user(struct import *import, const void *who)
{
    struct user *user = import->users;

    while (user && user->who != who)
        user = user->next;
    if (user)
        return CT_OK;
    user = malloc(sizeof *user);
    if (!user)
        return ct_fail(CT_ERR_NOMEM, "no memory to note who uses a mapping");
    *user = (struct user){ who, import->users };
    import->users = user;
    return CT_OK;
}

static void remove_user(struct import *import, const void *who)
{
    for (struct user **place = &import->users, *user; (user = *place); place = &user->next)
        if (user->who == who) {
            *place = user->next;
            free(user);
            return;
        }
}

/* Closes what is stale on the way.  NULL: not mapped yet. */
static struct import *find_import(struct device *gpu, const struct device_handle *handle)
{
    struct import **place = &gpu->imports, *found = NULL;

    while (*place) {
        const struct device_handle *of = &(*place)->of;

        if (!of_one_process(of, handle) || !overlap(of, handle)) {
            place = &(*place)->next;
        } else if (same_allocation(of, handle)) {
            found = *place;
            place = &(*place)->next;
        } else {
            remove_users(*place);
            place = close_unused(gpu, place);
        }
    }
    return found;
}

static ct_status open_import(struct device *gpu, const struct device_handle *handle,
                             struct import **opened)
{
    struct import *import = malloc(sizeof *import);
    CUipcMemHandle ipc;
    CUresult result;
    ct_status status;

    if (!import)
        return ct_fail(CT_ERR_NOMEM, "no memory to note a mapping");
    memcpy(&ipc, handle->ipc, sizeof ipc);
    result =
        gpu->driver->cuIpcOpenMemHandle(&import->mapped, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (result != CUDA_SUCCESS) {
        free(import);
        status =
            driver_says(gpu->driver, result, "mapping GPU memory of process %d", (int)handle->pid);
        return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
                       || result == CUDA_ERROR_INVALID_DEVICE
                   ? CT_ERR_UNSUPPORTED
                   : status;
    }
    status = gpu_reach_mapped(gpu, import->mapped);
    if (status != CT_OK) {
        gpu->driver->cuIpcCloseMemHandle(import->mapped);
        free(import);
        return status;
    }
    import->of = *handle;
    import->users = NULL;
    import->next = gpu->imports;
    gpu->imports = import;
    *opened = import;
    return CT_OK;
}

static ct_status import_own(struct device *gpu, void *at)
{
    ct_status status = cuda_gpu_use(gpu);

    pthread_mutex_lock(&gpu->lock);
    if (status == CT_OK)
        status = gpu_reach_own(gpu, at);
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

ct_status cuda_import(struct device *gpu, const struct device_handle *handle, const void *user,
                      void **pointer)
{
    ct_status status = CT_OK;
    struct import *import;

    if (is_own(handle)) {
        *pointer = (void *)(uintptr_t)(handle->base + handle->offset);
        return handle->number == gpu->device ? CT_OK : import_own(gpu, *pointer);
    }
    pthread_mutex_lock(&gpu->lock);
    import = find_import(gpu, handle);
    if (!import) {
        status = cuda_gpu_use(gpu);
        if (status == CT_OK)
            status = open_import(gpu, handle, &import);
    }
    if (status == CT_OK)
        status = add_user(import, user);
    if (status != CT_OK)
        close_all_unused(gpu); /* what was opened for nobody */
    else
        *pointer = (void *)(uintptr_t)(import->mapped + handle->offset);
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

static void release(struct device *gpu, const void *user)
{
    if (cuda_gpu_use(gpu) != CT_OK)
        return;
    pthread_mutex_lock(&gpu->lock);
    for (struct import *import = gpu->imports; import; import = import->next)
        remove_user(import, user);
    close_all_unused(gpu);
    pthread_mutex_unlock(&gpu->lock);
}

void cuda_put(const void *user)
{
    for (struct device *gpu = gpu_first(); gpu; gpu = gpu->next)
        release(gpu, user);
}
