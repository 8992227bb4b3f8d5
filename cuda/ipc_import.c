/* SPDX-License-Identifier: Apache-2.0 */
/* ipc_import.c - maps GPU memory of other processes, and enables access to memory of other GPUs of
 * this process.
 *
 * A process that opens a handle (ipc_export.c) gets the same memory at another address.  Opening
 * takes about 100 us, so a mapping is kept while it has users, which are groups.  The mapping is
 * found again by the process, and by the base, bytes and id of the allocation.
 *
 * The owner may free an allocation and get another one at the same place without informing this
 * process.  The new allocation has another id.  So libct finds the stale mapping of that place, and
 * closes it before opening the new one.
 *
 * To close a mapping, the driver may wait for all running work.  That work may include a stream at
 * a closed gate that waits for the very call that closes the mapping.  So while a gate is closed, a
 * mapping without users stays open.  The mapping is closed later: when its place is looked up
 * again, when any user is removed, or before a gate is closed.
 *
 * The driver refuses to open a handle in the process that exported the buffer.  That process uses
 * the buffer at its own address.  If the buffer belongs to another GPU of the process, the process
 * must enable access from one context to the other; otherwise a kernel that accesses the buffer
 * destroys its context.  Access stays enabled, since the program may have enabled it, too. */
#include <stdlib.h>
#include <string.h>

#include "cuda/device_internal.h"
#include "runtime/util/error.h"

/* ---- Peer access --------------------------------------------------------------------- */

static ct_status can_access(struct device *gpu, CUdevice other)
{
    int can = 0;
    CUresult result;

    if (other == gpu->device)
        return CT_OK;
    result = gpu->driver->cuDeviceCanAccessPeer(&can, gpu->device, other);
    if (result != CUDA_SUCCESS)
        return driver_says(gpu->driver, result, "asking whether GPU %d reaches GPU %d", gpu->device,
                           other);
    return can ? CT_OK
               : ct_fail(CT_ERR_UNSUPPORTED, "GPU %d can't reach the memory of GPU %d", gpu->device,
                         other);
}

/* Returns CT_ERR_UNSUPPORTED if this GPU has no peer access to the GPU of the mapped memory.  If
 * the two GPUs have peer access, the driver enabled it when it mapped the memory. */
static ct_status check_mapped_access(struct device *gpu, CUdeviceptr mapped)
{
    CUdevice of;
    const CUresult result =
        gpu->driver->cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, mapped);

    if (result != CUDA_SUCCESS)
        return driver_says(gpu->driver, result, "asking whose memory was mapped");
    return can_access(gpu, of);
}

static ct_status enable_access(struct device *gpu, const struct device *other)
{
    ct_status status = can_access(gpu, other->device);
    CUresult result;

    if (status != CT_OK)
        return status;
    result = gpu->driver->cuCtxEnablePeerAccess(other->context, 0);
    if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        result = CUDA_SUCCESS;
    status =
        driver_says(gpu->driver, result, "letting GPU %d reach GPU %d", gpu->device, other->device);
    return result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED || result == CUDA_ERROR_TOO_MANY_PEERS
               ? CT_ERR_UNSUPPORTED
               : status;
}

/* Enables this GPU's access to memory of this process, which may belong to another GPU.  The caller
 * holds gpu->lock and has made the GPU's context current. */
static ct_status enable_own_access(struct device *gpu, const void *pointer)
{
    struct device *other;
    ct_status status = cuda_gpu_of(pointer, &other);

    if (status == CT_OK && !other)
        status = ct_fail(CT_ERR_CUDA, "there is no GPU memory at %p any more", pointer);
    if (status != CT_OK || other->device == gpu->device)
        return status;
    for (int i = 0; i < gpu->peers_known; i++)
        if (gpu->peers[i] == other->context)
            return CT_OK;
    status = enable_access(gpu, other);
    if (status == CT_OK && gpu->peers_known < PEERS_KEPT)
        gpu->peers[gpu->peers_known++] = other->context;
    return status;
}

/* ---- Mappings ------------------------------------------------------------------------ */

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

static int of_one_process(const struct device_handle *a, const struct device_handle *b)
{
    return a->pid == b->pid && a->process == b->process;
}

static int same_allocation(const struct device_handle *a, const struct device_handle *b)
{
    return a->id == b->id && a->base == b->base && a->bytes == b->bytes;
}

/* Returns 1 if two allocations overlap, else 0.  Two allocations of one process that overlap did
 * not exist at the same time. */
static int import_overlap(const struct device_handle *a, const struct device_handle *b)
{
    return a->base < b->base + b->bytes && b->base < a->base + a->bytes;
}

/* Closes and frees the mapping at *place, and unlinks it from the list, if it has no user and no
 * gate is closed.  Returns the place of the next mapping.  Ignores the driver's error, since the
 * memory may no longer exist. */
static struct import **close_unused(struct device *gpu, struct import **place)
{
    struct import *import = *place;

    if (import->users)
        return &import->next;
    if (!gpu_may_wait()) {
        gpu->is_unused_left = 1;
        return &import->next;
    }
    *place = import->next;
    gpu->driver->cuIpcCloseMemHandle(import->mapped);
    gpu_has_waited();
    free(import);
    return place;
}

static void close_all_unused(struct device *gpu)
{
    struct import **place = &gpu->imports;

    gpu->is_unused_left = 0;
    while (*place)
        place = close_unused(gpu, place);
}

