/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - declares the functions of this folder, without including a CUDA header.  Most of them
 * are members of struct space (runtime/device/memory_kind.h), which explains them further.
 *
 * The folder is built only with the CMake option CT_CUDA, which defines CT_WITH_CUDA.  A function
 * that fails sets ct_last_error().  If the driver failed, the error message contains the driver's
 * text. */
#ifndef CUDA_CUDA_H
#define CUDA_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/device/memory_kind.h"

/* Returns 1 if the program has loaded a CUDA driver, else 0. */
int cuda_is_there(void);

/* ---- The GPU --------------------------------------------------------------- */

/* A struct device is one CUDA context on a GPU, together with libct's own streams in the context.
 * The struct exists until the process ends.  Any thread may use it. */

/* Sets *gpu to the GPU of the memory.  Sets *gpu to NULL if the host can access the memory or no
 * GPU owns it.  Calls the driver only if the program has loaded one; otherwise the call takes a few
 * ns. */
ct_status cuda_gpu_of(const void *pointer, struct device **gpu);
/* cuda_enter() stores this thread's current context in *before, and cuda_leave() makes that context
 * current again.  Between the two calls the thread's capture mode is relaxed, so that libct's
 * queries and allocations do not invalidate a capture. */
ct_status cuda_enter(void **before);
void cuda_leave(void *before);
/* Sets *gpu to the GPU of this thread's current context.  Returns CT_ERR_UNSUPPORTED if no context
 * is current. */
ct_status cuda_gpu_current(struct device **gpu);
/* Writes the GPU's UUID to `id`.  A GPU has the same UUID in every process, even if the processes
 * number their GPUs differently. */
void cuda_gpu_id(const struct device *gpu, unsigned char id[16]);
/* Makes the GPU's context current on this thread. */
ct_status cuda_gpu_use(struct device *gpu);

/* Sets *capture to whether the stream is being captured into a graph. */
ct_status cuda_capture_of(struct device *gpu, void *stream, enum capture *capture);
/* Sets *mark to a mark of the work enqueued so far in a stream of the caller, or to NULL if the
 * stream is idle.  `stream` is a CUstream, which is a cudaStream_t, and NULL means the legacy
 * default stream.  Returns CT_ERR_INVALID if the stream is being captured into a graph. */
ct_status cuda_mark(struct device *gpu, void *stream, void **mark);
/* Waits until the mark is reached.  Returns CT_ERR_TIMEOUT at the deadline (ms of clock_ms()), and
 * CT_ERR_ABORTED if *given_up was set (given_up may be NULL).  After these two errors the work
 * still runs and uses its buffers.  Returns CT_ERR_CUDA if the work failed. */
ct_status cuda_wait_for(struct device *gpu, void *mark, struct patience wait);
/* Frees a mark, even if no thread waited for it. */
void cuda_forget(struct device *gpu, void *mark);

/* Enqueues the operations in the stream, in this order.  Returns CT_ERR_UNSUPPORTED if the driver
 * can't let streams access flags. */
ct_status cuda_flag_ops(struct device *gpu, void *stream, const struct flag_op *ops, int count);

/* Tests whether streams can write flags.  For the test, libct's own stream writes 0 to this unused
 * flag.  Fails like cuda_flag_ops(). */
ct_status cuda_try_flag(struct device *gpu, void *flag);

/* Makes the capture of the stream invalid. */
void cuda_spoil(struct device *gpu, void *stream);

/* cuda_close_gate() makes work that is enqueued later in the stream wait until cuda_open_gate()
 * opens the gate.  Any thread may open the gate, even while other threads are blocked in the
 * driver.  cuda_close_gate() returns CT_ERR_UNSUPPORTED if the driver can't let streams wait, if
 * too many gates are closed, or if a limit of the owner is over. */
ct_status cuda_close_gate(struct device *gpu, void *stream, const void *owner, void **gate);
void cuda_open_gate(void *gate);
/* See struct space for what these functions do.  They do not call the driver. */
void cuda_begin_limit(struct gate_limit *limit, const void *owner, int64_t deadline);
int cuda_set_limit(struct gate_limit *limit, int64_t deadline);
ct_status cuda_fail_late(void);
void cuda_end_limit(struct gate_limit *limit);

/* Copy between this GPU and any host memory, in libct's own stream, and return when the copy is
 * done. */
ct_status cuda_to_host(struct device *gpu, void *to, const void *from, size_t bytes);
ct_status cuda_from_host(struct device *gpu, void *to, const void *from, size_t bytes);

