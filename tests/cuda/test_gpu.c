/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu.c - one process and its GPU: whose memory it is, copies, and waits that end. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "runtime/util/clock.h"
#include "tests/cuda/device.h"

enum { SOON_MS = 30, LATE_MS = 20000 };

#define EXPECT_CUDA(call) EXPECT((call) == CUDA_SUCCESS)

static int64_t in_ms(int ms)
{
    return clock_ms() + ms;
}

/* NULL, and the rank has failed: no GPU. */
static struct device *open_gpu(size_t bytes, unsigned char byte, void **memory)
{
    struct device *gpu = NULL;

    if (EXPECT(device_open(0)) && EXPECT((*memory = device_alloc(bytes, byte)) != NULL))
        EXPECT_OK(cuda_gpu_of(*memory, &gpu));
    return gpu;
}

/* ---- Copies --------------------------------------------------------------------- */

static void copies(ct_group *group, void *arg)
{
    static const size_t sizes[] = { 0, 1, 4095, 4096, ((size_t)1 << 20) + 3 };
    const size_t most = sizes[4];
    unsigned char *sent = malloc(most), *back = malloc(most);
    void *memory;
    struct device *gpu = open_gpu(most + 8, 9, &memory);

    (void)group;
    (void)arg;
    for (size_t i = 0; i < most; i++)
        sent[i] = (unsigned char)(i * 7 + 1);
    for (int s = 0; gpu && s < 5; s++) {
        memset(back, 0, most);
        EXPECT_OK(cuda_from_host(gpu, (char *)memory + 3, sent, sizes[s]));
        EXPECT_OK(cuda_to_host(gpu, back, (char *)memory + 3, sizes[s]));
        EXPECT(!memcmp(back, sent, sizes[s]));
        EXPECT_OK(cuda_to_host(gpu, back, (char *)memory + 3 + sizes[s], 1));
        EXPECT(back[0] == 9);
    }
    free(sent);
    free(back);
    device_free(memory);
}

static void bytes_go_to_the_gpu_and_come_back(void **state)
{
    (void)state;
    run_processes(1, copies, NULL);
}

/* A pinned buffer and one that the default stream is busy with are like any other. */
static void pinned_copies(ct_group *group, void *arg)
{
    struct gate gate;
    unsigned char *pinned;
    void *memory, *host;
    struct device *gpu = open_gpu(64, 5, &memory), *other;

    (void)group;
    (void)arg;
    if (!gpu || !EXPECT(device.cuMemAllocHost(&host, 64) == CUDA_SUCCESS))
        return;
    pinned = host;
    EXPECT_OK(cuda_gpu_of(host, &other));
    EXPECT(!other);
    memset(pinned, 0, 64);
    EXPECT(gate_close(&gate, NULL));
    EXPECT_OK(cuda_to_host(gpu, pinned, memory, 64));
    EXPECT(pinned[0] == 5 && pinned[63] == 5);
    gate_open(&gate);
    EXPECT_CUDA(device.cuCtxSynchronize());
    EXPECT_CUDA(device.cuMemFreeHost(host));
    device_free(memory);
}

static void copies_do_not_wait_for_the_default_stream(void **state)
{
    (void)state;
    run_processes(1, pinned_copies, NULL);
}

/* ---- Waiting --------------------------------------------------------------------- */

static ct_status stream_wait(struct device *gpu, void *stream, int64_t deadline,
                             const _Atomic int *given_up)
{
    void *mark;
    ct_status status = cuda_mark(gpu, stream, &mark);

    if (status != CT_OK || !mark)
        return status;
    status = cuda_wait_for(gpu, mark, (struct patience){ deadline, given_up, 0 });
    cuda_forget(gpu, mark);
    return status;
}

struct wait_of {
    unsigned flags; /* of the stream that is waited for */
    int of_default; /* or of the default one */
};

/* The gate stands in the stream itself: the wait ends by its deadline, then as given up, then
 * because all is done. */
