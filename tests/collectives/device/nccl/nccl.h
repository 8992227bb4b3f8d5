/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.h - ranks with a GPU each and an NCCL, or with what is set for a run; buffers of COUNT equal
 * numbers.  On the fake driver and the fake NCCL alone. */
#ifndef TESTS_CUDA_NCCL_H
#define TESTS_CUDA_NCCL_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/device.h"
#include "tests/harness.h"

enum { COUNT = 777 };

struct setting {
    const char *variable, *value;
};

/* What a run is given beside NCCL and GPUs for all; ends with {NULL}. */
static inline void with(const struct setting *settings, int on)
{
    for (; settings && settings->variable; settings++)
        if (on)
            setenv(settings->variable, settings->value, 1);
        else
            unsetenv(settings->variable);
}

struct run_of {
    const struct setting *settings;
    const char *expected; /* ct_last_algorithm() of what NCCL can do */
    int devices;
    int one_in;    /* all_operations(): so many, the others are left out; 0: none is */
    int no_memory; /* is shared by the ranks: what NCCL can't make goes through the host */
};

static inline int device_of(const struct run_of *run, int rank)
{
    return rank % run->devices;
}

static inline void run_all(int processes, int threads, rank_body *body, struct run_of *run)
{
    char devices[12];

    if (run->devices == 0)
        run->devices = processes > threads ? processes : threads;
    snprintf(devices, sizeof devices, "%d", run->devices);
    setenv("FAKE_CUDA_DEVICES", devices, 1);
    setenv("CT_LIBNCCL", FAKE_NCCL, 1);
    with(run->settings, 1);
    if (processes > 0)
        run_processes(processes, body, run);
    if (threads > 0)
        run_threads(threads, body, run);
    with(run->settings, 0);
}

/* Also behind a run that failed. */
static inline int forget_settings(void **state)
{
    static const char *const all[] = { "FAKE_CUDA_DEVICES", "CT_LIBNCCL",     "CT_DEVICE",
                                       "CT_ORDER",          "CT_FAULT",       "CT_LINK",
                                       "FAKE_NCCL_FAIL",    "FAKE_NCCL_LATE", "FAKE_NCCL_VERSION",
                                       "FAKE_CUDA_PEERS" };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unsetenv(all[i]);
    return 0;
}

/* `there` gets COUNT times value, in f32 or i32. */
static inline void put(void *there, ct_dtype dtype, int value)
{
    union {
        float f[COUNT];
        int32_t i[COUNT];
    } here;

    for (int i = 0; i < COUNT; i++)
        if (dtype == CT_F32)
            here.f[i] = (float)value;
        else
            here.i[i] = value;
    if (device_put(at(there), &here, sizeof here) != CUDA_SUCCESS)
        abort();
}

static inline int32_t first_of(const void *there)
{
    int32_t value = -1;

    if (device.cuMemcpyDtoH(&value, at(there), sizeof value) != CUDA_SUCCESS)
        abort();
    return value;
}

#endif
