/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - what this folder gives the others, without a CUDA header.
 *
 * Built only with CT_CUDA; CT_WITH_CUDA says so to the code.  What fails here has
 * said why (ct_last_error()), in the driver's words where it was the driver. */
#ifndef CUDA_CUDA_H
#define CUDA_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "include/ct.h"

struct fold;

/* 1 if the pointer is device memory that the host can't touch.  Asks the driver
 * only when the program itself has loaded one: a few ns until then. */
int cuda_owns(const void *pointer);

/* ---- The GPU --------------------------------------------------------------- */

/* One GPU as this process uses it: the context that its pointers belong to, and a
 * stream of libct's own.  Kept until the process ends; any thread may use it. */
struct cuda_gpu;

/* Whose memory it is (cuda_owns() says that it is a GPU's).  Its context becomes current on this
 * thread, and stays so. */
ct_status cuda_gpu_of(const void *pointer, struct cuda_gpu **gpu);
/* Its UUID: the same in every process that uses it, whatever number it has there. */
void cuda_gpu_id(const struct cuda_gpu *gpu, unsigned char id[16]);
/* Its context becomes current on this thread. */
ct_status cuda_gpu_use(struct cuda_gpu *gpu);

/* Waits until all is done that was enqueued in the stream of the caller's (a CUstream, which is a
 * cudaStream_t; NULL: the legacy default one).  Ends at the deadline (ms of clock_ms()) with
 * CT_ERR_TIMEOUT and soon after *given_up (may be NULL) is set with CT_ERR_ABORTED: then what was
 * enqueued goes on, and its buffers are not free.  CT_ERR_CUDA: something in it failed. */
ct_status cuda_stream_wait(struct cuda_gpu *gpu, void *stream, int64_t deadline,
                           const _Atomic int *given_up);

/* Blocking copies between this GPU and any host memory, on libct's own stream: behind all that is
 * enqueued there. */
ct_status cuda_to_host(struct cuda_gpu *gpu, void *to, const void *from, size_t bytes);
ct_status cuda_from_host(struct cuda_gpu *gpu, void *to, const void *from, size_t bytes);

/* ---- Memory that other processes can map ------------------------------------ */

/* Plain data that travels.  The driver exports whole allocations: the pointer lies at base +
 * offset. */
struct cuda_handle {
    unsigned char ipc[64];
    uint64_t base, bytes; /* the allocation, where its owner sees it */
    uint64_t id;          /* of the allocation: no other one of this process ever gets it */
    uint64_t offset;
    uint64_t process; /* drawn by each, for pids come again */
    int32_t pid;
    int32_t unused; /* 0: no byte is left undefined */
};

/* `bytes` from the pointer on.  CT_ERR_UNSUPPORTED: memory that can't be mapped elsewhere (managed,
 * from a pool, made by cuMemCreate()), or a machine where none can; CT_ERR_INVALID: the
 * allocation ends earlier. */
ct_status cuda_export(struct cuda_gpu *gpu, const void *pointer, size_t bytes,
                      struct cuda_handle *handle);
/* Where that memory is in this process, for what this GPU does; one of this process is the pointer
 * itself.  Mappings are kept: a second import of an allocation costs a look.  One whose memory
 * the owner has freed since, and got again for another allocation, is closed first.
 * The owner must live, and must not free the memory while it is used here. */
ct_status cuda_import(struct cuda_gpu *gpu, const struct cuda_handle *handle, void **pointer);
/* Closes what was imported from that process: it has ended, or left.  Nothing enqueued may still
 * use it. */
void cuda_release_imports(struct cuda_gpu *gpu, int pid);

/* ---- Enqueued on libct's own stream ------------------------------------------ */

/* All pointers are this GPU's or imported. */

/* The same bits as combine_fold_to() (runtime/combine.h), where those are defined. */
ct_status cuda_fold(struct cuda_gpu *gpu, const struct fold *fold, void *const *dst, int dsts,
                    const void *const *src, size_t count);
ct_status cuda_copy(struct cuda_gpu *gpu, void *to, const void *from, size_t bytes);
/* Waits for all of them, as cuda_stream_wait(). */
ct_status cuda_finish(struct cuda_gpu *gpu, int64_t deadline, const _Atomic int *given_up);

#endif