static void wait_ends(ct_group *group, void *arg)
{
    const struct wait_of *of = arg;
    _Atomic int given_up = 0;
    unsigned char byte = 0;
    CUstream stream = NULL;
    struct gate gate;
    void *memory;
    struct device *gpu = open_gpu(1, 1, &memory);

    (void)group;
    if (!gpu
        || (!of->of_default && !EXPECT(device.cuStreamCreate(&stream, of->flags) == CUDA_SUCCESS)))
        return;
    EXPECT_OK(stream_wait(gpu, stream, in_ms(LATE_MS), NULL));
    EXPECT(gate_close(&gate, stream));
    EXPECT_CUDA(device.cuMemsetD8Async((CUdeviceptr)(uintptr_t)memory, 2, 1, stream));
    EXPECT_ERROR(stream_wait(gpu, stream, in_ms(SOON_MS), NULL), CT_ERR_TIMEOUT, "in time");
    EXPECT_STATUS(stream_wait(gpu, stream, in_ms(SOON_MS), &given_up), CT_ERR_TIMEOUT);
    atomic_store(&given_up, 1);
    EXPECT_ERROR(stream_wait(gpu, stream, NO_DEADLINE, &given_up), CT_ERR_ABORTED,
                 "aborted while the GPU was working");
    atomic_store(&given_up, 0);
    gate_open(&gate);
    EXPECT_OK(stream_wait(gpu, stream, in_ms(LATE_MS), &given_up));
    EXPECT_OK(cuda_to_host(gpu, &byte, memory, 1));
    EXPECT(byte == 2);
    if (stream)
        EXPECT_CUDA(device.cuStreamDestroy(stream));
    device_free(memory);
}

static void a_wait_for_a_stream_ends_when_it_is_done_late_or_given_up(void **state)
{
    struct wait_of of[] = { { CU_STREAM_NON_BLOCKING, 0 }, { CU_STREAM_DEFAULT, 0 }, { 0, 1 } };

    (void)state;
    for (int i = 0; i < 3; i++)
        run_processes(1, wait_ends, &of[i]);
}

/* One that waits for the default stream, and one that does not. */
struct streams {
    struct device *gpu;
    void *memory;
    CUstream blocking, free_one;
};

static int open_streams(struct streams *t)
{
    t->gpu = open_gpu(1, 1, &t->memory);
    return t->gpu && EXPECT_CUDA(device.cuStreamCreate(&t->blocking, CU_STREAM_DEFAULT))
           && EXPECT_CUDA(device.cuStreamCreate(&t->free_one, CU_STREAM_NON_BLOCKING));
}

static void close_streams(struct streams *t)
{
    EXPECT_CUDA(device.cuStreamDestroy(t->blocking));
    EXPECT_CUDA(device.cuStreamDestroy(t->free_one));
    device_free(t->memory);
}

/* What was enqueued in the default stream comes after the blocking ones', and the other way round:
 * so does who waits for it.  A stream of its own has no part in that. */
static void wait_in_order(ct_group *group, void *arg)
{
    struct gate gate, other;
    struct streams t;

    (void)group;
    (void)arg;
    if (!open_streams(&t))
        return;
    EXPECT(gate_close(&gate, t.blocking));
    EXPECT_STATUS(stream_wait(t.gpu, NULL, in_ms(SOON_MS), NULL), CT_ERR_TIMEOUT);
    EXPECT_OK(stream_wait(t.gpu, t.free_one, in_ms(LATE_MS), NULL));
    EXPECT_OK(cuda_finish(t.gpu, (struct patience){ .deadline = in_ms(LATE_MS) }));
    gate_open(&gate);
    EXPECT_OK(stream_wait(t.gpu, NULL, in_ms(LATE_MS), NULL));
    EXPECT(gate_close(&other, NULL));
    EXPECT_STATUS(stream_wait(t.gpu, t.blocking, in_ms(SOON_MS), NULL), CT_ERR_TIMEOUT);
    gate_open(&other);
    EXPECT_OK(stream_wait(t.gpu, t.blocking, in_ms(LATE_MS), NULL));
    close_streams(&t);
}

static void a_wait_for_the_default_stream_is_one_for_the_blocking_ones(void **state)
{
    (void)state;
    run_processes(1, wait_in_order, NULL);
}

