/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - what this folder gives the others, without a CUDA header.
 *
 * Built only with CT_CUDA; CT_WITH_CUDA says so to the code.  What fails here has
 * said why (ct_last_error()), in the driver's words where it was the driver. */
#ifndef CUDA_CUDA_H
#define CUDA_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/device/memory_kind.h"

/* 1 if the program has loaded a driver. */
int cuda_is_there(void);

/* ---- The GPU --------------------------------------------------------------- */

/* A struct device is one GPU as this process uses it: the context that its pointers belong to, and
 * a stream of libct's own.  Kept until the process ends; any thread may use it. */

/* Whose memory it is, of what the host can't touch; NULL: it is no GPU's.  Asks the driver only
 * when the program itself has loaded one: a few ns until then. */
ct_status cuda_gpu_of(const void *pointer, struct device **gpu);
/* Which GPU's context is current on a thread is the program's business: it is asked for before all
 * that follows, and made so again behind it.  Between them nothing that libct asks or
 * allocates spoils what somebody captures: the thread's mode is relaxed. */
ct_status cuda_enter(void **before);
void cuda_leave(void *before);
/* That of the context which is current on this thread; CT_ERR_UNSUPPORTED: none is. */
ct_status cuda_gpu_current(struct device **gpu);
/* Its UUID: the same in every process that uses it, whatever number it has there. */
void cuda_gpu_id(const struct device *gpu, unsigned char id[16]);
/* Its context becomes current on this thread. */
ct_status cuda_gpu_use(struct device *gpu);

/* Whether what is enqueued in the stream becomes part of a graph. */
ct_status cuda_capture_of(struct device *gpu, void *stream, enum capture *capture);
/* What the stream of the caller's (a CUstream, which is a cudaStream_t; NULL: the legacy default
 * one) has to do until now.  CT_ERR_INVALID: it is being captured into a graph. */
ct_status cuda_mark(struct device *gpu, void *stream, void **mark);
/* Waits until that is done.  Ends at the deadline (ms of clock_ms()) with CT_ERR_TIMEOUT and soon
 * after *given_up (may be NULL) is set with CT_ERR_ABORTED: then what was enqueued goes on, and its
 * buffers are not free.  CT_ERR_CUDA: something in it failed. */
ct_status cuda_wait_for(struct device *gpu, void *mark, int64_t deadline,
                        const _Atomic int *given_up);
void cuda_forget(struct device *gpu, void *mark); /* waited for or not */

/* Enqueued in the stream, in this order.  CT_ERR_UNSUPPORTED: the driver can't. */
ct_status cuda_words(struct device *gpu, void *stream, const struct word_op *ops, int count);

/* Whether it can, by a 0 written to a word that nobody else uses, on libct's own stream. */
ct_status cuda_try_word(struct device *gpu, void *word);

/* What is captured in it becomes no graph. */
void cuda_spoil(struct device *gpu, void *stream);

/* What comes later in the stream waits until it is let go, by any thread, whatever the driver is
 * busy with.  CT_ERR_UNSUPPORTED: the driver can't, or too many streams wait already. */
ct_status cuda_hold(struct device *gpu, void *stream, void **hold);
void cuda_let_go(void *hold);

/* Blocking copies between this GPU and any host memory, on libct's own stream: behind all that is
 * enqueued there. */
ct_status cuda_to_host(struct device *gpu, void *to, const void *from, size_t bytes);
ct_status cuda_from_host(struct device *gpu, void *to, const void *from, size_t bytes);

/* Copies that go on while the host does something else, each way on a stream of its own: done when
 * the mark of what was begun that way until now has come.  Of host memory that is pinned, or
 * begin_copy() may itself take as long as the copy; or between GPUs, from what was imported. */
ct_status cuda_begin_copy(struct device *gpu, enum copy_way way, void *to, const void *from,
                          size_t bytes);
ct_status cuda_mark_copies(struct device *gpu, enum copy_way way, void **mark);
void cuda_end_copies(struct device *gpu); /* waits until all are done */

/* Around a call in which a stream waits for what other ranks' streams write (cuda_words()), from
 * before that is enqueued until it has passed: meanwhile it counts as one that is held. */
void cuda_call_enters_stream(void);
void cuda_call_leaves_stream(void);

/* Host memory that this GPU's copies reach without one more, and those of others.  It stays the
 * caller's, who ends that before it is unmapped.  CT_ERR_UNSUPPORTED: a stream is held, and to do
 * it now might be to wait for that; who unpins may have it so. */
ct_status cuda_pin(struct device *gpu, void *memory, size_t bytes);
ct_status cuda_unpin(struct device *gpu, void *memory, int may_wait);

/* ---- Memory that other processes can map ------------------------------------ */

/* libct's own.  What is released is kept, for the next who asks: the driver never frees it, so it
 * is nobody's loss who still has it mapped, and nobody waits.  NULL is fine.  To get more may be to
 * wait for all that runs: not in cuda_alloc_now(), which is CT_ERR_UNSUPPORTED while a stream is
 * held. */
ct_status cuda_alloc(struct device *gpu, size_t bytes, void **memory);
ct_status cuda_alloc_now(struct device *gpu, size_t bytes, void **memory);
void cuda_release(struct device *gpu, void *memory);

/* SAMPLE_BYTES that never change: sample_fill() of the GPU's id.  Otherwise as cuda_alloc_now(). */
ct_status cuda_sample(struct device *gpu, void **memory);

/* Whether cuda_export() would find that this memory can't be. */
int cuda_is_exportable(struct device *gpu, const void *pointer);
/* `bytes` from the pointer on.  CT_ERR_UNSUPPORTED: memory that can't be mapped elsewhere (managed,
 * from a pool, made by cuMemCreate()), or a machine where none can; CT_ERR_INVALID: the
 * allocation ends earlier. */
ct_status cuda_export(struct device *gpu, const void *pointer, size_t bytes,
                      struct device_handle *handle);
/* Where that memory is in this process, for what this GPU does; one of this process is the pointer
 * itself.  It may be another GPU's: CT_ERR_UNSUPPORTED where this one can't reach that.  A mapping
 * is kept as long as it has users (any addresses): a second import of an allocation costs a look.
 * One whose memory the owner has freed since, and got again for another allocation, is closed
 * first; CT_ERR_INVALID: that can't be now, a stream is held.  The owner must live, and must not
 * free the memory while it is used here. */
ct_status cuda_import(struct device *gpu, const struct device_handle *handle, const void *user,
                      void **pointer);
/* Closes, on all GPUs, what no other user has imported; while a stream is held that is put off
 * until the next one puts.  Nothing enqueued may still use it. */
void cuda_put(const void *user);

/* ---- Enqueued on libct's own stream ------------------------------------------ */

/* All pointers are this GPU's or imported. */

/* The same bits as combine_fold_to() (runtime/reduction/combine.h), where those are defined, for
 * each of the parts; none may read what another one writes.  scalars: as in struct space. */
ct_status cuda_fold(struct device *gpu, const struct in_stream *in, const struct fold *fold,
                    const void *const *scalars, const struct fold_part *parts, int count);
/* Waits for all of them, as cuda_wait_for(). */
ct_status cuda_finish(struct device *gpu, int64_t deadline, const _Atomic int *given_up);

/* ---- NCCL ------------------------------------------------------------------- */

/* Where <nccl.h> was found by the build; CT_WITH_NCCL says so to memory_kind_cuda.c. */
extern const struct talks talks_nccl;

#endif
