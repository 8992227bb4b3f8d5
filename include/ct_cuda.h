/* SPDX-License-Identifier: Apache-2.0 */
/* ct_cuda.h - the calls that have to do with CUDA's streams; all else on device memory is ct.h's.
 *
 * Every collective, and every send and receive, takes device memory where it takes host memory: all
 * buffers of one call in the memory of one GPU, on all ranks (CT_ERR_INVALID, CT_ERR_MISMATCH).  No
 * CUDA header is needed: a stream is a cudaStream_t or a CUstream, given as void *.
 *
 * What ct.h says of CT_ERR_INVALID has one exception: that a buffer is longer than the memory which
 * was allocated there may be found out in the call.  It breaks the group, with CT_ERR_INVALID on
 * that rank. */
#ifndef CT_CUDA_H
#define CT_CUDA_H

#include "ct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stream that the group's collectives on device memory belong to: what was enqueued there when
 * a call is made is done before it reads or writes its buffers; and a call without a work returns
 * at once, and what is enqueued there later comes after it.  How it fared the next call on the
 * group says: one that failed has broken the group, and let the stream go on.  ct_barrier(group,
 * NULL) waits for all of them on the host.  (With CT_HANDOVER=stream the ranks meet in the call, as
 * in any that blocks, and none waits for a device.)
 *
 * CT_ERR_INVALID: cudaStreamPerThread, which is another stream in each of libct's threads.
 *
 * NULL, and without this call: the legacy default stream is waited for, and a call without a work
 * returns when its results are there, for any stream (so does a group's first call on device
 * memory, the first that is no gather_v, scatter_v or all_to_all_v, the one that joins NCCL,
 * one whose buffers are of a pool or of cuMemCreate() and larger than those before, one behind 128
 * that the process' streams on that GPU have not passed yet, and any where the driver can't let
 * streams wait for the host).
 * ct_send() and ct_recv() wait for the stream and always block.  A group that is made from another
 * begins with that one's stream.
 *
 * While the stream is being captured into a CUDA graph, a collective without a work becomes part of
 * the graph instead: it returns when it is there, and each launch makes it again, with what its
 * buffers hold then.  So it is with calls that go by NCCL, or that GPUs of one host make where the
 * buffers lie, of a group that has made one before the capture (docs/gpu.md); all ranks capture
 * (CT_ERR_MISMATCH).  Others are CT_ERR_INVALID on all ranks; and, for who makes it, a call with a
 * work or within ct_coalesce_begin(), a v form whose counts not all ranks know, a send or receive
 * of device memory, and ct_wait_on_stream(). Group and capture are as sound as before.  A call that
 * fails otherwise makes the capture void. What is called on host memory is done at once and is in
 * no graph, ct_barrier() too.
 *
 * A launch asks nothing of libct.  All ranks launch, while no call of the group is under way, and
 * in the same place among them.  A rank that dies then, or never launches, is NCCL's to notice, or
 * nobody's; ct_abort() and then ct_destroy_process_group() end a launch that waits for it.  The
 * graph must be destroyed before the group; one whose launch still waits, behind it.
 *
 * Who in a gather_v, scatter_v or all_to_all_v neither gives nor gets a byte has no device memory
 * in it: that rank's call is in no stream, and returns when it is over.  Groups may share a stream:
 * then all ranks make the calls of these in one order, or streams wait for each other until a
 * deadline.  The stream is one of the GPU that has the buffers; else a call is CT_ERR_CUDA.
 *
 * The stream stays the caller's and must live as long as calls are made.  What waits for the whole
 * device (cudaFree(), cudaDeviceSynchronize()) also waits for the calls in its streams, so for the
 * other ranks. [torch.cuda.current_stream(), which torch.distributed waits for; NCCL's stream
 * argument]
 *
 * A call that failed returns when no rank's device is at this one's buffers any more, or after 10
 * s: then the device may still write to them, and the sentence says so. */
CT_API ct_status ct_set_stream(ct_group *group, void *stream);

/* What is enqueued in the stream later waits for the work, however that ends; the host does not,
 * unless the work is the group's first call on device memory, or the one that joins NCCL.
 * The work is still owed its ct_wait(), which says how it ended; any number of streams may wait for
 * it before that.  NULL as work is CT_OK; as stream: the legacy default one, of the CUDA context
 * that is current on this thread, as it must be one of.  Messages of a group that streams wait for
 * end in the order of these calls.  [torch.distributed's Work.wait() with NCCL, which lets the
 * current stream wait; cudaStreamWaitEvent()] */
CT_API ct_status ct_wait_on_stream(ct_work *work, void *stream);

/* NCCL's communicator of the group, an ncclComm_t: for what libct has no call for.  A collective,
 * of a group whose ranks each have a GPU of their own: that of the CUDA context that is current, or
 * after a call on device memory that of its buffers; where it can't be, CT_ERR_UNSUPPORTED on all
 * ranks says why, and the group stays sound.
 *
 * It is the one that libct's own calls go by where they go by NCCL, so no call may be made on the
 * group while one of the program's is under way; and it never blocks (ncclConfig_t.blocking 0):
 * after a call that returns ncclInProgress, ncclCommGetAsyncError() comes next, until that says
 * something else.  It stays the group's: it ends with it, by ct_destroy_process_group() or when
 * it breaks. */
CT_API ct_status ct_nccl_comm(ct_group *group, void **comm);

#ifdef __cplusplus
}
#endif

#endif
