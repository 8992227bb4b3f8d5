/* SPDX-License-Identifier: Apache-2.0 */
/* stream_gate.c - streams that wait for flags in host memory and write them; and stream gates.
 *
 * A stream at a closed gate waits for a flag in host memory that the GPU sees, and then writes to
 * it that it has passed.  So opening a gate is one store, by any thread, whatever the driver is
 * doing; and a flag that a stream has passed is free again.
 *
 * A driver call that waits for all running work would wait for such a stream, too, and for a stream
 * that waits for other ranks.  So such calls are made only while no stream of any GPU of this
 * process waits so: gpu_may_wait().
 *
 * The flags of a GPU are one page, kept until the process ends. */
#include <stdatomic.h>
#include <stdlib.h>

#include "cuda/device_internal.h"
#include "runtime/util/error.h"

/* ---- Flags --------------------------------------------------------------------------- */

enum { BATCH = 128 }; /* the driver takes 256 at once */

/* The address of the flag, which is in registered memory, on the GPU. */
static CUresult address_of(const struct driver *driver, const struct flag_op *op, CUdeviceptr *at)
{
    return driver->cuMemHostGetDevicePointer(at, (void *)op->flag, 0);
}

static CUstreamBatchMemOpParams parameters(const struct flag_op *op, CUdeviceptr at)
{
    CUstreamBatchMemOpParams p = { 0 };

    if (op->waits) {
        p.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        p.waitValue.address = at;
        p.waitValue.value = op->value;
        p.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    } else {
        p.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        p.writeValue.address = at;
        p.writeValue.value = op->value;
        p.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    }
    return p;
}

ct_status cuda_flag_ops(struct device *gpu, void *stream, const struct flag_op *ops, int count)
{
    const struct driver *driver = gpu->driver;
    CUstreamBatchMemOpParams batch[BATCH];
    CUresult result = CUDA_SUCCESS;
    ct_status status = cuda_gpu_use(gpu);

    for (int done = 0; done < count && status == CT_OK; done += BATCH) {
        const int some = count - done < BATCH ? count - done : BATCH;

        for (int i = 0; i < some && result == CUDA_SUCCESS; i++) {
            CUdeviceptr at;

            result = address_of(driver, &ops[done + i], &at);
            batch[i] = parameters(&ops[done + i], at);
        }
        if (result == CUDA_SUCCESS)
            result = driver->cuStreamBatchMemOp(stream, (unsigned)some, batch, 0);
        status = driver_says(driver, result, "letting a stream wait for flags of the host");
    }
    return result == CUDA_ERROR_NOT_SUPPORTED ? CT_ERR_UNSUPPORTED : status;
}

ct_status cuda_try_flag(struct device *gpu, void *flag)
{
    const struct flag_op write = { flag, 0, 0 };

    return cuda_flag_ops(gpu, gpu->stream, &write, 1);
}

/* Querying a stream makes its capture invalid. */
void cuda_spoil(struct device *gpu, void *stream)
{
    if (cuda_gpu_use(gpu) == CT_OK)
        gpu->driver->cuStreamQuery(stream);
}

/* ---- Gates --------------------------------------------------------------------------- */

/* Closed gates of one GPU at one time.  A stream takes some 1,000 operations; a thread that
 * enqueues one more blocks within the driver, and meanwhile no thread of the process may be able to
 * launch anything, not even the call for which the gate is closed.  So the gates must fit into a
 * stream, and what the program enqueues between them, too. */
enum { GATES = 128 };

/* A stream goes on when its flag is OPEN or more. */
enum { FREE, CLOSED, OPEN, PASSED };

