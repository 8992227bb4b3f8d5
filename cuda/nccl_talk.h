/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_talk.h - what a talk by NCCL is made of, for the files of it. */
#ifndef CUDA_NCCL_TALK_H
#define CUDA_NCCL_TALK_H

#include "cuda/gpu_parts.h"
#include "cuda/nccl.h"

struct talk {
    const struct nccl *nccl;
    struct device *gpu;
    CUstream stream; /* its own */
    CUstream on;     /* that of the call: its own, or one of the caller's that is captured */
    ncclComm_t comm; /* NULL: aborted, or never made */
    int rank, size;
};

/* nccl_calls.c: one call on talk->on, begun as NCCL begins what never blocks. */
ncclResult_t nccl_enqueue(struct talk *talk, const struct signature *what, const void *send,
                          void *recv);

#endif
