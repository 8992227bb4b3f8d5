/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.h - buffers of COUNT equal numbers on a GPU, for tests whose answer is one number. */
#ifndef TESTS_CUDA_NUMBERS_H
#define TESTS_CUDA_NUMBERS_H

#include <stdlib.h>
#include <string.h>

#include "include/ct.h"
#include "tests/cuda/device.h"
#include "tests/harness.h"

enum { COUNT = 1000 };

/* COUNT numbers on the device, all of them `value`. */
static inline int32_t *numbers(int32_t value)
{
    int32_t here[COUNT];
    void *there = device_alloc(sizeof here, 0);

    for (int i = 0; i < COUNT; i++)
        here[i] = value;
    if (!there || device_put(at(there), here, sizeof here) != CUDA_SUCCESS)
        abort();
    return there;
}

static inline int all_are(const int32_t *there, int32_t value)
{
    int32_t here[COUNT];

    if (device.cuMemcpyDtoH(here, at(there), sizeof here) != CUDA_SUCCESS)
        return 0;
    for (int i = 0; i < COUNT; i++)
        if (here[i] != value)
            return 0;
    return 1;
}

static inline int is_fused(ct_group *group)
{
    return !strcmp(ct_last_algorithm(group), "fused");
}

#endif
