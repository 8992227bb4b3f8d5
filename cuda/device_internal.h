/* SPDX-License-Identifier: Apache-2.0 */
/* device_internal.h - what a struct device is made of, for the files of this folder. */
#ifndef CUDA_DEVICE_INTERNAL_H
#define CUDA_DEVICE_INTERNAL_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cuda/cuda.h"
#include "cuda/libcuda.h"

struct hold_words; /* stream_hold.c: of streams that stand still */
struct import;     /* ipc_import.c: one mapping of another process's memory */

/* An allocation of this process that was exported: asking the driver for it takes far longer than
 * asking which allocation a pointer is of. */
struct exported {
    uint64_t id; /* of the allocation */
    CUipcMemHandle ipc;
};

enum { EXPORTS_KEPT = 32, EVENTS_KEPT = 8, PEERS_KEPT = 16 };

struct device {
    /* Never change after cuda_gpu_of() has given it out. */
    const struct driver *driver;
    CUcontext context;
    CUdevice device;
    CUuuid uuid;
    int processors;             /* multiprocessors */
    CUstream stream;            /* libct's own: no default stream waits for it, nor it for one */
    CUstream copies[COPY_WAYS]; /* copy.c: likewise */
    struct device *next;

    void *sample; /* test_pattern.c, which has a lock of its own; NULL: none yet */
    struct hold_words
        *hold_words; /* stream_hold.c, which has a lock of its own; NULL: none can be held yet */

    pthread_mutex_t lock; /* of all that follows */
    CUmodule module;      /* reduce_launch.c: the kernels; NULL until the first is needed */
    int has_no_kernels;   /* reduce_launch.c: the driver said so */
    CUfunction *kernels;  /* reduce_launch.c: of that module, by its own numbers; NULL until then */
    CUevent events[EVENTS_KEPT]; /* device.c: that no wait uses now */
    int events_idle;
    struct own_memory *own_memory; /* scratch_pool.c: used and idle */
    CUcontext peers[PEERS_KEPT]; /* peer_access.c: of this process, whose memory this one reaches */
    int peers_known;
    struct import *imports;
    _Atomic int is_unused_left; /* of these; may be read without the lock */
    struct exported exports[EXPORTS_KEPT];
    unsigned exports_made; /* the next one takes the place of the oldest, if all are taken */
};

/* pointer_query.c: 1 if the pointer is a GPU's.  Memory of pools and of cuMemCreate() is a device's
 * and no context's: *context is NULL. */
int gpu_memory_of(const void *pointer, CUcontext *context, CUdevice *device);
/* ipc_import.c: what could not be closed while a stream was held, if it can be now. */
void gpu_close_unused(struct device *gpu);
/* ipc_export.c: this process made it. */
int gpu_is_ours(const struct device_handle *handle);
/* reduce_launch.c: gpu->kernels never changes once this was CT_OK. */
ct_status gpu_load_kernels(struct device *gpu);
/* device.c: what is captured does not run now. */
ct_status gpu_refuse_capture(struct device *gpu, CUstream stream);
/* device.c: the first of all, by ->next. */
struct device *gpu_first(void);
/* stream_hold.c: with the GPU, before anything waits there; if it fails the first hold tries again.
 */
void gpu_prepare_holds(struct device *gpu);
/* 1: no stream of this process stands still, nor will any until gpu_has_waited(), so the
 * driver may be asked for what might wait for all that runs. */
int gpu_may_wait(void);
void gpu_has_waited(void);
ct_status gpu_refuse_to_wait(void); /* else: CT_ERR_UNSUPPORTED, and why */
/* device.c: notes what a stream has to do until now, for cuda_wait_for() and cuda_forget(). */
ct_status gpu_record(struct device *gpu, CUstream stream, void **mark);

/* peer_access.c: the memory at `pointer` is of this process; its GPU may be another, which this one
 * then shall reach.  The GPU is locked and its context current. */
ct_status gpu_reach_own(struct device *gpu, const void *pointer);
/* The same of what was mapped: the driver has done what was to do, if these GPUs can at all. */
ct_status gpu_reach_mapped(struct device *gpu, CUdeviceptr mapped);

/* device.c: the context that CUDA's own libraries use on this device. */
ct_status gpu_primary_context(const struct driver *driver, CUdevice device, CUcontext *context);

#endif