/* A mark is work for the GPU. */
static int is_marked(struct device *gpu, CUstream stream)
{
    void *mark;

    EXPECT_OK(cuda_mark(gpu, stream, &mark));
    if (mark)
        cuda_forget(gpu, mark);
    return mark != NULL;
}

static void mark_streams(ct_group *group, void *arg)
{
    struct gate gate;
    struct streams t;

    (void)group;
    (void)arg;
    if (!open_streams(&t))
        return;
    EXPECT(!is_marked(t.gpu, t.free_one));
    EXPECT(is_marked(t.gpu, t.blocking));
    EXPECT(is_marked(t.gpu, NULL));
    EXPECT(is_marked(t.gpu, CU_STREAM_LEGACY));
    EXPECT(gate_close(&gate, t.free_one));
    EXPECT(is_marked(t.gpu, t.free_one));
    gate_open(&gate);
    EXPECT_CUDA(device.cuStreamSynchronize(t.free_one));
    EXPECT(!is_marked(t.gpu, t.free_one));
    close_streams(&t);
}

static void an_idle_stream_that_waits_for_no_other_one_gets_no_mark(void **state)
{
    (void)state;
    run_processes(1, mark_streams, NULL);
}

static void failing_device(ct_group *group, void *arg)
{
    unsigned char byte;
    void *memory;
    struct device *gpu = open_gpu(1, 1, &memory);

    (void)group;
    (void)arg;
    if (!gpu)
        return;
    setenv("FAKE_CUDA_FAIL", "cuEventQuery:1", 1);
    EXPECT_CUDA(device.cuInit(0));
    EXPECT_ERROR(stream_wait(gpu, NULL, in_ms(LATE_MS), NULL), CT_ERR_CUDA,
                 "waiting for the GPU|unknown error|CUDA_ERROR_UNKNOWN");
    setenv("FAKE_CUDA_FAIL", "cuMemcpyDtoHAsync:1", 1);
    EXPECT_CUDA(device.cuInit(0));
    EXPECT_ERROR(cuda_to_host(gpu, &byte, memory, 1), CT_ERR_CUDA, "copying 1 bytes|unknown error");
    EXPECT_ERROR(cuda_to_host(gpu, &byte, (char *)memory + 1, 1), CT_ERR_CUDA, "invalid argument");
    device_free(memory);
}

static void an_error_of_the_driver_is_told_in_its_words(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(1, failing_device, NULL);
}

/* ---- Which GPU -------------------------------------------------------------------- */

static void nobodys(ct_group *group, void *arg)
{
    struct device *gpu;
    int here = 0;

    (void)group;
    (void)arg;
    EXPECT_OK(cuda_gpu_of(&here, &gpu));
    EXPECT(!gpu);
    EXPECT_ERROR(cuda_gpu_current(&gpu), CT_ERR_CUDA, "not loaded|libcuda.so.1");
    if (!EXPECT(device_open(0)))
        return;
    EXPECT_OK(cuda_gpu_of(&here, &gpu));
    EXPECT(!gpu);
}

static void without_a_driver_or_of_host_memory_there_is_no_gpu(void **state)
{
    (void)state;
    run_processes(1, nobodys, NULL);
}

/* Rank 0 calls the two GPUs 0 and 1, rank 1 calls them 1 and 0. */
static void two_numberings(ct_group *group, void *arg)
{
    const int rank = ct_rank(group);
    unsigned char mine[2][16], all[2][2][16];
    struct device *gpus[2], *again;
    void *memory[2];

    (void)arg;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    setenv("CUDA_VISIBLE_DEVICES", rank == 0 ? "0,1" : "1,0", 1);
    for (int d = 0; d < 2; d++) {
        if (!EXPECT(device_open(d)) || !EXPECT((memory[d] = device_alloc(64, 1)) != NULL)
            || !EXPECT_OK(cuda_gpu_of(memory[d], &gpus[d])))
            return;
        cuda_gpu_id(gpus[d], mine[d]);
    }
    EXPECT(gpus[0] != gpus[1]);
    EXPECT_OK(cuda_gpu_of(memory[0], &again));
    EXPECT(again == gpus[0]);
    EXPECT_OK(ct_all_gather(group, mine, all, sizeof mine, CT_U8, NULL));
    for (int d = 0; d < 2; d++) {
        EXPECT(!memcmp(all[0][d], all[1][1 - d], 16));
        EXPECT(memcmp(all[0][d], all[1][d], 16));
        device_free(memory[d]);
    }
}

