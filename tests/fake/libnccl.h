/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl.h - an NCCL without a GPU, for tests: what its files share.
 *
 * Built as libnccl.so.2 from the real <nccl.h>.  Device memory is that of tests/fake/libcuda,
 * reached by that driver's own functions: a call is enqueued as copies to the host, a function of
 * the host that talks to the other ranks, and copies back.  Ranks, processes or threads, share a
 * file without a name, in which each pair has a pipe.  It is stricter than the real one:
 *  - A communicator that never blocks is in progress after every call, and what was called is
 *    enqueued when it was asked twice: a query of the stream before that finds it empty.
 *  - To join loads kernels, which libcuda allows no program whose streams stand still.
 *  - A communicator has memory on its device, which whoever ends it frees: libcuda lets that wait
 *    for streams that stand still.
 *  - Another call meanwhile, or a communicator that blocks, ends the program; two ranks on one GPU
 *    are ncclInvalidUsage.
 *  - Folds go from the last rank to the first, and averages multiply by 1/n, as for floats there:
 *    libct's own order has other bits.
 *  - Who ends a communicator with something still enqueued, or in a graph, other than by
 *    ncclCommAbort(), ends the program.
 *
 * From the environment, at each process's first call:
 *   FAKE_NCCL_FAIL=name:n[:rank]  the n-th call of that function (on that rank of a communicator)
 *                                 fails: at once, or where a communicator works on it later, by
 *                                 its asynchronous error
 *   FAKE_NCCL_LATE=rank:ms        everything enqueued starts so late on that rank
 *   FAKE_NCCL_VERSION=n           what ncclGetVersion() says */
#ifndef TESTS_FAKE_LIBNCCL_H
#define TESTS_FAKE_LIBNCCL_H

#pragma GCC visibility push(default) /* NCCL's functions; all else is hidden */
#include <nccl.h>
#pragma GCC visibility pop

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { NCCL_RANKS = 16, PIPE_BYTES = 64 << 10 };

/* From one rank to another. */
struct pipe {
    _Atomic uint64_t written, read;
    unsigned char data[PIPE_BYTES];
};

/* What the ranks of a communicator share. */
struct commons {
    _Atomic int joined;
    char gpu[NCCL_RANKS][16];
    struct pipe pipes[NCCL_RANKS][NCCL_RANKS];
};

#define FAKE_DRIVER_FUNCTIONS(X)         \
    X(cuCtxGetCurrent)                   \
    X(cuCtxSetCurrent)                   \
    X(cuCtxGetDevice)                    \
    X(cuDeviceGetUuid)                   \
    X(cuLaunchHostFunc)                  \
    X(cuStreamGetCaptureInfo)            \
    X(cuUserObjectCreate)                \
    X(cuGraphRetainUserObject)           \
    X(cuModuleLoadData)                  \
    X(cuModuleUnload)                    \
    X(cuMemAlloc)                        \
    X(cuMemAllocHost)                    \
    X(cuThreadExchangeStreamCaptureMode) \
    X(cuMemFree)                         \
    X(cuMemcpyDtoHAsync)                 \
    X(cuMemcpyHtoDAsync)

struct fake_driver {
#define FAKE_DRIVER_FIELD(name) __typeof__(name) *name;
    FAKE_DRIVER_FUNCTIONS(FAKE_DRIVER_FIELD)
#undef FAKE_DRIVER_FIELD
};

struct job;

struct ncclComm {
    int rank, size;
    CUcontext context;
    CUdeviceptr memory; /* of its own */
    struct commons *commons;
    pthread_mutex_t lock; /* of users, jobs and words */
    int users;            /* the program, and each job that is enqueued */
    int jobs;             /* those alone; one in a graph as long as that lives */
    struct job *held;     /* called for, not enqueued yet */
    int polls;            /* until it says that it is ready */
    int is_joining, finalized;
    int id; /* the descriptor, of who made it; -1 */
    _Atomic int aborted;
    _Atomic int error; /* an ncclResult_t: it stays */
    char words[120];
};

/* ---- libnccl.c ---- */

const struct fake_driver *fake_driver(void);
/* Shall this call fail?  rank -1: of no communicator. */
int fake_fails(const char *function, int rank);
int fake_late_ms(int rank);
_Noreturn void fake_nccl_dies(const char *format, ...) __attribute__((format(printf, 1, 2)));
void comm_fails(ncclComm_t comm, ncclResult_t error, const char *words);
void comm_use(ncclComm_t comm);
void comm_unuse(ncclComm_t comm); /* the last one frees it */
/* May it be called now? */
ncclResult_t comm_begin(ncclComm_t comm);
ncclResult_t comm_end(ncclComm_t comm); /* of a call that was accepted */

/* ---- libnccl_pipes.c ---- */

/* One message of many that go at the same time. */
struct message {
    struct message *next;
    int peer, is_send;
    unsigned char *data; /* the host's */
    uint64_t bytes;
    uint64_t head[2];     /* bytes, kind: in front of it */
    uint64_t kind;        /* must be the same at both ends */
    uint64_t at, head_at; /* gone so far */
};

/* Until all are done, or the communicator is aborted: 0. */
int messages_move(ncclComm_t comm, struct message *messages);

/* ---- libnccl_fold.c ---- */

size_t fake_size_of(ncclDataType_t type); /* 0: none */
int fake_can_fold(ncclDataType_t type, ncclRedOp_t op);
/* An average's inputs are multiplied by 1/n first. */
void fake_prepare(ncclDataType_t type, ncclRedOp_t op, void *values, size_t count, int ranks);
/* to = to op from. */
void fake_fold(ncclDataType_t type, ncclRedOp_t op, void *to, const void *from, size_t count);

/* ---- libnccl_job.c ---- */

void jobs_enqueue(ncclComm_t comm); /* those that are held */
void jobs_drop(ncclComm_t comm);

#endif
