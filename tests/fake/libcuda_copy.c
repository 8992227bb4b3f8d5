/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_copy.c - the fake driver's copies, all of them in streams.
 *
 * A copy from the host's memory reads it when its turn comes, as the real driver
 * does if that memory is pinned: a change that comes too early is copied. */
#include "tests/fake/libcuda.h"

#include <stdlib.h>
#include <string.h>

static void run_copy(struct op *op)
{
    memmove(op->to, op->from, op->bytes);
}

static void run_fill(struct op *op)
{
    memset(op->to, op->fill, op->bytes);
}

enum side { HOST, DEVICE };

/* NULL: there are not so many bytes on that side. */
static unsigned char *reach(struct op *op, enum side side, uint64_t at, size_t bytes)
{
    const struct block *block = block_of(at);

    if (side == DEVICE)
        return op_uses(op, at, bytes);
    if (!block)
        return (unsigned char *)(uintptr_t)at;
    return block_is_host(block) ? op_uses(op, at, bytes) : NULL;
}

static int is_pageable(enum side side, uint64_t at)
{
    return side == HOST && at && !block_of(at);
}

/* Takes the op.  from: 0 where nothing is read. */
static CUresult start(const char *function, CUstream stream, struct op *op, enum side to_side,
                      uint64_t to, enum side from_side, uint64_t from, size_t bytes, int wait)
{
    CUresult result = fake_begin_enqueue(function, &stream);

    if (result == CUDA_SUCCESS) {
        op->bytes = bytes;
        op->to = reach(op, to_side, to, bytes);
        op->from = from ? reach(op, from_side, from, bytes) : NULL;
        if (to_side == DEVICE && from_side == DEVICE && op->to && op->from)
            op->run = fake_copy_between(block_of(to), block_of(from));
        if (!op->to || (op->run != run_fill && !op->from))
            result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS || bytes == 0) {
        op_destroy(op);
        return result;
    }
    wait |= fake_setting_is("FAKE_CUDA_PAGEABLE", "waits")
            && (is_pageable(to_side, to) || is_pageable(from_side, from));
    fake_enqueue(stream, op);
    return wait ? fake_wait_for_stream(stream) : CUDA_SUCCESS;
}

static uint64_t address(const void *host)
{
    return (uint64_t)(uintptr_t)host;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return start(__func__, stream, op_create(run_copy), DEVICE, to, HOST, address(from), bytes, 0);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return start(__func__, stream, op_create(run_copy), HOST, address(to), DEVICE, from, bytes, 0);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return start(__func__, stream, op_create(run_copy), DEVICE, to, DEVICE, from, bytes, 0);
}

/* What is not pinned has been read when it returns, and need not have arrived yet. */
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    struct op *op = op_create(run_copy);

    if (block_of(address(from)))
        return start(__func__, NULL, op, DEVICE, to, HOST, address(from), bytes, 1);
    op->args = malloc(bytes);
    if (!op->args)
        fake_dies("no memory");
    memcpy(op->args, from, bytes);
    return start(__func__, NULL, op, DEVICE, to, HOST, address(op->args), bytes, 0);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    return start(__func__, NULL, op_create(run_copy), HOST, address(to), DEVICE, from, bytes, 1);
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return start(__func__, NULL, op_create(run_copy), DEVICE, to, DEVICE, from, bytes, 1);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    struct op *op = op_create(run_fill);

    op->fill = value;
    return start(__func__, stream, op, DEVICE, to, DEVICE, 0, bytes, 0);
}
