/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_word.c - the fake driver's streams wait for words in memory, and write them.
 *
 * Who waits for a word that never comes waits for ever on a GPU.  Here the program ends with a
 * sentence. */
#include "tests/fake/libcuda.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake/counts.h"

enum { PATIENCE_US = 30000000, NAP_US = 20 };

static _Atomic int waiting; /* words that streams wait for, or will */

int fake_waits_for_words(void)
{
    return atomic_load(&waiting);
}

void fake_will_wait_for_word(void)
{
    atomic_fetch_add(&waiting, 1);
}

static int is_reached(uint32_t is, const struct op *op)
{
    switch (op->flags) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return is == op->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (is & op->value) != 0;
    default: /* GEQ, round and round */
        return (int32_t)(is - op->value) >= 0;
    }
}

static void run_wait(struct op *op)
{
    const struct timespec nap = { 0, NAP_US * 1000L };
    const _Atomic uint32_t *word = (const _Atomic uint32_t *)(const void *)op->from;

    for (int64_t waited_us = 0; !is_reached(atomic_load(word), op); waited_us += NAP_US) {
        if (waited_us > PATIENCE_US)
            fake_dies("a stream waits for a word that never becomes %u", op->value);
        nanosleep(&nap, NULL);
    }
    atomic_fetch_sub(&waiting, 1);
}

static void run_write(struct op *op)
{
    atomic_store((_Atomic uint32_t *)(void *)op->to, op->value);
}

static CUresult enqueue(CUstream stream, CUdeviceptr at, uint32_t value, unsigned flags, int write)
{
    const char *words = getenv("FAKE_CUDA_WORDS");
    struct op *op;

    if (words && !strcmp(words, "0"))
        return CUDA_ERROR_NOT_SUPPORTED;
    op = op_create(write ? run_write : run_wait);
    op->to = op_uses(op, at, sizeof value);
    op->from = op->to;
    op->value = value;
    op->flags = flags;
    if (!op->to || at % sizeof value != 0) {
        op_destroy(op);
        return CUDA_ERROR_INVALID_VALUE;
    }
    op->is_wait = !write;
    atomic_fetch_add(&fake_counts[FAKE_WORDS], 1);
    fake_enqueue(stream, op);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
    const CUresult result = fake_begin_enqueue(__func__, &stream);

    return result == CUDA_SUCCESS ? enqueue(stream, at, value, flags, 0) : result;
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
    const CUresult result = fake_begin_enqueue(__func__, &stream);

    return result == CUDA_SUCCESS ? enqueue(stream, at, value, flags, 1) : result;
}

/* In host memory that the driver knows; it has the same address there. */
CUresult cuMemHostGetDevicePointer(CUdeviceptr *at, void *memory, unsigned flags)
{
    const CUresult result = fake_begin(__func__);
    const struct block *block = block_of((CUdeviceptr)(uintptr_t)memory);

    *at = (CUdeviceptr)(uintptr_t)memory;
    return result != CUDA_SUCCESS                        ? result
           : flags == 0 && block && block_is_host(block) ? CUDA_SUCCESS
                                                         : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams *ops,
                            unsigned flags)
{
    CUresult result = fake_begin_enqueue(__func__, &stream);

    if (result == CUDA_SUCCESS && (count > 256 || flags != 0))
        result = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        switch (ops[i].operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            result = enqueue(stream, ops[i].waitValue.address, ops[i].waitValue.value,
                             ops[i].waitValue.flags, 0);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            result = enqueue(stream, ops[i].writeValue.address, ops[i].writeValue.value,
                             ops[i].writeValue.flags, 1);
            break;
        default:
            result = CUDA_ERROR_INVALID_VALUE;
        }
    return result;
}
