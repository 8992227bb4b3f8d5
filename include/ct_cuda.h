/* SPDX-License-Identifier: Apache-2.0 */
/* ct_cuda.h - the calls that have to do with CUDA streams; all else on GPU memory is in ct.h.
 *
 * Every collective, and every send and receive, takes GPU memory where it takes host memory: all
 * buffers of one call are in the memory of one GPU (CT_ERR_INVALID otherwise), and they are GPU
 * memory on all ranks (CT_ERR_MISMATCH).  No CUDA header is needed: a stream is a cudaStream_t or a
 * CUstream, given as void *.
 *
 * One CT_ERR_INVALID is not as ct.h says: that a buffer is longer than the memory which was
 * allocated there may be found out only during the call.  Then that rank gets CT_ERR_INVALID, and
 * the group is broken. */
#ifndef CT_CUDA_H
#define CT_CUDA_H

#include "ct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the stream of the group's collectives on GPU memory.  What was enqueued in it before a call
 * is done before the call reads or writes its buffers.  A call without a work returns at once, and
 * what is enqueued in the stream later runs after the call.  If such a call fails, it breaks the
 * group and lets the stream go on; the next call on the group returns the failure.
 * ct_barrier(group, NULL) waits on the host for all of them.  Where all ranks share one host and
 * its GPUs reach each other, the ranks meet in the call, as in a call that blocks, but no rank
 * waits for a GPU (docs/gpu.md; CT_HANDOVER=host: they do not meet).  There a call also waits for
 * works of the group that are not over, and after ct_set_stream() with another stream for the calls
 * in the one before.
 *
 * CT_ERR_INVALID: cudaStreamPerThread, which is another stream in each of libct's threads.
 *
 * NULL, or without this call: the library waits for the legacy default stream, and a call without a
 * work returns when its results are there for any stream.  In any case these return only then:
 *  - the group's first call on GPU memory, and the first that is no gather_v, scatter_v or
 *    all_to_all_v;
 *  - the call that makes the group's NCCL communicator;
 *  - a call with buffers of a memory pool or of cuMemCreate() that are larger than those before;
 *  - a call behind 128 others that the streams of this process on that GPU have not passed yet;
 *  - all calls, if the driver can't let streams wait for the host.
 * ct_send() and ct_recv() wait for the stream and always block.  A group that is made from another
 * one begins with that one's stream.
 *
 * Capture.  While the stream is being captured into a CUDA graph, a collective without a work
 * becomes part of the graph and returns.  Each launch then makes the call again, with what its
 * buffers hold at that time.  That holds for calls that go by NCCL, and for calls that the GPUs of
 * one host make where the buffers lie, on a group that has made such a call before the capture
 * (docs/gpu.md).  All ranks capture (CT_ERR_MISMATCH otherwise).  Other collectives are
 * CT_ERR_INVALID on all ranks.  So are, on the rank that makes them: a call with a work or within
 * ct_coalesce_begin(), a v form whose counts not all ranks know, a send or receive of GPU memory,
 * and ct_wait_on_stream().  After CT_ERR_INVALID group and capture are as sound as before; any
 * other failure makes the capture void.  Calls on host memory, and ct_barrier(), are made at once
 * and are in no graph.
 *
 * Launch.  A launch makes no call of libct.  All ranks launch at the same place among their calls
 * on the group, while no call of the group is under way.  If a rank dies during a launch, or never
 * launches, at most NCCL notices: ct_abort() and then ct_destroy_process_group() end a launch that
 * waits for such a rank.  Destroy the graph before the group; only a graph whose launch still waits
 * is destroyed after it.
 *
 * A rank that neither gives nor gets a byte in a gather_v, scatter_v or all_to_all_v has no GPU
 * memory in it: its call is in no stream, and returns when it is over.  Groups may share a stream
 * if all ranks make the calls of these groups in one order; else the streams wait for each other
 * until a timeout.  The stream must belong to the GPU that has the buffers (CT_ERR_CUDA otherwise).
 *
 * A process that uses a GPU for the first time loads its kernels: in ct_set_stream(), if the GPU's
 * context is current on this thread, else in the group's first call.  That waits for all that runs
 * on the GPU in this process.
 *
 * The stream stays the caller's and must live as long as calls are made.  A call that waits for the
 * whole GPU (cudaFree(), cudaDeviceSynchronize()) also waits for the collectives in its streams,
 * and so for the other ranks.
 *
 * A call that failed returns when no GPU of another rank uses this rank's buffers any more, or
 * after 10 s.  In the second case a GPU may still write to them, and the sentence says so.
 * [torch.cuda.current_stream(), which torch.distributed waits for; NCCL's stream argument] */
CT_API ct_status ct_set_stream(ct_group *group, void *stream);

/* Makes the stream wait for the work: what is enqueued in it later runs after the call is done,
 * whether it succeeded or not.  The host does not wait, unless the work is the group's first call
 * on GPU memory or makes its NCCL communicator.  The caller still owes the work its ct_wait(),
 * which returns how it ended; any number of streams may wait for it before that.  If the work is on
 * host memory, copies of it that are enqueued behind this call must be from pinned memory: CUDA
 * reads other memory when the copy is enqueued.  work NULL: CT_OK. stream NULL: the legacy default
 * stream of the CUDA context that is current on this thread; there must be one.  If streams wait
 * for messages of a group, these end in the order of the calls of ct_wait_on_stream().
 * [torch.distributed's Work.wait() with NCCL; cudaStreamWaitEvent()] */
CT_API ct_status ct_wait_on_stream(ct_work *work, void *stream);

/* *comm: NCCL's communicator of the group, an ncclComm_t, for what libct has no call for.  A
 * collective of a group whose ranks each have a GPU of their own: the GPU of the current CUDA
 * context, or after a call on GPU memory that of its buffers.  CT_ERR_UNSUPPORTED on all ranks: it
 * can't be made; the sentence says why, and the group stays sound.
 *
 * libct uses the same communicator for its own calls, so make no call on the group while one of the
 * program's NCCL calls is under way.  It never blocks (ncclConfig_t.blocking 0): after a call that
 * returns ncclInProgress, call ncclCommGetAsyncError() until it returns something else.  It stays
 * the group's and ends with it: by ct_destroy_process_group(), or when the group breaks. */
CT_API ct_status ct_nccl_comm(ct_group *group, void **comm);

#ifdef __cplusplus
}
#endif

#endif
