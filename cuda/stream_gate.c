/* SPDX-License-Identifier: Apache-2.0 */
/* stream_gate.c - lets streams wait for flags in host memory and write them, and implements stream
 * gates.
 *
 * A stream at a closed gate waits for a flag in host memory that the GPU can access.  When the
 * stream has passed the gate, it writes PASSED to the flag.  So any thread can open a gate by a
 * store, whatever the driver is doing, and a flag that a stream has passed is free again.
 *
 * A driver call that waits for all running work would also wait for a stream at a gate, and for a
 * stream that waits for other ranks.  So libct makes such calls only while no stream of any GPU of
 * this process waits in that way, which gpu_may_wait() checks.
 *
 * The program makes such calls, too, for example cudaFree().  If the driver holds a lock during the
 * call, the thread that would open the gate may itself be blocked in a driver call.  So gates have
 * a time limit.  When the limit is over, a thread that never calls the driver opens the gates, and
 * the call for which they were closed has failed.  That thread must not wait for a thread in a
 * driver call, so this file has two locks.
 *
 * The flags of a GPU are in one page, which is kept until the process ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device_internal.h"
#include "runtime/util/clock.h"
#include "runtime/util/error.h"
#include "runtime/util/thread.h"

/* ---- Flags --------------------------------------------------------------------------- */

enum { BATCH = 128 }; /* operations in one driver call; the driver accepts 256 */

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

        for (int i = 0; i < some && status == CT_OK; i++) {
            CUdeviceptr at = 0;

            status = gpu_address_of(gpu, ops[done + i].flag, &at);
            batch[i] = parameters(&ops[done + i], at);
        }
        if (status != CT_OK)
            break;
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

/* Makes the capture invalid by querying its stream. */
void cuda_spoil(struct device *gpu, void *stream)
{
    if (cuda_gpu_use(gpu) == CT_OK)
        gpu->driver->cuStreamQuery(stream);
}

/* ---- Gates --------------------------------------------------------------------------- */

/* Most gates of one GPU that can be closed at the same time.  A stream holds about 1,000
 * operations.  A thread that enqueues one more blocks in the driver.  Then perhaps no thread of the
 * process can launch anything, not even the call for which the gate is closed.  So the gates, and
 * what the program enqueues between them, must fit in a stream. */
enum { GATES = 128 };

/* The values of a gate's flag.  A stream at the gate continues when the flag is OPEN or more. */
enum { FREE, CLOSED, OPEN, PASSED };

struct gate {
    _Atomic uint32_t *flag;
    const void *owner; /* NULL if the gate is free, or if its call has opened it */
};

struct gate_flags {
    _Atomic uint32_t flag[GATES];
    struct gate gate[GATES];
    unsigned next; /* number, modulo GATES, of the first gate to try */
};

/* A thread that closes a gate locks `closing` first and then `lock`.  While it holds only
 * `closing`, it may call the driver. */
static pthread_mutex_t closing = PTHREAD_MUTEX_INITIALIZER;
static int calls_in_streams; /* calls that have entered a stream and not left it */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all gates and limits */
static struct gate_limit *limits; /* list of the limits of calls that run now */

/* Creates the flags of a GPU.  To allocate their memory, the driver may wait for all running
 * work. */
static ct_status make_flags(struct device *gpu)
{
    struct gate_flags *flags = NULL;
    const CUresult result = gpu->driver->cuMemAllocHost((void **)&flags, sizeof *flags);

    if (result != CUDA_SUCCESS)
        return driver_says(gpu->driver, result, "getting memory that the GPU and the host see");
    memset(flags, 0, sizeof *flags);
    for (int i = 0; i < GATES; i++) {
        atomic_init(&flags->flag[i], FREE);
        flags->gate[i].flag = &flags->flag[i];
    }
    pthread_mutex_lock(&lock);
    gpu->gate_flags = flags;
    pthread_mutex_unlock(&lock);
    return CT_OK;
}

/* Closes a free gate for the owner and returns the gate.  Returns NULL if all gates are in use.
 * The caller holds `lock`. */
static struct gate *take_gate(struct gate_flags *flags, const void *owner)
{
    for (int looks = 0; looks < GATES; looks++) {
        struct gate *gate = &flags->gate[flags->next++ % GATES];
        const uint32_t is = atomic_load_explicit(gate->flag, memory_order_acquire);

        if (gate->owner || (is != FREE && is != PASSED))
            continue;
        atomic_store_explicit(gate->flag, CLOSED, memory_order_relaxed);
        gate->owner = owner;
        return gate;
    }
    return NULL;
}