/* cuda_begin_copy() starts a copy in the background, in the stream of its direction.  The copy is
 * done when a mark that cuda_mark_copies() sets later in that direction is reached.  If the host
 * memory is not registered, cuda_begin_copy() may take as long as the copy.  A copy between GPUs
 * reads imported memory. */
ct_status cuda_begin_copy(struct device *gpu, enum copy_way way, void *to, const void *from,
                          size_t bytes);
ct_status cuda_mark_copies(struct device *gpu, enum copy_way way, void **mark);
void cuda_end_copies(struct device *gpu); /* waits until all copies are done */

/* These functions enclose a call in which a stream waits for flags that other ranks' streams write.
 * The first is called before the waits are enqueued, the second after the stream has passed them.
 * Between the two the call counts as a closed gate. */
void cuda_call_enters_stream(void);
void cuda_call_leaves_stream(void);

/* cuda_register_host() registers (pins) host memory for the copies of all GPUs.  The caller must
 * call cuda_unregister_host() before it unmaps the memory.  Both return CT_ERR_UNSUPPORTED while a
 * gate is closed, since the driver might wait for that gate.  If may_wait is not 0,
 * cuda_unregister_host() unregisters the memory even then. */
ct_status cuda_register_host(struct device *gpu, void *memory, size_t bytes);
ct_status cuda_unregister_host(struct device *gpu, void *memory, int may_wait);

/* ---- Memory that other processes can map ------------------------------------ */

/* cuda_alloc() gets memory from the scratch pool, and cuda_release() returns it to the pool.  The
 * pool frees no memory, so other processes may still have released memory mapped.  cuda_release()
 * accepts NULL.  To get more memory, the driver may wait for all running work.  So cuda_alloc_now()
 * returns CT_ERR_UNSUPPORTED if it needs more memory while a gate is closed. */
ct_status cuda_alloc(struct device *gpu, size_t bytes, void **memory);
ct_status cuda_alloc_now(struct device *gpu, size_t bytes, void **memory);
void cuda_release(struct device *gpu, void *memory);

/* Sets *memory to TEST_PATTERN_BYTES bytes that never change.  test_pattern_fill() computed them
 * from the GPU's id.  Fails like cuda_alloc_now(). */
ct_status cuda_test_pattern(struct device *gpu, void **memory);

/* Returns 1 if cuda_export() can export this memory, else 0. */
int cuda_is_exportable(struct device *gpu, const void *pointer);
/* Exports `bytes` bytes from the pointer on.  Returns CT_ERR_UNSUPPORTED if other processes can't
 * map the memory: because the memory is managed, is from a pool or from cuMemCreate(), or because
 * the machine does not support this.  Returns CT_ERR_INVALID if the allocation ends before `bytes`
 * bytes. */
ct_status cuda_export(struct device *gpu, const void *pointer, size_t bytes,
                      struct device_handle *handle);
/* Maps exported memory for this GPU and sets *pointer to it.  Memory of this process is not mapped;
 * *pointer is then the memory's own address.  Returns CT_ERR_UNSUPPORTED if the memory belongs to
 * another GPU to which this GPU has no peer access.  `user` is any address.  A mapping exists as
 * long as it has users, so a second import of an allocation only finds the mapping.  If the owner
 * process has freed the memory and allocated the same addresses again, the old mapping is closed
 * first.  Returns CT_ERR_INVALID if the old mapping can't be closed now because a gate is closed.
 * The owner process must live, and must not free the memory while this process uses it. */
ct_status cuda_import(struct device *gpu, const struct device_handle *handle, const void *user,
                      void **pointer);
/* Removes this user from the mappings on all GPUs, and closes mappings that have no user left.
 * While a gate is closed, such mappings stay open until a later call.  No enqueued work may still
 * use the user's mappings. */
void cuda_put(const void *user);

/* ---- Enqueued on libct's own stream ------------------------------------------ */

/* All pointers point to memory of this GPU or to imported memory. */

/* Enqueues a fold of each part.  The result has the same bits as the result of combine_fold_to()
 * (runtime/reduction/combine.h), if dtype and op are defined there.  No part may read what another
 * part writes.  fold->nodes must be 1.  struct space explains `in` and `scalars`. */
ct_status cuda_fold(struct device *gpu, const struct in_stream *in, const struct fold *fold,
                    const void *const *scalars, const struct fold_part *parts, int count);
/* Waits for all work in libct's own stream.  Fails like cuda_wait_for(). */
ct_status cuda_finish(struct device *gpu, struct patience wait);

/* ---- NCCL ------------------------------------------------------------------- */

/* The functions of NCCL.  This variable exists only if the build found <nccl.h>. Then
 * memory_kind_cuda.c is built with CT_WITH_NCCL. */
extern const struct comm_library comm_library_nccl;

#endif
