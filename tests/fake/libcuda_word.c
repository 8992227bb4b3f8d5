/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_word.c - the fake driver's streams wait for words in memory, and write them.
 *
 * Who waits for a word that never comes waits for ever on a GPU.  Here the program ends with a
 * sentence. */
#include "tests/fake/libcuda.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_US = 30000000, NAP_US = 20 };

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
    fake_enqueue(stream, op);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
    const CUresult result = fake_begin_stream(__func__, &stream);

    return result == CUDA_SUCCESS ? enqueue(stream, at, value, flags, 0) : result;
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
    const CUresult result = fake_begin_stream(__func__, &stream);

    return result == CUDA_SUCCESS ? enqueue(stream, at, value, flags, 1) : result;
}