static void a_gpu_has_one_id_whatever_its_number(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, two_numberings, NULL);
}

/* Memory of pools and managed memory are a GPU's too. */
static void other_kinds(ct_group *group, void *arg)
{
    struct device *gpu, *other;
    CUdeviceptr pooled, managed;
    void *memory;
    int byte = 0;

    (void)group;
    (void)arg;
    gpu = open_gpu(64, 1, &memory);
    if (!gpu)
        return;
    EXPECT_CUDA(device.cuMemAllocAsync(&pooled, 64, NULL));
    EXPECT_CUDA(device.cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    EXPECT_CUDA(device.cuStreamSynchronize(NULL));
    EXPECT_OK(cuda_gpu_of((void *)(uintptr_t)pooled, &other));
    EXPECT(other == gpu);
    EXPECT_OK(cuda_gpu_of((void *)(uintptr_t)managed, &other));
    EXPECT(!other);
    EXPECT_OK(cuda_from_host(gpu, (void *)(uintptr_t)pooled, &byte, 1));
    EXPECT_CUDA(device.cuMemFree(pooled));
    EXPECT_CUDA(device.cuMemFree(managed));
    device_free(memory);
}

static void memory_of_a_pool_is_its_gpus(void **state)
{
    (void)state;
    run_processes(1, other_kinds, NULL);
}

struct thread {
    pthread_t id;
    void *memory;
    struct device *gpu;
    unsigned char sent;
    int right;
};

static void *use_gpu(void *arg)
{
    struct thread *thread = arg;
    unsigned char back = 0;

    thread->right = cuda_gpu_of(thread->memory, &thread->gpu) == CT_OK;
    for (int i = 0; i < 20 && thread->right; i++) {
        thread->right = cuda_from_host(thread->gpu, thread->memory, &thread->sent, 1) == CT_OK
                        && stream_wait(thread->gpu, NULL, in_ms(LATE_MS), NULL) == CT_OK
                        && cuda_to_host(thread->gpu, &back, thread->memory, 1) == CT_OK
                        && back == thread->sent;
    }
    return NULL;
}

static void many_threads(ct_group *group, void *arg)
{
    struct thread threads[4];

    (void)group;
    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    for (int t = 0; t < 4; t++) {
        threads[t].memory = device_alloc(1, 0);
        threads[t].sent = (unsigned char)(t + 1);
    }
    for (int t = 0; t < 4; t++)
        EXPECT(pthread_create(&threads[t].id, NULL, use_gpu, &threads[t]) == 0);
    for (int t = 0; t < 4; t++)
        pthread_join(threads[t].id, NULL);
    for (int t = 0; t < 4; t++) {
        EXPECT(threads[t].right && threads[t].gpu == threads[0].gpu);
        device_free(threads[t].memory);
    }
}

static void threads_share_one_gpu(void **state)
{
    (void)state;
    run_processes(1, many_threads, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_driver_or_of_host_memory_there_is_no_gpu),
        cmocka_unit_test(bytes_go_to_the_gpu_and_come_back),
        cmocka_unit_test(copies_do_not_wait_for_the_default_stream),
        cmocka_unit_test(a_wait_for_a_stream_ends_when_it_is_done_late_or_given_up),
        cmocka_unit_test(a_wait_for_the_default_stream_is_one_for_the_blocking_ones),
        cmocka_unit_test(an_idle_stream_that_waits_for_no_other_one_gets_no_mark),
        cmocka_unit_test(an_error_of_the_driver_is_told_in_its_words),
        cmocka_unit_test(a_gpu_has_one_id_whatever_its_number),
        cmocka_unit_test(memory_of_a_pool_is_its_gpus),
        cmocka_unit_test(threads_share_one_gpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
