/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl_job.c - a call of the fake NCCL's: what it needs is copied to the host, talked over and
 * folded there, and copied back, all in the caller's stream.
 *
 * Calls only put jobs together (libnccl_calls.c); ncclCommGetAsyncError() enqueues them later.  A
 * job in a stream that is captured runs at each launch, and ends with the graph. */
#include "tests/fake/libnccl_job.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *memory(size_t bytes)
{
    void *got = calloc(1, bytes);

    if (!got)
        fake_nccl_dies("no memory");
    return got;
}

/* ---- Host memory that the driver has pinned ------------------------------------- */

/* A copy of other memory might wait.  Kept until the process ends: a stream that gives some back
 * must not call the driver. */
struct pinned {
    struct pinned *next;
    size_t bytes;
    unsigned char *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pinned *idle;

static struct pinned *take_idle(size_t bytes)
{
    struct pinned **place = &idle, *taken;

    pthread_mutex_lock(&lock);
    while (*place && (*place)->bytes < bytes)
        place = &(*place)->next;
    if ((taken = *place))
        *place = taken->next;
    pthread_mutex_unlock(&lock);
    return taken;
}

/* A stream of the program's may be captured meanwhile. */
static void pin(ncclComm_t comm, struct pinned *p)
{
    const struct fake_driver *cuda = fake_driver();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUcontext before = NULL;

    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    cuda->cuCtxGetCurrent(&before);
    cuda->cuCtxSetCurrent(comm->context);
    if (cuda->cuMemAllocHost((void **)&p->data, p->bytes) != CUDA_SUCCESS)
        fake_nccl_dies("no pinned memory");
    cuda->cuCtxSetCurrent(before);
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
}

static struct pinned *get_pinned(ncclComm_t comm, size_t bytes)
{
    struct pinned *p = take_idle(bytes);

    if (p)
        return p;
    p = memory(sizeof *p);
    p->bytes = bytes + (bytes == 0);
    pin(comm, p);
    return p;
}

static void give_pinned(struct pinned *p)
{
    pthread_mutex_lock(&lock);
    p->next = idle;
    idle = p;
    pthread_mutex_unlock(&lock);
}

/* ---- Jobs ------------------------------------------------------------------------ */

struct job *job_create(ncclComm_t comm, cudaStream_t stream)
{
    struct job *job = memory(sizeof *job);

