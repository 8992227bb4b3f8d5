/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_internal.h - what a talk by NCCL is made of, for the files of it. */
#ifndef CUDA_NCCL_NCCL_INTERNAL_H
#define CUDA_NCCL_NCCL_INTERNAL_H

#include <stdatomic.h>

#include "cuda/device_internal.h"
#include "cuda/nccl/nccl.h"

struct talk {
    const struct nccl *nccl;
    struct device *gpu;
    CUstream stream; /* its own */
    CUstream on;     /* that of the call: its own, or one of the caller's that is captured */
    ncclComm_t comm; /* NULL: ended, or never made */
    int rank, size;
    int is_enqueued; /* NCCL has put all that was begun into the stream */

    /* nccl_abort.c */
    _Atomic uint32_t *passed; /* pinned: the stream writes 1, if it tells; NULL: it can't */
    int tells, is_given_up, has_thread;
    pthread_t aborting;
    _Atomic int is_aborted;
};

/* nccl_calls.c: one call on talk->on, begun as NCCL begins what never blocks. */
ncclResult_t nccl_enqueue(struct talk *talk, const struct signature *what, const void *send,
                          void *recv);

/* nccl_abort.c: as in struct talks, of a talk that is as far as it came. */
void nccl_give_up(struct talk *talk);
void nccl_leave(struct talk *talk, int sound);

#endif
