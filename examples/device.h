/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - the functions of the CUDA driver that the examples call, found when they run.
 *
 * The examples build without CUDA and start without a GPU: driver_open() loads libcuda.so.1,
 * which comes with the GPU's driver.  Types and values are those of cuda.h.  The names
 * in quotes are the library's (cuda.h replaces cuMemAlloc with cuMemAlloc_v2). */
#ifndef EXAMPLES_DEVICE_H
#define EXAMPLES_DEVICE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

typedef unsigned long long device_pointer; /* CUdeviceptr */
typedef struct CUctx_st *device_context;
typedef struct CUstream_st *device_stream;
typedef struct CUevent_st *device_event;

enum {
    DEVICE_OK = 0,
    DEVICE_STUB = 34,       /* the toolkit's libcuda, which is there to be linked */
    DEVICE_NONE = 100,      /* CUDA_ERROR_NO_DEVICE */
    DEVICE_NOT_READY = 600, /* of a stream: there is something to do */
};

/* Each returns a CUresult. */
#define DRIVER_FUNCTIONS(X)                                                                    \
    X(init, "cuInit", (unsigned flags))                                                        \
    X(error_text, "cuGetErrorString", (int error, const char **text))                          \
    X(device_count, "cuDeviceGetCount", (int *count))                                          \
    X(device_name, "cuDeviceGetName", (char *name, int size, int device))                      \
    X(device_pci, "cuDeviceGetPCIBusId", (char *address, int size, int device))                \
    X(can_access, "cuDeviceCanAccessPeer", (int *can, int device, int peer))                   \
    X(p2p_attribute, "cuDeviceGetP2PAttribute", (int *value, int which, int device, int peer)) \
    X(retain, "cuDevicePrimaryCtxRetain", (device_context * context, int device))              \
    X(use, "cuCtxSetCurrent", (device_context context))                                        \
    X(synchronize, "cuCtxSynchronize", (void))                                                 \
    X(enable_peer, "cuCtxEnablePeerAccess", (device_context peer, unsigned flags))             \
    X(disable_peer, "cuCtxDisablePeerAccess", (device_context peer))                           \
    X(alloc, "cuMemAlloc_v2", (device_pointer * at, size_t bytes))                             \
    X(release, "cuMemFree_v2", (device_pointer at))                                            \
    X(from_host, "cuMemcpyHtoD_v2", (device_pointer to, const void *from, size_t bytes))       \
    X(to_host, "cuMemcpyDtoH_v2", (void *to, device_pointer from, size_t bytes))               \
    X(copy_peer, "cuMemcpyPeerAsync",                                                          \
      (device_pointer to, device_context to_context, device_pointer from,                      \
       device_context from_context, size_t bytes, device_stream stream))                       \
    X(stream_create, "cuStreamCreate", (device_stream * stream, unsigned flags))               \
    X(stream_destroy, "cuStreamDestroy_v2", (device_stream stream))                            \
    X(stream_query, "cuStreamQuery", (device_stream stream))                                   \
    X(stream_wait, "cuStreamWaitEvent",                                                        \
      (device_stream stream, device_event event, unsigned flags))                              \
    X(event_create, "cuEventCreate", (device_event * event, unsigned flags))                   \
    X(event_destroy, "cuEventDestroy_v2", (device_event event))                                \
    X(event_record, "cuEventRecord", (device_event event, device_stream stream))               \
    X(event_ms, "cuEventElapsedTime", (float *ms, device_event from, device_event to))

struct driver {
#define DRIVER_FIELD(field, name, arguments) int(*field) arguments;
    DRIVER_FUNCTIONS(DRIVER_FIELD)
#undef DRIVER_FIELD
};

/* The driver's words for its error. */
static inline const char *driver_text(const struct driver *driver, int error)
{
    const char *text = NULL;

    return driver->error_text(error, &text) == DEVICE_OK && text ? text : "an unknown error";
}

/* How many GPUs there are; 0: none, and `why` says so; -1: there may be, but `why`.  The library
 * stays loaded: libct looks for it when it is given a pointer that is not the host's. */
static inline int driver_open(struct driver *driver, char *why, size_t size)
{
    const struct {
        void **function;
        const char *name;
    } places[] = {
#define DRIVER_PLACE(field, name, arguments) { (void **)&driver->field, name },
        DRIVER_FUNCTIONS(DRIVER_PLACE)
#undef DRIVER_PLACE
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    int count = 0, result;

    if (!library) {
        snprintf(why, size, "there is no GPU here: no libcuda.so.1, which comes with its driver");
        return 0;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!(*places[i].function = dlsym(library, places[i].name))) {
            snprintf(why, size, "this libcuda.so.1 has no %s", places[i].name);
            return -1;
        }
    result = driver->init(0);
    if (result == DEVICE_NONE || result == DEVICE_STUB) {
        snprintf(why, size, "there is no GPU here: %s", driver_text(driver, result));
        return 0;
    }
    if (result == DEVICE_OK)
        result = driver->device_count(&count);
    if (result != DEVICE_OK) {
        snprintf(why, size, "the CUDA driver can't be used: %s", driver_text(driver, result));
        return -1;
    }
    if (count == 0)
        snprintf(why, size, "there is no GPU here: the driver shows none");
    return count;
}

#endif