    job->comm = comm;
    job->stream = (CUstream)stream;
    job->last_message = &job->messages;
    return job;
}

static void job_free(struct job *job)
{
    while (job->pieces) {
        struct piece *next = job->pieces->next;

        give_pinned(job->pieces->memory);
        free(job->pieces);
        job->pieces = next;
    }
    while (job->messages) {
        struct message *next = job->messages->next;

        free(job->messages);
        job->messages = next;
    }
    free(job);
}

unsigned char *job_piece(struct job *job, enum way way, const void *device, size_t bytes)
{
    struct piece *p = memory(sizeof *p);

    p->memory = get_pinned(job->comm, bytes);
    p->host = p->memory->data;

    p->device = (CUdeviceptr)(uintptr_t)device;
    p->bytes = bytes;
    p->way = way;
    p->next = job->pieces;
    job->pieces = p;
    memset(p->host, 0xEE, bytes);
    return p->host;
}

void job_message(struct job *job, int is_send, int peer, unsigned char *data, size_t bytes,
                 uint64_t kind)
{
    struct message *m = memory(sizeof *m);

    m->is_send = is_send;
    m->peer = peer;
    m->data = data;
    m->bytes = bytes;
    m->kind = kind;
    *job->last_message = m;
    job->last_message = &m->next;
}

/* ---- Running ------------------------------------------------------------------------------ */

static void be_late(ncclComm_t comm)
{
    const struct timespec nap = { 0, 1000000 };

    for (int left = fake_late_ms(comm->rank); left > 0 && !atomic_load(&comm->aborted); left--)
        nanosleep(&nap, NULL);
}

static void CUDA_CB run(void *arg)
{
    struct job *job = arg;
    const int last = job->comm->size - 1;

    be_late(job->comm);
    for (struct message *m = job->messages; m; m = m->next) {
        m->at = 0;
        m->head_at = 0;
    }
    if (!messages_move(job->comm, job->messages) || !job->to)
        return;
    for (int i = last; i >= 0; i--) {
        fake_prepare(job->type, job->op, job->from[i], job->count, job->comm->size);
        if (i == last)
            memcpy(job->to, job->from[i], job->count * fake_size_of(job->type));
        else
            fake_fold(job->type, job->op, job->to, job->from[i], job->count);
    }
}

static void CUDA_CB end(void *arg)
{
    struct job *job = arg;
    ncclComm_t comm = job->comm;

    job_free(job);
    comm_unuse(comm);
}

static void copy_pieces(const struct job *job, enum way way)
{
    const struct fake_driver *cuda = fake_driver();

    for (struct piece *p = job->pieces; p; p = p->next) {
        CUresult result = CUDA_SUCCESS;

        if (p->way != way || p->bytes == 0)
            continue;
        result = way == OUT ? cuda->cuMemcpyHtoDAsync(p->device, p->host, p->bytes, job->stream)
                            : cuda->cuMemcpyDtoHAsync(p->host, p->device, p->bytes, job->stream);
        if (result != CUDA_SUCCESS)
            comm_fails(job->comm, ncclUnhandledCudaError, "a copy");
    }
}

/* NULL: the stream is not captured. */
static CUgraph graph_of(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    const CUresult result =
#if CUDA_VERSION >= 13000
        fake_driver()->cuStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL, NULL);
#else
        fake_driver()->cuStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL);
#endif

    return result == CUDA_SUCCESS ? graph : NULL;
}

static CUresult end_later(struct job *job)
{
    const struct fake_driver *cuda = fake_driver();
    const CUgraph graph = graph_of(job->stream);
    CUuserObject object;
    CUresult result;

    if (!graph)
        return cuda->cuLaunchHostFunc(job->stream, end, job);
    result = cuda->cuUserObjectCreate(&object, job, end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    return result == CUDA_SUCCESS
               ? cuda->cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE)
               : result;
}

/* Into a capture that is void nothing goes. */
static void enqueue(struct job *job)
{
    const struct fake_driver *cuda = fake_driver();

    comm_use(job->comm);
    copy_pieces(job, IN);
    if (cuda->cuLaunchHostFunc(job->stream, run, job) != CUDA_SUCCESS)
        comm_fails(job->comm, ncclUnhandledCudaError, "a launch");
    copy_pieces(job, OUT);
    if (end_later(job) == CUDA_SUCCESS)
        return;
    comm_fails(job->comm, ncclUnhandledCudaError, "a launch"); /* it may run still, so it stays */
}

void jobs_enqueue(ncclComm_t comm)
{
    CUcontext before = NULL;

    if (!comm->held)
        return;
    fake_driver()->cuCtxGetCurrent(&before);
    fake_driver()->cuCtxSetCurrent(comm->context);
    while (comm->held) {
        struct job *job = comm->held;

        comm->held = job->next;
        enqueue(job);
    }
    fake_driver()->cuCtxSetCurrent(before);
}

void jobs_drop(ncclComm_t comm)
{
    while (comm->held) {
        struct job *job = comm->held;

        comm->held = job->next;
        job_free(job);
    }
}

ncclResult_t job_hold(struct job *job, const char *function)
{
    ncclComm_t comm = job->comm;
    struct job **last = &comm->held;

    if (fake_fails(function, comm->rank)) {
        job_free(job);
        comm_fails(comm, ncclSystemError, "it fails, as it was told to");
        return comm_end(comm);
    }
    while (*last)
        last = &(*last)->next;
    *last = job;
    return comm_end(comm);
}
