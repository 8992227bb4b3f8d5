/* SPDX-License-Identifier: Apache-2.0 */
/* ct_cuda.h - functions for CUDA streams and NCCL; other functions accept GPU memory as in ct.h.
 *
 * Every collective, and every send and receive, accepts GPU memory where it accepts host memory.
 * All buffers of one call on a rank must be in the memory of one GPU; otherwise the call returns
 * CT_ERR_INVALID.  The buffers must be in GPU memory on all ranks; otherwise the call returns
 * CT_ERR_MISMATCH.  No CUDA header is needed: a stream is a cudaStream_t or a CUstream, passed as
 * void *.
 *
 * If a buffer is longer than its allocation, the library may notice this only during the call.  In
 * this case the rank with the buffer gets CT_ERR_INVALID, and the group is broken. */
#ifndef CT_CUDA_H
#define CT_CUDA_H

#include "ct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- CUDA streams ------------------------------------------------------- */

/* Sets the stream of the group's collectives on GPU memory.  A call reads or writes its buffers
 * only after the work that was enqueued in the stream before the call.  A call without a ct_work
 * returns at once, and work that is enqueued in the stream later runs after the call.  If a call
 * that has returned at once fails, the group is broken, the stream continues, and the next call on
 * the group returns the failure.  ct_barrier(group, NULL) waits on the host for all calls in the
 * stream.
 *
 * If all ranks share one host and its GPUs can access each other, each call waits on the host until
 * all ranks have called, but no rank waits for a GPU (docs/gpu.md).  With CT_HANDOVER=host, a call
 * does not wait for the other ranks.  If ranks share a host whose GPUs can access each other, a
 * call also waits until the asynchronous calls (ct_work) of the group are done.  After
 * ct_set_stream() has changed the stream, a call also waits for the calls in the previous stream.
 *
 * Returns CT_ERR_INVALID for cudaStreamPerThread, which is a different stream in each thread of
 * libct.  Returns CT_ERR_NOT_MEMBER if this rank is not a member of the group.
 *
 * If stream is NULL, or if this function was not called, the library waits for the legacy default
 * stream.  A call without a ct_work then returns when its results are complete, so that every
 * stream can use them.  With every stream, the following calls return only when their results are
 * complete:
 *  - the group's first call on GPU memory, and the group's first call on GPU memory that is not
 *    gather_v, scatter_v or all_to_all_v;
 *  - the call that creates the group's NCCL communicator;
 *  - a call with buffers from a memory pool or from cuMemCreate() that are larger than such buffers
 *    of all earlier calls;
 *  - a call that is made while 128 earlier calls in streams of this process on the same GPU are not
 *    done;
 *  - all calls, if the driver can't let streams wait for the host.
 *
 * ct_send() and ct_recv() wait for the stream and always block.  A group that is created from
 * another group starts with the stream of the other group.
 *
 * Capture.  While the stream is being captured into a CUDA graph, a collective without a ct_work
 * becomes part of the graph and returns.  Each launch of the graph then repeats the call, with the
 * contents that the call's buffers have at the launch.  Calls that use NCCL can be captured, and so
 * can calls in which the GPUs of one host access the buffers directly (docs/gpu.md), if the group
 * made such a call before the capture.  All ranks must capture; otherwise the call returns
 * CT_ERR_MISMATCH.  Collectives that can't be captured return CT_ERR_INVALID on all ranks.  During
 * a capture, these calls return CT_ERR_INVALID only on the rank that makes them: a call with a
 * ct_work or after ct_coalesce_begin(), a v form with counts that not all ranks know, a send or
 * receive of GPU memory, and ct_wait_on_stream().  After CT_ERR_INVALID the group and the capture
 * can still be used.  Any failure other than CT_ERR_INVALID makes the capture invalid.  Calls on
 * host memory, and ct_barrier(), run at once and are not in the graph.
 *
 * Launch.  All ranks must launch the graph at the same place among their calls on the group, while
 * no call of the group is running.  If a rank dies during a launch, or never launches, libct does
 * not notice, but NCCL may notice.  To end a launch that waits for such a rank, call ct_abort() and
 * then ct_destroy_process_group().  Destroy the graph before the group.  Only if a launch of the
 * graph is still waiting, destroy the graph after the group.
 *
 * A rank that neither sends nor receives a byte in a gather_v, scatter_v or all_to_all_v does not
 * use GPU memory in the call.  On this rank the call is not in a stream, and returns when the call
 * is done.  Groups may share a stream if all ranks issue the calls of these groups in the same
 * order; otherwise the streams wait for each other until a timeout.  The stream must belong to the
 * GPU that has the buffers; otherwise the call returns CT_ERR_CUDA.
 *
 * When a process uses a GPU for the first time, libct loads its kernels to the GPU.
 * ct_set_stream() loads the kernels if the GPU's context is current on this thread; otherwise the
 * group's first call on GPU memory loads the kernels.  Loading waits for all work of this process
 * on the GPU.
 *
 * The caller owns the stream, which must exist as long as calls on the group are made.  A CUDA call
 * that waits for the whole GPU, such as cudaFree() or cudaDeviceSynchronize(), also waits for the
 * collectives in the GPU's streams, and so for the other ranks.
 *
 * If a call fails, it returns when no GPU of another rank uses this rank's buffers any more, or
 * after 10 s.  If the 10 s have passed, another GPU may still write to the buffers, and the error
 * message says so.  [torch.cuda.current_stream(), which torch.distributed waits for; NCCL's stream
 * argument] */
