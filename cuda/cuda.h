/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - the functions of this folder, without a CUDA header.  Most are members of struct space
 * (runtime/device/memory_kind.h), which says what they do.
 *
 * Built only with CT_CUDA, which defines CT_WITH_CUDA.  A failure sets ct_last_error(), with the
 * driver's text if it was the driver's. */
#ifndef CUDA_CUDA_H
#define CUDA_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/device/memory_kind.h"

/* 1 if the program has loaded a driver. */
int cuda_is_there(void);

/* ---- The GPU --------------------------------------------------------------- */

/* A struct device is one GPU as this process uses it: the context of its pointers, and libct's own
 * streams.  It is kept until the process ends; any thread may use it. */

/* Gives the GPU of memory that the host can't access; NULL: the memory belongs to no GPU.  Calls
 * the driver only if the program has loaded one; until then the call takes a few ns. */
ct_status cuda_gpu_of(const void *pointer, struct device **gpu);
/* cuda_enter() saves the program's current context of this thread; cuda_leave() restores it.
 * Between the two calls the thread's capture mode is relaxed, so that libct's queries and
 * allocations do not invalidate a capture. */
ct_status cuda_enter(void **before);
void cuda_leave(void *before);
/* Gives the GPU of this thread's current context; CT_ERR_UNSUPPORTED: no context is current. */
ct_status cuda_gpu_current(struct device **gpu);
/* Gives the GPU's UUID, which is the same in every process, even where the GPU has another number.
 */
void cuda_gpu_id(const struct device *gpu, unsigned char id[16]);
/* Makes the GPU's context current on this thread. */
ct_status cuda_gpu_use(struct device *gpu);

/* Says whether the stream is being captured into a graph. */
ct_status cuda_capture_of(struct device *gpu, void *stream, enum capture *capture);
/* Marks the work enqueued until now in a stream of the caller (a CUstream, which is a cudaStream_t;
 * NULL: the legacy default one).  CT_ERR_INVALID: the stream is being captured into a graph. */
ct_status cuda_mark(struct device *gpu, void *stream, void **mark);
/* Waits until the mark is reached.  CT_ERR_TIMEOUT: the deadline (ms of clock_ms()) is over.
 * CT_ERR_ABORTED: *given_up (may be NULL) was set.  In both cases the work goes on, and its buffers
 * are not free.  CT_ERR_CUDA: the work failed. */
ct_status cuda_wait_for(struct device *gpu, void *mark, struct patience wait);
void cuda_forget(struct device *gpu, void *mark); /* frees a mark, waited for or not */

/* Enqueues the operations in the stream, in this order.  CT_ERR_UNSUPPORTED: the driver can't. */
ct_status cuda_flag_ops(struct device *gpu, void *stream, const struct flag_op *ops, int count);

/* Tests whether streams can write flags: libct's own stream writes 0 to this unused flag. */
ct_status cuda_try_flag(struct device *gpu, void *flag);

/* Makes the capture of the stream invalid. */
void cuda_spoil(struct device *gpu, void *stream);

/* cuda_close_gate() makes work that is enqueued later in the stream wait until the gate is opened.
 * Any thread may open it, whatever the driver is doing.  CT_ERR_UNSUPPORTED: the driver can't do
 * this, too many gates are closed, or a limit of the owner is over. */
ct_status cuda_close_gate(struct device *gpu, void *stream, const void *owner, void **gate);
void cuda_open_gate(void *gate);
/* As in struct space; no driver is called. */
void cuda_begin_limit(struct gate_limit *limit, const void *owner, int64_t deadline);
int cuda_set_limit(struct gate_limit *limit, int64_t deadline);
ct_status cuda_fail_late(void);
void cuda_end_limit(struct gate_limit *limit);

/* Blocking copies between this GPU and any host memory, in libct's own stream. */
ct_status cuda_to_host(struct device *gpu, void *to, const void *from, size_t bytes);
ct_status cuda_from_host(struct device *gpu, void *to, const void *from, size_t bytes);

