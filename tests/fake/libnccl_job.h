/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl_job.h - a call of the fake NCCL's, from libnccl_calls.c to libnccl_job.c. */
#ifndef TESTS_FAKE_LIBNCCL_JOB_H
#define TESTS_FAKE_LIBNCCL_JOB_H

#include "tests/fake/libnccl.h"

struct pinned;

/* Between the device and the host's copy of it. */
struct piece {
    struct piece *next;
    CUdeviceptr device;
    size_t bytes;
    enum way { IN, OUT, HERE } way;
    struct pinned *memory;
    unsigned char *host; /* in that memory */
};

struct job {
    struct job *next;
    ncclComm_t comm;
    CUstream stream;
    struct piece *pieces;
    struct message *messages, **last_message;
    /* from[size - 1 .. 0] are folded to `to`; NULL: nothing is. */
    unsigned char *to, *from[NCCL_RANKS];
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t count;
};

struct job *job_create(ncclComm_t comm, cudaStream_t stream);
/* The host's bytes: of the device before the job runs, for it afterwards, or the job's own. */
unsigned char *job_piece(struct job *job, enum way way, const void *device, size_t bytes);
void job_message(struct job *job, int is_send, int peer, unsigned char *data, size_t bytes,
                 uint64_t kind);
/* Until it is enqueued.  The job is its communicator's then, or freed: what its function was told
 * to fail of. */
ncclResult_t job_hold(struct job *job, const char *function);

#endif
