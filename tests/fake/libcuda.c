/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.c - a driver for tests, as libcuda.so.1: host memory that it calls the device's. */
#include <stdint.h>
#include <stdlib.h>

static uintptr_t from, to;

__attribute__((visibility("default"))) void *fake_device_memory(size_t bytes);
__attribute__((visibility("default"))) int cuPointerGetAttribute(void *value, int attribute,
                                                                 unsigned long long pointer);

void *fake_device_memory(size_t bytes)
{
    void *memory = malloc(bytes);

    from = (uintptr_t)memory;
    to = from + bytes;
    return memory;
}

/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE is 2, IS_MANAGED is 8; CU_MEMORYTYPE_DEVICE is 2. */
int cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer)
{
    if (pointer < from || pointer >= to)
        return 1; /* CUDA_ERROR_INVALID_VALUE: never heard of it */
    *(unsigned *)value = attribute == 2 ? 2 : 0;
    return 0;
}
