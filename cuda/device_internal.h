/* SPDX-License-Identifier: Apache-2.0 */
/* device_internal.h - struct device and the functions that only the files of this folder use. */
#ifndef CUDA_DEVICE_INTERNAL_H
#define CUDA_DEVICE_INTERNAL_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cuda/cuda.h"
#include "cuda/libcuda.h"

struct gate_flags; /* defined in stream_gate.c */
struct import;     /* one mapping of another process's memory; defined in ipc_import.c */
struct pool_block; /* defined in scratch_pool.c */

/* An exported allocation of this process.  libct stores the handle, because getting the handle from
 * the driver takes far longer than finding the allocation of a pointer. */
struct exported {
    uint64_t id; /* id of the allocation */
    CUipcMemHandle ipc;
};

enum { EXPORTS_KEPT = 32, PEERS_KEPT = 16 };

struct device {
    /* These fields are constant once cuda_gpu_of() has returned the GPU. */
    const struct driver *driver;
    CUcontext context;
    CUdevice device;
    CUuuid uuid;
    int processors;          /* number of multiprocessors */
    int same_host_addresses; /* 1 if registered host memory has the same address on the GPU */
    CUstream stream; /* libct's own stream; it and the default streams do not wait for each other */
    /* one stream for each direction of background copies (copy.c); these streams and the default
     * streams do not wait for each other */
    CUstream copies[COPY_WAYS];
    struct device *next;

    /* the test pattern, or NULL if not created yet; scratch_pool.c has its lock */
    void *test_pattern;
    /* flags of the stream gates, or NULL if not created yet; stream_gate.c has their lock */
    struct gate_flags *gate_flags;

    pthread_mutex_t lock; /* protects all fields below */
    CUmodule module;      /* the kernels; NULL if not loaded yet */
    int has_no_kernels;   /* 1 if the driver can never run the kernels on this GPU */
    CUfunction *kernels;  /* [KERNEL_COUNT], by enum kernel; NULL if not loaded yet */
    CUevent *events; /* [events_room]; the first events_idle entries are idle events for reuse */
    int events_idle, events_room;
    struct pool_block *scratch_pool; /* a list of used and idle blocks */
    /* other contexts of this process; this context can access their memory */
    CUcontext peers[PEERS_KEPT];
    int peers_known;
    struct import *imports;
    /* 1 if a mapping without users is open; may be read without the lock */
    _Atomic int is_unused_left;
    struct exported exports[EXPORTS_KEPT];
    /* number of handles stored so far; a new handle replaces the oldest one in a full array */
    unsigned exports_made;
};

/* Returns 1 if the pointer points to GPU memory, else 0.  Sets *context to NULL if the memory
 * belongs to a device but to no context, as memory of pools and of cuMemCreate() does.  Defined in
 * pointer_query.c. */
int gpu_memory_of(const void *pointer, CUcontext *context, CUdevice *device);
/* Closes mappings that could not be closed while a gate was closed.  Defined in ipc_import.c. */
void gpu_close_unused(struct device *gpu);
/* Returns 1 if this process exported the memory, else 0.  Defined in ipc_export.c. */
int gpu_is_ours(const struct device_handle *handle);
/* Loads the kernels.  After CT_OK gpu->kernels never changes.  Defined in reduce_launch.c. */
ct_status gpu_load_kernels(struct device *gpu);
/* Returns CT_ERR_INVALID if the stream is being captured, since captured work does not run now.
 * Defined in context.c. */
ct_status gpu_refuse_capture(struct device *gpu, CUstream stream);
/* Returns the first GPU of the list, or NULL.  `next` of each GPU points to the next one.  Defined
 * in device.c. */
struct device *gpu_first(void);
/* Creates the flags of the gates, before any stream waits.  If this fails, the first gate tries
 * again.  Defined in stream_gate.c. */
void gpu_prepare_gates(struct device *gpu);
/* Returns 1 if the thread may now make a driver call that might wait for all running work, else 0.
 * After 1, no stream of this process waits at a closed gate, and none will until the thread calls
 * gpu_has_waited().  Defined in stream_gate.c. */
int gpu_may_wait(void);
void gpu_has_waited(void);
ct_status gpu_refuse_to_wait(void); /* sets the error message after gpu_may_wait() returned 0 */
/* Sets *at to the address of registered host memory on the GPU.  Defined in host_registration.c. */
ct_status gpu_address_of(struct device *gpu, const volatile void *host, CUdeviceptr *at);
/* Marks the work enqueued so far, for cuda_wait_for() and cuda_forget().  Defined in context.c. */
ct_status gpu_record(struct device *gpu, CUstream stream, void **mark);

/* Retains the device's primary context, which CUDA's own libraries use, and sets *context to it.
 * Defined in device.c. */
ct_status gpu_primary_context(const struct driver *driver, CUdevice device, CUcontext *context);

#endif