/* Copies in the background, with one stream for each direction.  A copy is done when a later mark
 * of its direction is reached.  If the host memory is not registered, begin_copy() may take as long
 * as the copy.  A copy between GPUs reads imported memory. */
ct_status cuda_begin_copy(struct device *gpu, enum copy_way way, void *to, const void *from,
                          size_t bytes);
ct_status cuda_mark_copies(struct device *gpu, enum copy_way way, void **mark);
void cuda_end_copies(struct device *gpu); /* waits until all are done */

/* Enclose a call in which a stream waits for flags that other ranks' streams write: from before the
 * waits are enqueued until the stream has passed them.  Meanwhile the call counts as a closed gate.
 */
void cuda_call_enters_stream(void);
void cuda_call_leaves_stream(void);

/* Registers (pins) host memory for the copies of all GPUs.  The caller must unregister the memory
 * before unmapping it.  CT_ERR_UNSUPPORTED: a gate is closed, for which the driver might wait.
 * may_wait: unregisters the memory even then. */
ct_status cuda_register_host(struct device *gpu, void *memory, size_t bytes);
ct_status cuda_unregister_host(struct device *gpu, void *memory, int may_wait);

/* ---- Memory that other processes can map ------------------------------------ */

/* The scratch pool.  Released memory is kept and never freed, so other processes may still have it
 * mapped.  cuda_release() accepts NULL.  To get more memory, the driver may wait for all running
 * work; while a gate is closed, cuda_alloc_now() fails instead with CT_ERR_UNSUPPORTED. */
ct_status cuda_alloc(struct device *gpu, size_t bytes, void **memory);
ct_status cuda_alloc_now(struct device *gpu, size_t bytes, void **memory);
void cuda_release(struct device *gpu, void *memory);

/* Gives TEST_PATTERN_BYTES that never change, as test_pattern_fill() makes them from the GPU's id.
 * Fails like cuda_alloc_now(). */
ct_status cuda_test_pattern(struct device *gpu, void **memory);

/* Says whether cuda_export() can export this memory. */
int cuda_is_exportable(struct device *gpu, const void *pointer);
/* Exports `bytes` from the pointer on.  CT_ERR_UNSUPPORTED: other processes can't map the memory
 * (it is managed, from a pool, made by cuMemCreate(), or the machine can't do it).  CT_ERR_INVALID:
 * the allocation ends earlier. */
ct_status cuda_export(struct device *gpu, const void *pointer, size_t bytes,
                      struct device_handle *handle);
/* Maps exported memory for this GPU; memory of this process keeps its own address.
 * CT_ERR_UNSUPPORTED: the memory belongs to another GPU, and this one has no peer access to it.  A
 * mapping is kept as long as it has users (any addresses), so a second import of an allocation only
 * looks it up.  If the owner has freed the memory and got the same place for another allocation,
 * the old mapping is closed first; CT_ERR_INVALID: a gate is closed, so it can't be closed now. The
 * owner must live, and must not free the memory while it is used here. */
ct_status cuda_import(struct device *gpu, const struct device_handle *handle, const void *user,
                      void **pointer);
/* Removes this user from the mappings on all GPUs, and closes those that have no other user.  While
 * a gate is closed, they stay until a later call.  No enqueued work may still use them. */
void cuda_put(const void *user);

/* ---- Enqueued on libct's own stream ------------------------------------------ */

/* All pointers belong to this GPU or are imported. */

/* Folds each part.  The result has the same bits as that of combine_fold_to()
 * (runtime/reduction/combine.h), where that defines them.  No part may read what another part
 * writes.  The fold has one node.  scalars: as in struct space. */
ct_status cuda_fold(struct device *gpu, const struct in_stream *in, const struct fold *fold,
                    const void *const *scalars, const struct fold_part *parts, int count);
/* Waits for all work in libct's own stream, like cuda_wait_for(). */
ct_status cuda_finish(struct device *gpu, struct patience wait);

/* ---- NCCL ------------------------------------------------------------------- */

/* Exists only if the build found <nccl.h>; memory_kind_cuda.c is then built with CT_WITH_NCCL. */
extern const struct comm_library comm_library_nccl;

#endif