struct gate_flags {
    _Atomic uint32_t flag[GATES];
    unsigned next; /* the first one to try */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the flags of all GPUs, and of: */
static int calls_in_streams;                             /* cuda_call_enters_stream() */

/* The lock is held.  The driver may wait for all running work to get such memory. */
static ct_status make_flags(struct device *gpu)
{
    struct gate_flags *flags = NULL;
    const CUresult result = gpu->driver->cuMemAllocHost((void **)&flags, sizeof *flags);

    if (result != CUDA_SUCCESS)
        return driver_says(gpu->driver, result, "getting memory that the GPU and the host see");
    for (int i = 0; i < GATES; i++)
        atomic_init(&flags->flag[i], FREE);
    flags->next = 0;
    gpu->gate_flags = flags;
    return CT_OK;
}

/* The lock is held.  NULL: all flags are in use. */
static _Atomic uint32_t *take_flag(struct gate_flags *flags)
{
    for (int looks = 0; looks < GATES; looks++) {
        _Atomic uint32_t *flag = &flags->flag[flags->next++ % GATES];
        const uint32_t is = atomic_load_explicit(flag, memory_order_acquire);

        if (is != FREE && is != PASSED)
            continue;
        atomic_store_explicit(flag, CLOSED, memory_order_relaxed);
        return flag;
    }
    return NULL;
}

/* The lock is held. */
static int closed_gates(void)
{
    int closed = 0;

    for (const struct device *gpu = gpu_first(); gpu; gpu = gpu->next)
        for (int i = 0; i < GATES && gpu->gate_flags; i++)
            closed += atomic_load(&gpu->gate_flags->flag[i]) == CLOSED;
    return closed;
}

void gpu_prepare_gates(struct device *gpu)
{
    pthread_mutex_lock(&lock);
    make_flags(gpu);
    pthread_mutex_unlock(&lock);
}

int gpu_may_wait(void)
{
    pthread_mutex_lock(&lock);
    if (calls_in_streams == 0 && !closed_gates())
        return 1;
    pthread_mutex_unlock(&lock);
    return 0;
}

void gpu_has_waited(void)
{
    pthread_mutex_unlock(&lock);
}

static void count_calls(int more)
{
    pthread_mutex_lock(&lock);
    calls_in_streams += more;
    pthread_mutex_unlock(&lock);
}

void cuda_call_enters_stream(void)
{
    count_calls(1);
}

void cuda_call_leaves_stream(void)
{
    count_calls(-1);
}

ct_status gpu_refuse_to_wait(void)
{
    return ct_fail(CT_ERR_UNSUPPORTED, "a stream waits for the host or for other ranks, and the "
                                       "driver might wait for it");
}

static ct_status get_flag(struct device *gpu, _Atomic uint32_t **flag)
{
    ct_status status = CT_OK;

    pthread_mutex_lock(&lock);
    if (!gpu->gate_flags)
        status = calls_in_streams > 0 || closed_gates() ? gpu_refuse_to_wait() : make_flags(gpu);
    *flag = status == CT_OK ? take_flag(gpu->gate_flags) : NULL;
    pthread_mutex_unlock(&lock);
    if (status == CT_OK && !*flag)
        status =
            ct_fail(CT_ERR_UNSUPPORTED, "%d waits of streams are under way on this GPU", GATES);
    return status;
}

ct_status cuda_close_gate(struct device *gpu, void *stream, void **gate)
{
    ct_status status = cuda_gpu_use(gpu); /* NULL is the default stream of the current context */
    _Atomic uint32_t *flag;

    if (status == CT_OK)
        status = gpu_refuse_capture(gpu, stream);
    if (status == CT_OK) {
        gpu_close_unused(gpu);
        status = get_flag(gpu, &flag);
    }
    if (status != CT_OK)
        return status;
    *gate = (void *)flag;
    status = cuda_flag_ops(gpu, stream,
                           (const struct flag_op[]){ { flag, OPEN, 1 }, { flag, PASSED, 0 } }, 2);
    if (status != CT_OK)
        atomic_store(flag, FREE);
    return status;
}

/* Release: the stream sees all that the call has written. */
void cuda_open_gate(void *gate)
{
    atomic_store_explicit((_Atomic uint32_t *)gate, OPEN, memory_order_release);
}
