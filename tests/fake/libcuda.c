/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.c - the fake driver's settings, devices and contexts. */
#include "tests/fake/libcuda.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake/counts.h"

/* A little late even where nobody asked for it: who does not wait gets what was there before. */
enum { ALWAYS_LATE_US = 50, LAG_US = 3000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static pid_t initialised;                                /* by this process; 0: not yet */
static int devices, visible[MAX_DEVICES];                /* those of the machine */
static struct CUctx_st primaries[MAX_DEVICES];
static int lag_us, ipc;
static int fails_in; /* calls of: */
static char fails[64];
static _Thread_local CUcontext current;

_Atomic int fake_counts[FAKE_COUNTS];

void fake_dies(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("fake CUDA driver: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static int number_of(const char *name, int otherwise)
{
    const char *value = getenv(name);

    return value && *value ? atoi(value) : otherwise;
}

static void read_devices(void)
{
    const int all = number_of("FAKE_CUDA_DEVICES", 1);
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    char *end;

    devices = 0;
    if (!list)
        while (devices < all && devices < MAX_DEVICES) {
            visible[devices] = devices;
            devices++;
        }
    while (list && *list && devices < MAX_DEVICES) {
        const long device = strtol(list, &end, 10);

        if (end == list || device < 0 || device >= all)
            break;
        visible[devices++] = (int)device;
        list = *end ? end + 1 : end;
    }
}

static void read_lag(void)
{
    const char *who = getenv("FAKE_CUDA_LAG_RANK"), *rank = getenv("RANK");
    const int us = number_of("FAKE_CUDA_LAG_US", LAG_US);

    lag_us = who && (!strcmp(who, "all") || (rank && !strcmp(who, rank))) ? us : ALWAYS_LATE_US;
}

static void read_failures(void)
{
    const char *what = getenv("FAKE_CUDA_FAIL"), *colon = what ? strchr(what, ':') : NULL;

    fails_in = number_of("FAKE_CUDA_FAIL_ALLOC", 0);
    snprintf(fails, sizeof fails, "cuMemAlloc");
    if (colon) {
        snprintf(fails, sizeof fails, "%.*s", (int)(colon - what), what);
        fails_in = atoi(colon + 1);
    }
}

CUresult cuInit(unsigned flags)
{
    CUresult result = CUDA_SUCCESS;

    (void)flags;
    pthread_mutex_lock(&lock);
    if (initialised && initialised != getpid()) {
        result = CUDA_ERROR_NOT_INITIALIZED; /* a driver does not survive fork() */
    } else {
        if (!initialised)
            read_devices();
        read_lag();
        read_failures();
        ipc = number_of("FAKE_CUDA_IPC", 1);
        fake_seed((uint32_t)number_of("FAKE_CUDA_ORDER", 0));
        initialised = getpid();
        if (devices == 0)
            result = CUDA_ERROR_NO_DEVICE;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int fake_is_named(const char *function, const char *name)
{
    const size_t length = strlen(name);

    return !strncmp(function, name, length)
           && (!function[length] || !strncmp(function + length, "_v", 2));
}

/* Waits make these calls, so their number depends on timing. */
static int is_query(const char *function)
{
    return strstr(function, "Query") || fake_is_named(function, "cuCtxSetCurrent");
}

CUresult fake_begin(const char *function)
{
    CUresult result = CUDA_SUCCESS;

    fake_wait_for_driver();
    atomic_fetch_add(&fake_counts[is_query(function) ? FAKE_QUERIES : FAKE_CALLS], 1);
    pthread_mutex_lock(&lock);
    if (initialised != getpid())
        result = CUDA_ERROR_NOT_INITIALIZED;
    else if (fails_in > 0 && fake_is_named(function, fails) && --fails_in == 0)
        result =
            fake_is_named(function, "cuMemAlloc") ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
    pthread_mutex_unlock(&lock);
    return result == CUDA_SUCCESS ? capture_allows(function) : result;
}

CUresult fake_begin_in(const char *function, CUcontext *context)
{
    const CUresult result = fake_begin(function);

    if (result != CUDA_SUCCESS)
        return result;
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = current;
    return (CUresult)atomic_load(&current->failed);
}

static int read_locked(const int *setting)
{
    int value;

    pthread_mutex_lock(&lock);
    value = *setting;
    pthread_mutex_unlock(&lock);
    return value;
}

int fake_lag_us(void)
{
    return read_locked(&lag_us);
}

int fake_allows_ipc(void)
{
    return read_locked(&ipc);
}

/* ---- Devices: fixed by the first cuInit() ---------------------------------- */

int fake_machine_device(int device)
{
    return visible[device];
}

int fake_device_of_machine(int machine_device)
{
    for (int device = 0; device < devices; device++)
        if (visible[device] == machine_device)
            return device;
    return -1;
}

CUresult fake_begin_device(const char *function, int device)
{
    const CUresult result = fake_begin(function);

    if (result != CUDA_SUCCESS)
        return result;
    return device >= 0 && device < devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
    const CUresult result = fake_begin(__func__);

    if (result == CUDA_SUCCESS)
        *version = number_of("FAKE_CUDA_VERSION", CUDA_VERSION);
    return result;
}

CUresult cuDeviceGetCount(int *count)
{
    const CUresult result = fake_begin(__func__);

    if (result == CUDA_SUCCESS)
        *count = devices;
    return result;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    const CUresult result = fake_begin_device(__func__, ordinal);

    if (result == CUDA_SUCCESS)
        *device = ordinal;
    return result;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    const CUresult result = fake_begin_device(__func__, device);

    if (result == CUDA_SUCCESS) {
        memcpy(uuid->bytes, "a fake CUDA GPU", 16);
        uuid->bytes[15] = (char)visible[device];
    }
    return result;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    const CUresult result = fake_begin_device(__func__, device);

    if (result == CUDA_SUCCESS)
        *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT       ? 4
                 : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
                 : attribute == CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING       ? 1
                 : attribute == CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
                     ? !fake_setting_is("FAKE_CUDA_ADDRESSES", "own")
                     : 0;
    return result;
}

/* ---- Contexts: each device has its primary one ------------------------------ */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = fake_begin_device(__func__, device);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    if (!primaries[device].legacy) {
        primaries[device].device = device;
        result = fake_add_stream(&primaries[device], 1, 0, &primaries[device].legacy);
    }
    pthread_mutex_unlock(&lock);
    *context = &primaries[device];
    return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return fake_begin_device(__func__, device); /* it stays: others may have retained it */
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    const CUresult result = fake_begin(__func__);

    if (result != CUDA_SUCCESS)
        return result;
    if (context && (context < primaries || context >= primaries + MAX_DEVICES))
        return CUDA_ERROR_INVALID_CONTEXT;
    current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    const CUresult result = fake_begin(__func__);

    if (result == CUDA_SUCCESS)
        *context = current;
    return result;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext context;
    const CUresult result = fake_begin_in(__func__, &context);

    if (result == CUDA_SUCCESS)
        *device = context->device;
    return result;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUcontext context;
    const CUresult result = fake_begin_in(__func__, &context);

    if (result == CUDA_SUCCESS) {
        *least = 0;
        *greatest = -5;
    }
    return result;
}
