/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_stream.c - the fake driver's streams: a queue and a thread each.
 *
 * A stream counts what was enqueued and what is done, so "all until now" is a
 * number.  What has to wait for another stream carries such numbers: whatever is
 * enqueued in the default stream comes after all of the blocking streams, and the
 * other way round; an event is such a number (libcuda_event.c).  Numbers
 * are of what was enqueued earlier, so the waits form no circle. */
#include "tests/fake/libcuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* FAKE_CUDA_QUEUES */
enum { MOST_QUEUES = 32, QUEUES = 8 };

struct queue {
    struct point last; /* enqueued there */
};

struct CUstream_st {
    CUcontext context;
    struct queue *queue; /* NULL: its own */
    int blocking;        /* the default stream, and those that wait for it */
    int closed;
    uint64_t enqueued, done;
    struct op *first, **last;
    pthread_cond_t filled; /* something was enqueued, or it is closed */
    CUstream next;
};

/* A stream takes so much.  Who finds it full waits, and meanwhile nobody of the process can enqueue
 * anything anywhere. */
enum { MOST_PENDING = 1024 };

enum { MOST_LATE_US = 300 }; /* FAKE_CUDA_ORDER */

static pthread_mutex_t enqueueing = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all streams */
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;  /* something is done */
static CUstream streams;                                 /* never freed: events point to them */
static struct queue queues[MAX_DEVICES][2][MOST_QUEUES]; /* of normal and of high priority */
static unsigned streams_made[MAX_DEVICES][2];

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int is_done(const struct point *point)
{
    return point->stream->done >= point->number;
}

static void sleep_until(int64_t when_us)
{
    const struct timespec until = { when_us / 1000000, when_us % 1000000 * 1000 };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
}