void gpu_close_unused(struct device *gpu)
{
    if (!atomic_load(&gpu->is_unused_left))
        return;
    pthread_mutex_lock(&gpu->lock);
    close_all_unused(gpu);
    pthread_mutex_unlock(&gpu->lock);
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

static void import_remove_user(struct import *import, const void *who)
{
    for (struct user **place = &import->users, *user; (user = *place); place = &user->next)
        if (user->who == who) {
            *place = user->next;
            free(user);
            return;
        }
}

/* Returns the mapping of the allocation, or NULL if the allocation is not mapped yet.  Closes stale
 * mappings that overlap the allocation. */
static struct import *find_import(struct device *gpu, const struct device_handle *handle)
{
    struct import **place = &gpu->imports, *found = NULL;

    while (*place) {
        const struct device_handle *of = &(*place)->of;

        if (!of_one_process(of, handle) || !import_overlap(of, handle)) {
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

/* The driver takes small allocations from blocks of DRIVER_BLOCK bytes (2 MiB).  It exports and
 * maps only whole blocks. */
enum { DRIVER_BLOCK = 2 << 20 };

static struct device_handle whole_blocks(const struct device_handle *handle)
{
    struct device_handle whole = *handle;
    const uint64_t end = handle->base + handle->bytes + DRIVER_BLOCK - 1;

    whole.base -= whole.base % DRIVER_BLOCK;
    whole.bytes = end - end % DRIVER_BLOCK - whole.base;
    return whole;
}

/* Closes the mappings that overlap the handle's blocks.  The owner has freed their allocations,
 * since otherwise the driver would have mapped the handle. */
static void drop_blocks(struct device *gpu, const struct device_handle *handle)
{
    const struct device_handle whole = whole_blocks(handle);

    for (struct import *import = gpu->imports; import; import = import->next)
        if (of_one_process(&import->of, handle) && import_overlap(&import->of, &whole))
            remove_users(import);
    close_all_unused(gpu);
}

/* Opens a handle.  The driver returns CUDA_ERROR_ALREADY_MAPPED if the owner allocated the same
 * place again and an old mapping is still open: because it could not be closed yet, or because its
 * block also holds other freed allocations.  Then this function closes the mappings that can be
 * closed, and calls the driver again. */
static CUresult open_handle(struct device *gpu, const struct device_handle *handle,
                            CUdeviceptr *mapped)
{
    const unsigned how = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
    CUipcMemHandle ipc;
    CUresult result;

    memcpy(&ipc, handle->ipc, sizeof ipc);
    result = gpu->driver->cuIpcOpenMemHandle(mapped, ipc, how);
    if (result != CUDA_ERROR_ALREADY_MAPPED)
        return result;
    drop_blocks(gpu, handle);
    return gpu->driver->cuIpcOpenMemHandle(mapped, ipc, how);
}

static ct_status cant_open(const struct device *gpu, const struct device_handle *handle,
                           CUresult result)
{
    ct_status status;

    if (result == CUDA_ERROR_ALREADY_MAPPED)
        return ct_fail(CT_ERR_INVALID,
                       "GPU memory that process %d has freed stays mapped: unmapping it might wait "
                       "for a stream that waits for the host or for other ranks",
                       (int)handle->pid);
    status = driver_says(gpu->driver, result, "mapping GPU memory of process %d", (int)handle->pid);
    return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
                   || result == CUDA_ERROR_INVALID_DEVICE
               ? CT_ERR_UNSUPPORTED
               : status;
}

static ct_status open_import(struct device *gpu, const struct device_handle *handle,
                             struct import **opened)
{
    struct import *import = malloc(sizeof *import);
    CUresult result;
    ct_status status;

    if (!import)
        return ct_fail(CT_ERR_NOMEM, "no memory to note a mapping");
    result = open_handle(gpu, handle, &import->mapped);
    if (result != CUDA_SUCCESS) {
        free(import);
        return cant_open(gpu, handle, result);
    }
    status = check_mapped_access(gpu, import->mapped);
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
        status = enable_own_access(gpu, at);
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

ct_status cuda_import(struct device *gpu, const struct device_handle *handle, const void *user,
                      void **pointer)
{
    struct import *import = NULL;
    ct_status status;

    if (gpu_is_ours(handle)) {
        *pointer = (void *)(uintptr_t)(handle->base + handle->offset);
        return handle->number == gpu->device ? CT_OK : import_own(gpu, *pointer);
    }
    pthread_mutex_lock(&gpu->lock);
    status = cuda_gpu_use(gpu);
    if (status == CT_OK)
        import = find_import(gpu, handle);
    if (status == CT_OK && !import)
        status = open_import(gpu, handle, &import);
    if (status == CT_OK)
        status = add_user(import, user);
    if (status != CT_OK)
        close_all_unused(gpu); /* also closes the new mapping if it has no user */
    else
        *pointer = (void *)(uintptr_t)(import->mapped + handle->offset);
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

static void import_release(struct device *gpu, const void *user)
{
    if (cuda_gpu_use(gpu) != CT_OK)
        return;
    pthread_mutex_lock(&gpu->lock);
    for (struct import *import = gpu->imports; import; import = import->next)
        import_remove_user(import, user);
    close_all_unused(gpu);
    pthread_mutex_unlock(&gpu->lock);
}

void cuda_put(const void *user)
{
    for (struct device *gpu = gpu_first(); gpu; gpu = gpu->next)
        import_release(gpu, user);
}