/* Opens the gate.  Returns 1 if the gate was closed, else 0.  The store is a release, so that the
 * stream sees all that the call has written.  The caller holds `lock`. */
static int open_gate(struct gate *gate)
{
    if (atomic_load(gate->flag) != CLOSED)
        return 0;
    atomic_store_explicit(gate->flag, OPEN, memory_order_release);
    return 1;
}

static int closed_gates(void)
{
    int closed = 0;

    pthread_mutex_lock(&lock);
    for (const struct device *gpu = gpu_first(); gpu; gpu = gpu->next)
        for (int i = 0; i < GATES && gpu->gate_flags; i++)
            closed += atomic_load(&gpu->gate_flags->flag[i]) == CLOSED;
    pthread_mutex_unlock(&lock);
    return closed;
}

/* Does not lock `closing`, since no other thread knows the GPU yet. */
void gpu_prepare_gates(struct device *gpu)
{
    make_flags(gpu);
}

int gpu_may_wait(void)
{
    pthread_mutex_lock(&closing);
    if (calls_in_streams == 0 && !closed_gates())
        return 1;
    pthread_mutex_unlock(&closing);
    return 0;
}

void gpu_has_waited(void)
{
    pthread_mutex_unlock(&closing);
}

static void count_calls(int more)
{
    pthread_mutex_lock(&closing);
    calls_in_streams += more;
    pthread_mutex_unlock(&closing);
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

/* Returns CT_ERR_UNSUPPORTED if a limit of the owner is over.  The caller holds `lock`. */
static ct_status gate_check_limits(const void *owner)
{
    for (const struct gate_limit *limit = limits; limit; limit = limit->next)
        if (limit->owner == owner && limit->is_over)
            return ct_fail(CT_ERR_UNSUPPORTED, "an earlier call has exceeded its timeout");
    return CT_OK;
}

static ct_status get_gate(struct device *gpu, const void *owner, struct gate **gate)
{
    ct_status status = CT_OK;

    *gate = NULL;
    pthread_mutex_lock(&closing);
    if (!gpu->gate_flags)
        status = calls_in_streams > 0 || closed_gates() ? gpu_refuse_to_wait() : make_flags(gpu);
    if (status == CT_OK) {
        pthread_mutex_lock(&lock);
        status = gate_check_limits(owner);
        if (status == CT_OK)
            *gate = take_gate(gpu->gate_flags, owner);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&closing);
    if (status == CT_OK && !*gate)
        status =
            ct_fail(CT_ERR_UNSUPPORTED, "%d waits of streams are under way on this GPU", GATES);
    return status;
}

static void gate_give_back(struct gate *gate)
{
    pthread_mutex_lock(&lock);
    atomic_store(gate->flag, FREE);
    gate->owner = NULL;
    pthread_mutex_unlock(&lock);
}

/* ---- Limits -------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_cond_t sooner; /* signaled if keep_limits() must wake up before wakes_at */
static int64_t wakes_at = NO_DEADLINE;
static int no_thread; /* errno value if the thread could not be started, else 0 */

/* Opens the owner's closed gates, since all calls of the owner have failed.  The caller holds
 * `lock`. */
static void open_gates_of(const void *owner)
{
    int opened = 0;

    for (const struct device *gpu = gpu_first(); gpu; gpu = gpu->next)
        for (int i = 0; i < GATES && gpu->gate_flags; i++)
            if (gpu->gate_flags->gate[i].owner == owner)
                opened += open_gate(&gpu->gate_flags->gate[i]);
    for (struct gate_limit *limit = limits; limit; limit = limit->next)
        if (limit->owner == owner)
            limit->opened += opened;
}

/* Ends the limits with a deadline at or before `now`, and opens the gates of their owners.  Returns
 * the earliest deadline of the other limits, or NO_DEADLINE.  The caller holds `lock`. */
static int64_t end_limits(int64_t now)
{
    int64_t next = NO_DEADLINE;

    for (struct gate_limit *limit = limits; limit; limit = limit->next) {
        if (!limit->is_over && limit->deadline <= now) {
            limit->is_over = 1;
            open_gates_of(limit->owner);
        }
        if (!limit->is_over && limit->deadline < next)
            next = limit->deadline;
    }
    return next;
}

static void *keep_limits(void *arg)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        wakes_at = end_limits(clock_ms());
        if (wakes_at == NO_DEADLINE) {
            pthread_cond_wait(&sooner, &lock);
        } else {
            const struct timespec until = { wakes_at / 1000, wakes_at % 1000 * 1000000 };

            pthread_cond_timedwait(&sooner, &lock, &until);
        }
    }
    return arg;
}