CT_API ct_status ct_set_stream(ct_group *group, void *stream);

/* Makes the stream wait for an asynchronous call.  Work that is enqueued in the stream later runs
 * after the asynchronous call is done, even if that call fails.  The host does not wait, unless the
 * asynchronous call is the group's first call on GPU memory or creates the group's NCCL
 * communicator.  The caller must still call ct_wait() for `work`, which returns the status of the
 * asynchronous call.  Before this ct_wait(), any number of streams may wait for `work`.  If a later
 * copy in the stream reads host memory of the asynchronous call, this memory must be pinned: CUDA
 * reads other host memory when the copy is enqueued.  Returns CT_OK if work is NULL.  If stream is
 * NULL, the legacy default stream of the CUDA context that is current on this thread waits.  If
 * streams wait for sends or receives of a group, these end in the order of the calls of
 * ct_wait_on_stream().  Returns CT_ERR_INVALID in a child of fork().  Returns CT_ERR_CUDA if a CUDA
 * call failed.  Returns CT_ERR_UNSUPPORTED if no CUDA context is current on this thread, or if
 * libct was built without CUDA.  [torch.distributed's Work.wait() with NCCL;
 * cudaStreamWaitEvent()] */
CT_API ct_status ct_wait_on_stream(ct_work *work, void *stream);

/* Sets *comm to the group's NCCL communicator, an ncclComm_t, for operations that libct does not
 * have.  This function is a collective of a group in which each rank uses a different GPU.  A
 * rank's GPU is the GPU of the current CUDA context or, after a call on GPU memory, the GPU of that
 * call's buffers.
 * Returns the statuses of a call on a group.
 * Returns CT_ERR_UNSUPPORTED on all ranks if the communicator can't be created; the error message
 * says why, and the group is not broken.
 *
 * libct uses the same communicator for its own calls, so do not use the group while an NCCL call of
 * the program is running on the communicator.  The communicator never blocks (ncclConfig_t.blocking
 * is 0).  After an NCCL call that returns ncclInProgress, call ncclCommGetAsyncError() until it no
 * longer sets its result to ncclInProgress.  The group owns the communicator, which is destroyed by
 * ct_destroy_process_group() or when the group breaks. */
CT_API ct_status ct_nccl_comm(ct_group *group, void **comm);

#ifdef __cplusplus
}
#endif

#endif
