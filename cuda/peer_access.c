/* SPDX-License-Identifier: Apache-2.0 */
/* peer_access.c - memory of other GPUs, as one GPU reaches it.
 *
 * What another process exports the driver maps for the GPU that opens it, though it be another
 * GPU's (ipc_import.c).  What belongs to another GPU of this very process is where it is; but a
 * kernel that touches it kills its context, unless access was enabled from the one context to the
 * other before.  Access stays enabled: who enabled it for itself, too, must not find it gone. */
#include "cuda/device_internal.h"

#include "runtime/util/error.h"

static ct_status can_reach(struct device *gpu, CUdevice other)
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

ct_status gpu_reach_mapped(struct device *gpu, CUdeviceptr mapped)
{
    CUdevice of;
    const CUresult result =
        gpu->driver->cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, mapped);

    if (result != CUDA_SUCCESS)
        return driver_says(gpu->driver, result, "asking whose memory was mapped");
    return can_reach(gpu, of);
}

static ct_status enable(struct device *gpu, const struct device *other)
{
    ct_status status = can_reach(gpu, other->device);
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

ct_status gpu_reach_own(struct device *gpu, const void *pointer)
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
    status = enable(gpu, other);
    if (status == CT_OK && gpu->peers_known < PEERS_KEPT)
        gpu->peers[gpu->peers_known++] = other->context;
    return status;
}