/* Starts the thread that ends limits.  The thread lives as long as the process, and sleeps most of
 * the time.  A child of fork() has neither this thread nor the driver. */
static void begin_thread(void)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sooner, &monotonic);
    pthread_condattr_destroy(&monotonic);
    no_thread = thread_start(NULL, keep_limits, NULL);
}

static ct_status gate_check_thread(void)
{
    pthread_once(&once, begin_thread);
    return no_thread ? ct_fail(CT_ERR_UNSUPPORTED, "no thread to keep the time of a call: %s",
                               strerror(no_thread))
                     : CT_OK;
}

/* Sets the limit's deadline, and wakes the thread that ends limits if it would wake up too late.
 * The caller holds `lock`. */
static void set_deadline(struct gate_limit *limit, int64_t deadline)
{
    limit->deadline = deadline;
    if (deadline >= wakes_at || no_thread)
        return;
    wakes_at = deadline;
    pthread_cond_signal(&sooner);
}

/* Returns the number of the owner's gates that an earlier limit has opened and whose call has not
 * ended yet.  The caller holds `lock`. */
static int opened_early(const void *owner)
{
    int opened = 0;

    for (const struct device *gpu = gpu_first(); gpu; gpu = gpu->next)
        for (int i = 0; i < GATES && gpu->gate_flags; i++)
            opened += gpu->gate_flags->gate[i].owner == owner
                      && atomic_load(&gpu->gate_flags->flag[i]) != CLOSED;
    return opened;
}

void cuda_begin_limit(struct gate_limit *limit, const void *owner, int64_t deadline)
{
    pthread_once(&once, begin_thread);
    *limit = (struct gate_limit){ .owner = owner };
    pthread_mutex_lock(&lock);
    limit->opened = opened_early(owner);
    limit->next = limits;
    limits = limit;
    set_deadline(limit, deadline);
    pthread_mutex_unlock(&lock);
}

int cuda_set_limit(struct gate_limit *limit, int64_t deadline)
{
    int opened;

    pthread_mutex_lock(&lock);
    if (!limit->is_over)
        set_deadline(limit, deadline);
    opened = limit->opened;
    pthread_mutex_unlock(&lock);
    return opened > 0;
}

ct_status cuda_fail_late(void)
{
    return ct_fail(
        CT_ERR_TIMEOUT,
        "the CUDA driver did not return in time.  Does another thread wait for the whole "
        "GPU, as in cudaFree()?  See docs/gpu.md, Streams");
}

void cuda_end_limit(struct gate_limit *limit)
{
    struct gate_limit **place = &limits;

    pthread_mutex_lock(&lock);
    while (*place != limit)
        place = &(*place)->next;
    *place = limit->next;
    pthread_mutex_unlock(&lock);
}

/* ---- Closing and opening --------------------------------------------------------------- */

ct_status cuda_close_gate(struct device *gpu, void *stream, const void *owner, void **gate)
{
    /* If `stream` is NULL, it is the current context's default stream. */
    ct_status status = cuda_gpu_use(gpu);
    struct gate *taken;

    if (status == CT_OK)
        status = gpu_refuse_capture(gpu, stream);
    if (status == CT_OK)
        status = gate_check_thread();
    if (status == CT_OK) {
        gpu_close_unused(gpu);
        status = get_gate(gpu, owner, &taken);
    }
    if (status != CT_OK)
        return status;
    status = cuda_flag_ops(
        gpu, stream,
        (const struct flag_op[]){ { taken->flag, OPEN, 1 }, { taken->flag, PASSED, 0 } }, 2);
    if (status != CT_OK)
        gate_give_back(taken);
    *gate = taken;
    return status;
}

void cuda_open_gate(void *gate)
{
    struct gate *opened = gate;

    pthread_mutex_lock(&lock);
    open_gate(opened);
    opened->owner = NULL;
    pthread_mutex_unlock(&lock);
}
