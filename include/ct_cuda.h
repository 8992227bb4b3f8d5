/* SPDX-License-Identifier: Apache-2.0 */
/* ct_cuda.h - the calls that have to do with CUDA's streams; all else on device memory is ct.h's.
 *
 * Every collective, and every send and receive, takes device memory where it takes host memory: all
 * buffers of one call in the memory of one GPU, on all ranks (CT_ERR_INVALID, CT_ERR_MISMATCH).  No
 * CUDA header is needed: a stream is a cudaStream_t or a CUstream, given as void *. */
#ifndef CT_CUDA_H
#define CT_CUDA_H

#include "ct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stream that the group's calls on device memory wait for: what was enqueued there when a call
 * is made is done before it reads or writes its buffers.  NULL, and without this call: the legacy
 * default stream; a group that is made from another begins with that one's.  A blocking call
 * returns when its results are there, for any stream.  The stream stays the caller's and must live
 * as long as calls are made; one that is being captured into a graph is CT_ERR_INVALID in a call.
 * [torch.cuda.current_stream(), which torch.distributed waits for]
 *
 * A call that failed returns when no rank's device is at this one's buffers any more, or after 10
 * s: then the device may still write to them, and the sentence says so. */
CT_API ct_status ct_set_stream(ct_group *group, void *stream);

/* NCCL's communicator of the group, an ncclComm_t: for what libct has no call for.  A collective,
 * of a group whose ranks each have a GPU of their own: that of the CUDA context that is current;
 * where it can't be, CT_ERR_UNSUPPORTED on all ranks says why, and the group stays sound.
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
