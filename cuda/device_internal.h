/* SPDX-License-Identifier: Apache-2.0 */
/* device_internal.h - struct device, for the files of this folder. */
#ifndef CUDA_DEVICE_INTERNAL_H
#define CUDA_DEVICE_INTERNAL_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cuda/cuda.h"
#include "cuda/libcuda.h"

struct gate_flags; /* stream_gate.c */
struct import;     /* ipc_import.c: one mapping of another process's memory */
struct pool_block; /* scratch_pool.c */

/* An exported allocation of this process.  It is kept because getting its handle from the driver
 * takes far longer than finding the allocation of a pointer. */
struct exported {
    uint64_t id; /* of the allocation */
    CUipcMemHandle ipc;
};

enum { EXPORTS_KEPT = 32, PEERS_KEPT = 16 };

struct device {
    /* Constant once cuda_gpu_of() has returned the GPU. */
    const struct driver *driver;
    CUcontext context;
    CUdevice device;
    CUuuid uuid;
    int processors;          /* multiprocessors */
    int same_host_addresses; /* registered host memory has the same address on the GPU */
    CUstream stream; /* libct's own: it and the default streams do not wait for each other */
    CUstream copies[COPY_WAYS]; /* copy.c: they do not wait for the default streams either */
    struct device *next;

    void *test_pattern; /* scratch_pool.c, which has a lock for it; NULL: not created yet */
    struct gate_flags *gate_flags; /* stream_gate.c has their lock; NULL: none yet */

    pthread_mutex_t lock; /* for all fields below */
    CUmodule module;      /* reduce_launch.c: the kernels; NULL: not loaded yet */
    int has_no_kernels;   /* reduce_launch.c: the driver can't run them on this GPU */
    CUfunction *kernels;  /* reduce_launch.c: by enum kernel; NULL: not loaded */
    CUevent *events;      /* context.c: idle events */
    int events_idle, events_room;
    struct pool_block *scratch_pool; /* used and idle blocks */
    CUcontext peers[PEERS_KEPT];     /* contexts of this process that this one can access */
    int peers_known;
    struct import *imports;
    _Atomic int is_unused_left; /* a mapping without users is left; may be read without the lock */
    struct exported exports[EXPORTS_KEPT];
    unsigned exports_made; /* counts exports; each new one replaces the oldest once all are used */
};

/* pointer_query.c: returns 1 if the pointer points to GPU memory.  Memory of pools and of
 * cuMemCreate() belongs to a device but to no context: then *context is NULL. */
int gpu_memory_of(const void *pointer, CUcontext *context, CUdevice *device);
/* ipc_import.c: closes mappings that could not be closed while a gate was closed. */
void gpu_close_unused(struct device *gpu);
/* ipc_export.c: says whether this process exported the memory. */
int gpu_is_ours(const struct device_handle *handle);
/* reduce_launch.c: loads the kernels.  After CT_OK gpu->kernels never changes. */
ct_status gpu_load_kernels(struct device *gpu);
/* context.c: fails if the stream is being captured, since captured work does not run now. */
ct_status gpu_refuse_capture(struct device *gpu, CUstream stream);
/* device.c: the first GPU; the others follow by ->next. */
struct device *gpu_first(void);
/* stream_gate.c: creates the flags before any stream waits; if it fails, the first gate tries
 * again. */
void gpu_prepare_gates(struct device *gpu);
/* stream_gate.c: says whether a driver call that might wait for all running work may be made now.
 * 1: no stream of this process waits at a closed gate, and none will until gpu_has_waited(). */
int gpu_may_wait(void);
void gpu_has_waited(void);
ct_status gpu_refuse_to_wait(void); /* the error after gpu_may_wait() said 0 */
/* host_registration.c: gives the address of registered host memory on the GPU. */
ct_status gpu_address_of(struct device *gpu, const volatile void *host, CUdeviceptr *at);
/* context.c: marks the work enqueued until now, for cuda_wait_for() and cuda_forget(). */
ct_status gpu_record(struct device *gpu, CUstream stream, void **mark);

/* device.c: gives the context that CUDA's own libraries use on the device. */
ct_status gpu_primary_context(const struct driver *driver, CUdevice device, CUcontext *context);

#endif
