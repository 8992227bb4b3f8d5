/* SPDX-License-Identifier: Apache-2.0 */
/* ct_cuda.h - the functions that need CUDA streams; all others accept GPU memory as in ct.h.
 *
 * Every collective, and every send and receive, accepts GPU memory where it accepts host memory.
 * All buffers of one call must be in the memory of one GPU; otherwise the call returns
 * CT_ERR_INVALID.  They must be GPU memory on all ranks; otherwise the call returns
 * CT_ERR_MISMATCH.  No CUDA header is needed: a stream is a cudaStream_t or a CUstream, passed as
 * void *.
 *
 * One case of CT_ERR_INVALID differs from ct.h.  The library may notice only during the call that a
 * buffer is longer than the memory that was allocated there.  Then that rank gets CT_ERR_INVALID,
 * and the group is broken. */
#ifndef CT_CUDA_H
#define CT_CUDA_H

#include "ct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- CUDA streams ------------------------------------------------------- */

/* Sets the stream of the group's collectives on GPU memory.  Work that was enqueued in the stream
 * before a call is done before the call reads or writes its buffers.  A call without a work returns
 * at once, and work that is enqueued in the stream later runs after the call.  If such a call
 * fails, it breaks the group and lets the stream continue; the next call on the group returns the
 * failure.  ct_barrier(group, NULL) waits on the host for all such calls.
 *
 * If all ranks share one host and its GPUs can access each other, the ranks meet in the call, as in
 * a call that blocks, but no rank waits for a GPU (docs/gpu.md).  With CT_HANDOVER=host the ranks
 * do not meet.  On such a host a call also waits for works of the group that are not done.  After
 * ct_set_stream() with another stream it also waits for the calls in the previous stream.
 *
 * Returns CT_ERR_INVALID for cudaStreamPerThread, which is a different stream in each of libct's
 * threads.  Returns CT_ERR_NOT_MEMBER if this rank is not a member of the group.
 *
 * If stream is NULL, or if this function was not called, the library waits for the legacy default
 * stream, and a call without a work returns when any stream may use its results.  With every
 * stream, these calls return only when any stream may use their results:
 *  - the group's first call on GPU memory, and its first one other than gather_v, scatter_v and
 *    all_to_all_v;
 *  - the call that creates the group's NCCL communicator;
 *  - a call with larger buffers from a memory pool or from cuMemCreate() than in earlier calls;
 *  - a call after 128 others that the streams of this process on that GPU have not passed yet;
 *  - all calls, if the driver can't let streams wait for the host.
 * ct_send() and ct_recv() wait for the stream and always block.  A group that is created from
 * another group starts with the stream of that group.
 *
 * Capture.  While the stream is being captured into a CUDA graph, a collective without a work
 * becomes part of the graph and returns.  Each launch of the graph then repeats the call, with
 * the contents of its buffers at that time.  This holds for calls that use NCCL.  It also holds for
 * calls in which the GPUs of one host access the buffers directly, on a group that has made such a
 * call before the capture (docs/gpu.md).  All ranks must capture; otherwise the call returns
 * CT_ERR_MISMATCH.  Other collectives return CT_ERR_INVALID on all ranks.  These calls return
 * CT_ERR_INVALID on the rank that makes them: a call with a work or after ct_coalesce_begin(), a v
 * form with counts that not all ranks know, a send or receive of GPU memory, and
 * ct_wait_on_stream().  After CT_ERR_INVALID the group and the capture can still be used.  Any
 * other failure makes the capture invalid.  Calls on host memory, and ct_barrier(), run at once and
 * are not in the graph.
 *
 * Launch.  A launch of the graph does not call libct.  All ranks must launch at the same place
 * among their calls on the group, while no call of the group is running.  If a rank dies during a
 * launch, or never launches, libct does not notice; NCCL may.  ct_abort() and then
 * ct_destroy_process_group() end a launch that waits for such a rank.  Destroy the graph before the
 * group.  Only if a launch of the graph still waits, destroy the graph after the group.
 *
 * A rank that neither sends nor receives a byte in a gather_v, scatter_v or all_to_all_v has no GPU
 * memory in the call.  The call of that rank is in no stream, and returns when the call is over.
 * Groups may share a stream if all ranks issue the calls of these groups in the same order;
 * otherwise the streams wait for each other until a timeout.  The stream must belong to the GPU
 * that has the buffers; otherwise the call returns CT_ERR_CUDA.
 *
 * A process that uses a GPU for the first time loads libct's kernels.  ct_set_stream() loads them
 * if the GPU's context is current on this thread; otherwise the group's first call loads them.
 * Loading waits for all work of this process on the GPU.
 *
 * The stream stays the caller's and must live as long as calls are made.  A call that waits for the
 * whole GPU (cudaFree(), cudaDeviceSynchronize()) also waits for the collectives in its streams,
 * and so for the other ranks.
 *
 * A call that failed returns when no GPU of another rank uses this rank's buffers any more, or
 * after 10 s.  In the second case a GPU may still write to the buffers, and the error message says
 * so.  [torch.cuda.current_stream(), which torch.distributed waits for; NCCL's stream argument] */
CT_API ct_status ct_set_stream(ct_group *group, void *stream);

/* Makes the stream wait for the work.  What is enqueued in the stream later runs after the call is
 * done, whether the call succeeded or not.  The host does not wait, unless the work is the group's
 * first call on GPU memory or creates its NCCL communicator.  The caller must still call ct_wait()
 * for the work, which returns the status of the call.  Before that ct_wait(), any number of streams
 * may wait for the work.  If the work is on host memory, copies of that memory that are enqueued
 * after this call must be from pinned memory: CUDA reads other memory at the time when the copy is
 * enqueued.  Returns CT_OK if work is NULL.  If stream is NULL, the legacy default stream of the
 * CUDA context that is current on this thread waits.  If streams wait for messages of a group, the
 * messages end in the order of the calls of ct_wait_on_stream().  Returns CT_ERR_INVALID in a child
 * of fork().  Returns CT_ERR_CUDA if a CUDA call failed.  Returns CT_ERR_UNSUPPORTED if no CUDA
 * context is current on this thread, or if libct was built without CUDA.  [torch.distributed's
 * Work.wait() with NCCL; cudaStreamWaitEvent()]
 */
CT_API ct_status ct_wait_on_stream(ct_work *work, void *stream);

/* Sets *comm to NCCL's communicator of the group, an ncclComm_t, for operations that libct does not
 * have.  This function is a collective of a group in which each rank has a different GPU.  The GPU
 * is that of the current CUDA context or, after a call on GPU memory, that of the call's buffers.
 * Returns the statuses of a call on a group.
 * Returns CT_ERR_UNSUPPORTED if the communicator can't be created; all ranks get it, the error
 * message says why, and the group is not broken.
 *
 * libct uses the same communicator for its own calls, so do not use the group while one of the
 * program's NCCL calls is running.  The communicator never blocks (ncclConfig_t.blocking is 0):
 * after a call that returns ncclInProgress, call ncclCommGetAsyncError() until it returns something
 * else.  The group owns the communicator, which ends with the group: by ct_destroy_process_group(),
 * or when the group breaks. */
CT_API ct_status ct_nccl_comm(ct_group *group, void **comm);

#ifdef __cplusplus
}
#endif

#endif
