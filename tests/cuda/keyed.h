/* SPDX-License-Identifier: Apache-2.0 */
/* keyed.h - messages in memory of all kinds: byte i of one with key k is k + 31 i. */
#ifndef TESTS_CUDA_KEYED_H
#define TESTS_CUDA_KEYED_H

#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "tests/cuda/device.h"

enum { MOST = 400000 };

enum kind { HOST, DEVICE, POOLED, MANAGED, KINDS };

struct buffer {
    enum kind kind;
    unsigned char *at;
};

static inline struct buffer buffer_of(enum kind kind)
{
    CUdeviceptr memory = 0;

    if (kind == HOST)
        return (struct buffer){ kind, calloc(MOST, 1) };
    if (kind == DEVICE)
        EXPECT(device.cuMemAlloc(&memory, MOST) == CUDA_SUCCESS);
    else if (kind == MANAGED)
        EXPECT(device.cuMemAllocManaged(&memory, MOST, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    else
        EXPECT(device.cuMemAllocAsync(&memory, MOST, NULL) == CUDA_SUCCESS
               && device.cuStreamSynchronize(NULL) == CUDA_SUCCESS);
    return (struct buffer){ kind, (unsigned char *)(uintptr_t)memory };
}

static inline void free_buffer(struct buffer b)
{
    if (b.kind == HOST)
        free(b.at);
    else
        device_free(b.at);
}

static inline void write_key(struct buffer b, size_t offset, size_t bytes, int key)
{
    unsigned char *here = malloc(bytes + 1);

    for (size_t i = 0; i < bytes; i++)
        here[i] = (unsigned char)((size_t)key + 31 * i);
    if (b.kind == HOST)
        memcpy(b.at + offset, here, bytes);
    else
        EXPECT(device_put(at(b.at) + offset, here, bytes) == CUDA_SUCCESS);
    free(here);
}

static inline int has_key(struct buffer b, size_t offset, size_t bytes, int key)
{
    unsigned char *here = malloc(bytes + 1);
    size_t good = 0;

    if (b.kind == HOST)
        memcpy(here, b.at + offset, bytes);
    else
        EXPECT(device.cuMemcpyDtoH(here, at(b.at) + offset, bytes) == CUDA_SUCCESS);
    while (good < bytes && here[good] == (unsigned char)((size_t)key + 31 * good))
        good++;
    free(here);
    return good == bytes;
}

#endif
