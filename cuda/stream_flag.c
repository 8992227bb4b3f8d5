/* SPDX-License-Identifier: Apache-2.0 */
/* stream_flag.c - streams that wait for words in host memory, and write them. */
#include "cuda/device_internal.h"

enum { BATCH = 128 }; /* the driver takes 256 at once */

/* What the GPU calls the word, whose memory is pinned. */
static CUresult address_of(const struct driver *driver, const struct word_op *op, CUdeviceptr *at)
{
    return driver->cuMemHostGetDevicePointer(at, (void *)op->word, 0);
}

static CUstreamBatchMemOpParams parameters(const struct word_op *op, CUdeviceptr at)
{
    CUstreamBatchMemOpParams p = { 0 };

    if (op->waits) {
        p.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        p.waitValue.address = at;
        p.waitValue.value = op->value;
        p.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    } else {
        p.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        p.writeValue.address = at;
        p.writeValue.value = op->value;
        p.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    }
    return p;
}

ct_status cuda_words(struct device *gpu, void *stream, const struct word_op *ops, int count)
{
    const struct driver *driver = gpu->driver;
    CUstreamBatchMemOpParams batch[BATCH];
    CUresult result = CUDA_SUCCESS;
    ct_status status = cuda_gpu_use(gpu);

    for (int done = 0; done < count && status == CT_OK; done += BATCH) {
        const int some = count - done < BATCH ? count - done : BATCH;

        for (int i = 0; i < some && result == CUDA_SUCCESS; i++) {
            CUdeviceptr at;

            result = address_of(driver, &ops[done + i], &at);
            batch[i] = parameters(&ops[done + i], at);
        }
        if (result == CUDA_SUCCESS)
            result = driver->cuStreamBatchMemOp(stream, (unsigned)some, batch, 0);
        status = driver_says(driver, result, "letting a stream wait for words of the host's");
    }
    return result == CUDA_ERROR_NOT_SUPPORTED ? CT_ERR_UNSUPPORTED : status;
}

ct_status cuda_try_word(struct device *gpu, void *word)
{
    const struct word_op write = { word, 0, 0 };

    return cuda_words(gpu, gpu->stream, &write, 1);
}

/* A stream that is captured must not be asked. */
void cuda_spoil(struct device *gpu, void *stream)
{
    if (cuda_gpu_use(gpu) == CT_OK)
        gpu->driver->cuStreamQuery(stream);
}
