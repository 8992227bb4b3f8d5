/* SPDX-License-Identifier: Apache-2.0 */
/* test_pattern.c - known bytes in a GPU's memory, by which other ranks try whether they reach it.
 * Made when first asked for, and never changed nor freed: somebody may be reading them. */
#include "runtime/device/peer_access_check.h"

#include "cuda/device_internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of making one, of any GPU */

ct_status cuda_sample(struct device *gpu, void **memory)
{
    unsigned char id[16], bytes[SAMPLE_BYTES];
    ct_status status = CT_OK;
    void *made = NULL;

    pthread_mutex_lock(&lock);
    if (!gpu->sample) {
        status = cuda_alloc_now(gpu, SAMPLE_BYTES, &made);
        cuda_gpu_id(gpu, id);
        sample_fill(id, bytes);
        if (status == CT_OK && (status = cuda_from_host(gpu, made, bytes, SAMPLE_BYTES)) == CT_OK)
            gpu->sample = made;
        else
            cuda_release(gpu, made);
    }
    *memory = gpu->sample;
    pthread_mutex_unlock(&lock);
    return status;
}
