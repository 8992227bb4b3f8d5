/* SPDX-License-Identifier: Apache-2.0 */
/* several.h - ranks on the GPUs of one host, with a GPU for each or several on one, for tests on
 * the fake driver alone. */
#ifndef TESTS_CUDA_SEVERAL_H
#define TESTS_CUDA_SEVERAL_H

#include <stdlib.h>
#include <string.h>

#include "tests/cuda/device.h"
#include "tests/harness.h"

/* Bytes of so many floats are cut for four GPUs, and not at equal places. */
enum { LARGE = 50021 };

struct run {
    const char *devices; /* a digit for each rank */
    const char *expected;
    const char *variable, *value; /* of the environment; NULL: none */
    const char *said;             /* words of what rank 0 logs once, apart by '|'; NULL: nothing */
};

static inline int open_own(const struct run *run, int rank)
{
    return EXPECT(device_open(run->devices[rank] - '0'));
}

static inline void with_settings(const struct run *run)
{
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("CT_LIBNCCL", "/nowhere/libnccl.so.2", 1);
    setenv("CT_LOG", "info", 1);
    if (run->variable)
        setenv(run->variable, run->value, 1);
}

/* Also behind a run that failed. */
static inline int forget_settings(void **state)
{
    static const char *const all[] = {
        "FAKE_CUDA_DEVICES",   "CT_LIBNCCL", "CT_LOG",
        "CT_DEVICE",           "CT_ORDER",   "FAKE_CUDA_PEERS",
        "FAKE_CUDA_FAIL",      "CT_FAULT",   "FAKE_CUDA_PEERS_CORRUPT",
        "CUDA_VISIBLE_DEVICES"
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unsetenv(all[i]);
    return 0;
}

static inline void go(rank_body *body, const struct run *run)
{
    const int p = (int)strlen(run->devices);

    with_settings(run);
    run_processes(p, body, (void *)(uintptr_t)run);
    run_threads(p, body, (void *)(uintptr_t)run);
    forget_settings(NULL);
}

static inline void put(void *there, const float *here, size_t floats)
{
    if (device_put(at(there), here, floats * sizeof *here) != CUDA_SUCCESS)
        abort();
}

static inline int is_there(const void *there, const float *here, size_t floats)
{
    float *seen = malloc(floats * sizeof *seen);
    int same;

    if (!seen || device.cuMemcpyDtoH(seen, at(there), floats * sizeof *seen) != CUDA_SUCCESS)
        abort();
    same = !memcmp(seen, here, floats * sizeof *seen);
    free(seen);
    return same;
}

#endif