static void *stream_main(void *arg)
{
    CUstream stream = arg;

    pthread_mutex_lock(&lock);
    for (;;) {
        struct op *op = stream->first;

        if (!op) {
            if (stream->closed)
                break;
            pthread_cond_wait(&stream->filled, &lock);
            continue;
        }
        for (int i = 0; i < op->afters; i++)
            while (!is_done(&op->after[i]))
                pthread_cond_wait(&moved, &lock);
        pthread_mutex_unlock(&lock);
        sleep_until(op->start_us);
        if (op->run && !atomic_load(&stream->context->failed))
            op->run(op);
        if (op->failure != CUDA_SUCCESS)
            atomic_store(&stream->context->failed, (int)op->failure);
        pthread_mutex_lock(&lock);
        stream->first = op->next;
        if (!stream->first)
            stream->last = &stream->first;
        op_destroy(op);
        stream->done++;
        pthread_cond_broadcast(&moved);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int queues_of_context(void)
{
    const char *setting = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const int count = setting ? atoi(setting) : QUEUES;

    return count < 1 || count > MOST_QUEUES ? QUEUES : count;
}

/* The lock is held. */
static struct queue *next_queue(CUcontext context, int is_high)
{
    const unsigned number = streams_made[context->device][is_high]++;

    return fake_setting_is("FAKE_CUDA_QUEUES", "shared")
               ? &queues[context->device][is_high][number % (unsigned)queues_of_context()]
               : NULL;
}

CUresult fake_add_stream(CUcontext context, int blocking, int priority, CUstream *made)
{
    CUstream stream = calloc(1, sizeof *stream);
    pthread_attr_t detached;
    pthread_t thread;
    int refused;

    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream->context = context;
    stream->blocking = blocking;
    stream->last = &stream->first;
    pthread_cond_init(&stream->filled, NULL);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    refused = pthread_create(&thread, &detached, stream_main, stream);
    pthread_attr_destroy(&detached);
    if (refused) {
        free(stream);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    stream->queue = next_queue(context, priority < 0);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&lock);
    *made = stream;
    return CUDA_SUCCESS;
}

CUstream fake_stream(CUcontext context, CUstream handle)
{
    CUstream stream;

    if (!handle || handle == CU_STREAM_LEGACY)
        return context->legacy;
    pthread_mutex_lock(&lock);
    stream = streams;
    while (stream && (stream != handle || stream->closed || stream->context != context))
        stream = stream->next;
    pthread_mutex_unlock(&lock);
    return stream;
}

/* The lock is held. */
static void add_order(CUstream stream, struct op *op)
{
    const CUstream legacy = stream->context->legacy;

    for (CUstream other = streams; other && stream->blocking; other = other->next) {
        const struct point all = { other, other->enqueued };

        if (other->context == stream->context && other->blocking && other != stream
            && (other == legacy || stream == legacy) && !is_done(&all))
            op_waits_for(op, &all);
    }
    if (stream->queue && stream->queue->last.stream && !is_done(&stream->queue->last))
        op_waits_for(op, &stream->queue->last);
}

CUcontext fake_context_of(CUstream stream)
{
    return stream->context;
}

int fake_is_blocking(CUstream stream)
{
    return stream->blocking;
}

struct point fake_enqueue(CUstream stream, struct op *op)
{
    struct point behind = { stream, 0 };
    const int late_us = fake_lag_us();

    if (capture_takes(stream, op))
        return behind;
    if (op->is_wait)
        fake_will_wait_for_word();
    pthread_mutex_lock(&enqueueing);
    pthread_mutex_lock(&lock);
    while (stream->enqueued - stream->done >= MOST_PENDING)
        pthread_cond_wait(&moved, &lock);
    op->start_us = now_us() + late_us + fake_draw(MOST_LATE_US);
    add_order(stream, op);
    *stream->last = op;
    stream->last = &op->next;
    behind.number = ++stream->enqueued;
    if (stream->queue)
        stream->queue->last = behind;
    pthread_cond_signal(&stream->filled);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&enqueueing);
    return behind;
}

CUresult fake_query(const struct point *point)
{
    int done;

    pthread_mutex_lock(&lock);
    done = is_done(point);
    pthread_mutex_unlock(&lock);
    return done ? (CUresult)atomic_load(&point->stream->context->failed) : CUDA_ERROR_NOT_READY;
}

void fake_wait(const struct point *point)
{
    pthread_mutex_lock(&lock);
    while (!is_done(point))
        pthread_cond_wait(&moved, &lock);
    pthread_mutex_unlock(&lock);
}

int fake_same_context(const struct point *one, const struct point *other)
{
    return one->stream->context == other->stream->context;
}

static struct point end_of(CUstream stream)
{
    struct point end = { stream, 0 };

    pthread_mutex_lock(&lock);
    end.number = stream->enqueued;
    pthread_mutex_unlock(&lock);
    return end;
}

CUresult fake_wait_for_stream(CUstream stream)
{
    const struct point end = end_of(stream);

    fake_wait(&end);
    return (CUresult)atomic_load(&stream->context->failed);
}

/* ---- The driver's functions -------------------------------------------------- */

CUresult fake_begin_stream(const char *function, CUstream *stream)
{
    CUcontext context;
    const CUresult result = fake_begin_in(function, &context);

    if (result != CUDA_SUCCESS)
        return result;
    *stream = fake_stream(context, *stream);
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult fake_begin_enqueue(const char *function, CUstream *stream)
{
    const CUresult result = fake_begin_stream(function, stream);

    return result == CUDA_SUCCESS ? capture_admits(*stream) : result;
}

/* To ask it is no use while it is captured. */
static CUresult begin_to_ask(const char *function, CUstream *stream)
{
    const CUresult result = fake_begin_stream(function, stream);

    return result == CUDA_SUCCESS ? capture_asks(*stream) : result;
}

static CUresult create(const char *function, CUstream *stream, unsigned flags, int priority)
{
    CUcontext context;
    const CUresult result = fake_begin_in(function, &context);

    return result == CUDA_SUCCESS
               ? fake_add_stream(context, !(flags & CU_STREAM_NON_BLOCKING), priority, stream)
               : result;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return create(__func__, stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    return create(__func__, stream, flags, priority);
}

CUresult cuStreamDestroy(CUstream stream)
{
    const CUresult result = fake_begin_stream(__func__, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (stream == stream->context->legacy)
        return CUDA_ERROR_INVALID_HANDLE;
    capture_asks(stream);
    pthread_mutex_lock(&lock);
    stream->closed = 1; /* what it holds is still done */
    pthread_cond_signal(&stream->filled);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    const CUresult result = fake_begin_stream(__func__, &stream);

    if (result == CUDA_SUCCESS)
        *flags = stream->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
    return result;
}

CUresult cuStreamQuery(CUstream stream)
{
    const CUresult result = begin_to_ask(__func__, &stream);
    struct point end;

    if (result != CUDA_SUCCESS)
        return result;
    end = end_of(stream);
    return fake_query(&end);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    const CUresult result = begin_to_ask(__func__, &stream);

    return result == CUDA_SUCCESS ? fake_wait_for_stream(stream) : result;
}

CUresult fake_wait_for_all(CUcontext context)
{
    CUstream stream;

    pthread_mutex_lock(&lock);
    stream = streams;
    pthread_mutex_unlock(&lock);
    for (; stream; stream = stream->next) /* new ones come before the first */
        if (stream->context == context)
            fake_wait_for_stream(stream);
    return (CUresult)atomic_load(&context->failed);
}

CUresult cuCtxSynchronize(void)
{
    CUcontext context;
    CUresult result = fake_begin_in(__func__, &context);

    if (result == CUDA_SUCCESS)
        result = capture_asks_all(context);
    return result == CUDA_SUCCESS ? fake_wait_for_all(context) : result;
}
