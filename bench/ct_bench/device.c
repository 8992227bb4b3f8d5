/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - see device.h.
 *
 * The prototypes are written down here, because a bench includes no CUDA header: those of the
 * versions that the names say, which drivers keep for good. */
#include "bench/ct_bench/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t address; /* CUdeviceptr */

#define FUNCTIONS(X)                                                                        \
    X(init, "cuInit", (unsigned flags))                                                     \
    X(count, "cuDeviceGetCount", (int *count))                                              \
    X(get, "cuDeviceGet", (int *device, int ordinal))                                       \
    X(uuid, "cuDeviceGetUuid_v2", (uint64_t id[2], int device))                             \
    X(retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                     \
    X(set_current, "cuCtxSetCurrent", (void *context))                                      \
    X(alloc, "cuMemAlloc_v2", (address * at, size_t bytes))                                 \
    X(release, "cuMemFree_v2", (address at))                                                \
    X(put, "cuMemcpyHtoD_v2", (address to, const void *from, size_t bytes))                 \
    X(fetch, "cuMemcpyDtoH_v2", (void *to, address from, size_t bytes))                     \
    X(copy, "cuMemcpyDtoDAsync_v2", (address to, address from, size_t bytes, void *stream)) \
    X(stream, "cuStreamCreate", (void **stream, unsigned flags))                            \
    X(synchronize, "cuStreamSynchronize", (void *stream))                                   \
    X(error_name, "cuGetErrorName", (int result, const char **name))

static struct {
#define FIELD(field, name, arguments) int(*field) arguments;
    FUNCTIONS(FIELD)
#undef FIELD
} driver;

static const struct {
    const char *name;
    void **function;
} places[] = {
#define PLACE(field, name, arguments) { name, (void **)&driver.field },
    FUNCTIONS(PLACE)
#undef PLACE
};

static int gpu;

static const char *words_of(int result)
{
    const char *name = NULL;

    driver.error_name(result, &name);
    return name ? name : "an error that the driver has no name for";
}

/* Never closed: libct uses the library that the program has loaded. */
static int load(char why[200])
{
    const char *named = getenv("CT_TEST_DRIVER");
    void *library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

    if (!library) {
        snprintf(why, 200, "--memory=cuda: no CUDA driver: %.150s", dlerror());
        return -1;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        *places[i].function = dlsym(library, places[i].name);
        if (!*places[i].function) {
            snprintf(why, 200, "--memory=cuda: the CUDA driver has no %s", places[i].name);
            return -1;
        }
    }
    return 0;
}

/* A number of the environment; `otherwise` without one, -1 for what is none. */
static int number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    char *end;
    long value;

    if (!text || !*text)
        return otherwise;
    value = strtol(text, &end, 10);
    return *end || value < 0 || value > 1 << 20 ? -1 : (int)value;
}

/* Its number here, of so many. */
static int choose(int count, char why[200])
{
    const int chosen = number("CT_BENCH_GPU", -2), local = number("LOCAL_RANK", 0);

    if (chosen == -2)
        return (local > 0 ? local : 0) % count;
    if (chosen < 0 || chosen >= count) {
        snprintf(why, 200, "CT_BENCH_GPU=%.40s is no GPU; there are 0 to %d",
                 getenv("CT_BENCH_GPU"), count - 1);
        return -1;
    }
    return chosen;
}

int device_open(char why[200])
{
    void *context;
    int count = 0, ordinal, result;

    if (load(why) < 0)
        return -1;
    result = driver.init(0);
    if (result == 0)
        result = driver.count(&count);
    if (result != 0 || count == 0) {
        snprintf(why, 200, "--memory=cuda: no GPU: %s", result ? words_of(result) : "there are 0");
        return -1;
    }
    ordinal = choose(count, why);
    if (ordinal < 0)
        return -1;
    result = driver.get(&gpu, ordinal);
    if (result == 0)
        result = driver.retain(&context, gpu);
    if (result == 0)
        result = driver.set_current(context);
    if (result != 0)
        snprintf(why, 200, "--memory=cuda: GPU %d can't be used: %s", ordinal, words_of(result));
    return result == 0 ? 0 : -1;
}

static void must(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "ct_bench: %s: %s\n", what, words_of(result));
    exit(1);
}

static address of(const void *at)
{
    return (address)(uintptr_t)at;
}

void device_id(uint64_t id[2])
{
    must(driver.uuid(id, gpu), "asking for a GPU's UUID");
}

void *device_stream(void)
{
    const unsigned apart = 1; /* from the default one: CU_STREAM_NON_BLOCKING */
    void *stream = NULL;

    must(driver.stream(&stream, apart), "making a stream");
    return stream;
}

void device_finish(void *stream)
{
    must(driver.synchronize(stream), "waiting for a stream");
}

void *device_alloc(size_t bytes)
{
    address at = 0;

    return driver.alloc(&at, bytes) == 0 ? (void *)(uintptr_t)at : NULL;
}

void device_free(void *at)
{
    must(driver.release(of(at)), "freeing device memory");
}

/* From memory of the process that copy returns when the bytes are on their way: it is waited for,
 * or a measured call would wait. */
void device_put(void *to, const void *from_host, size_t bytes)
{
    must(driver.put(of(to), from_host, bytes), "copying to device memory");
    must(driver.synchronize(NULL), "copying to device memory");
}

void device_get(void *to_host, const void *from, size_t bytes)
{
    must(driver.fetch(to_host, of(from), bytes), "copying from device memory");
}

void device_copy(void *to, const void *from, size_t bytes)
{
    must(driver.copy(of(to), of(from), bytes, NULL), "copying device memory");
    must(driver.synchronize(NULL), "copying device memory");
}
