/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.h - the functions of NCCL that libct calls.
 *
 * To call another function, add a row, as in libcuda.h.  The function has the prototype of the
 * header at build time.  A library of another version works, since ncclConfig_t contains its own
 * size. */
#ifndef CUDA_NCCL_NCCL_H
#define CUDA_NCCL_NCCL_H

#include <nccl.h>

#include "include/ct.h"

#define NCCL_FUNCTIONS(X)     \
    X(ncclGetVersion)         \
    X(ncclGetErrorString)     \
    X(ncclGetLastError)       \
    X(ncclGetUniqueId)        \
    X(ncclCommInitRankConfig) \
    X(ncclCommGetAsyncError)  \
    X(ncclCommFinalize)       \
    X(ncclCommDestroy)        \
    X(ncclCommAbort)          \
    X(ncclGroupStart)         \
    X(ncclGroupEnd)           \
    X(ncclSend)               \
    X(ncclRecv)               \
    X(ncclBroadcast)          \
    X(ncclReduce)             \
    X(ncclAllReduce)          \
    X(ncclReduceScatter)      \
    X(ncclAllGather)

/* These functions are NULL if the library lacks them.  Then libct uses ncclSend() and
 * ncclRecv(). */
#ifndef NCCL_HAS_GATHER /* a test sets it to 0 */
#define NCCL_HAS_GATHER (NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0))
#endif
#if NCCL_HAS_GATHER
#define NCCL_LATE_FUNCTIONS(X) \
    X(ncclGather)              \
    X(ncclScatter)             \
    X(ncclAlltoAll)
#else
#define NCCL_LATE_FUNCTIONS(X)
#endif

struct nccl {
#define NCCL_FIELD(name) __typeof__(name) *name;
    NCCL_FUNCTIONS(NCCL_FIELD)
    NCCL_LATE_FUNCTIONS(NCCL_FIELD)
#undef NCCL_FIELD
    int version; /* as returned by ncclGetVersion() */
};

/* Sets *nccl to NCCL's functions.  Loads the library at the first call.  Returns CT_ERR_UNSUPPORTED
 * if the library can't be loaded or lacks a function. */
ct_status nccl_find(const struct nccl **nccl);

/* Returns CT_OK for ncclSuccess and ncclInProgress.  Otherwise returns CT_ERR_NCCL and sets
 * ct_last_error() to `what`, formatted as by printf(), and NCCL's text for the communicator.
 * `what` says what libct tried.  `comm` may be NULL. */
ct_status nccl_says(const struct nccl *nccl, ncclComm_t comm, ncclResult_t result, const char *what,
                    ...) __attribute__((format(printf, 4, 5)));

#endif
