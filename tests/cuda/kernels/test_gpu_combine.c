/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_combine.c - cuda_fold() on a GPU gives the bits of combine_fold_to().
 *
 * On the fake driver this shows what is loaded and launched, and how failures are
 * told; with CT_TEST_DRIVER=libcuda.so.1 what nvcc made of the kernels. */
#include "tests/harness.h"

#if defined(CT_WITH_CUDA) && !defined(CT_WITHOUT_KERNELS)

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "runtime/util/clock.h"
#include "tests/cuda/device.h"
#include "tests/cuda/kernels/elements.h"

enum { LATE_MS = 20000 };
enum { MOST = 300, SOURCES = 9, COPIES = 9, ROOM = MOST * 16 + 128 };

static int64_t in_ms(int ms)
{
    return clock_ms() + ms;
}

static ct_status fold_to(struct device *gpu, const struct fold *fold, void *const *dst, int dsts,
                         const void *const *src, size_t count)
{
    return cuda_fold(gpu, NULL, fold, NULL,
                     &(struct fold_part){ .dst = dst, .src = src, .dsts = dsts, .count = count },
                     1);
}

/* ---- Folds that are drawn ----------------------------------------------------------- */

/* The same memory on both sides; what the GPU did comes back beside what was sent. */
struct mirror {
    struct device *gpu;
    char host[SOURCES + COPIES][ROOM], back[SOURCES + COPIES][ROOM];
    char (*there)[ROOM];
};

/* Where row `row` of the mirror begins: `shift`, or somewhere else in 16 bytes. */
static size_t offset_in(size_t shift, int alike)
{
    return 48 + (alike ? shift : shift + any(16)) % 16;
}

static void fold_one(struct mirror *m, ct_dtype dtype, ct_op op)
{
    const size_t count = any(MOST + 1), bytes = count * ct_dtype_size(dtype), shift = any(16);
    const int alike = any(3) > 0, dsts = 1 + (int)any(any(4) ? 2 : COPIES);
    const int sources = 1 + (int)any(SOURCES);
    const struct fold fold = { dtype, op, sources, 1, &sources };
    int row[COPIES];
    size_t offset[SOURCES + COPIES];
    const void *src[SOURCES], *host[SOURCES];
    void *dst[COPIES];
    char wanted[ROOM];
    void *const to = wanted;

    memset(m->host, 0x55, sizeof m->host);
    for (int r = 0; r < SOURCES + COPIES; r++)
        offset[r] = offset_in(shift, alike);
    for (int s = 0; s < fold.sources; s++) {
        host[s] = m->host[s] + offset[s];
        src[s] = m->there[s] + offset[s];
        fill(dtype, m->host[s] + offset[s], count);
    }
    for (int d = 0; d < dsts; d++) {
        row[d] = d == 0 && any(2) ? (int)any((unsigned)fold.sources) : SOURCES + d;
        dst[d] = m->there[row[d]] + offset[row[d]];
    }
    combine_fold_to(&fold, &to, 1, host, count, 0);
    if (!EXPECT_OK(cuda_from_host(m->gpu, m->there, m->host, sizeof m->host))
        || !EXPECT_OK(fold_to(m->gpu, &fold, dst, dsts, src, count))
        || !EXPECT_OK(cuda_finish(m->gpu, (struct patience){ .deadline = in_ms(LATE_MS) }))
        || !EXPECT_OK(cuda_to_host(m->gpu, m->back, m->there, sizeof m->back)))
        return;
    for (int d = 0; d < dsts; d++) {
        char *const got = m->back[row[d]] + offset[row[d]];

        if (!same(dtype, op, got, wanted, count))
            expect_fails(__FILE__, __LINE__, "%s of %d x %zu %s, to %d of %d", op_name(op),
                         fold.sources, count, dtype_name(dtype), d, dsts);
        memcpy(m->host[row[d]] + offset[row[d]], got, bytes);
    }
    EXPECT(!memcmp(m->back, m->host, sizeof m->back)); /* nothing else has changed */
}

static void folds(ct_group *group, void *arg)
{
    struct mirror *const m = malloc(sizeof *m);

    (void)group;
    if (EXPECT(device_open(0)) && EXPECT((m->there = device_alloc(sizeof m->host, 0)) != NULL)
        && EXPECT_OK(cuda_gpu_of(m->there, &m->gpu))) {
        EVERY_ROW(dtype, op)
        for (int n = 0; n < *(const int *)arg; n++)
            fold_one(m, (ct_dtype)dtype, op);
        device_free(m->there);
    }
    free(m);
}

static void every_dtype_and_op_gives_the_hosts_bits(void **state)
{
    int folds_each = device_is_fake() ? 20 : 200;

    (void)state;
    run_processes(1, folds, &folds_each);
}

/* ---- A large one -------------------------------------------------------------------- */

/* So many elements that each thread of a full grid has several pieces. */
static void large_sum(ct_group *group, void *arg)
{
    enum { SUMMED = 3 };
    const size_t count = *(const size_t *)arg, bytes = count * sizeof(float);
    const int end = SUMMED;
    const struct fold fold = { CT_F32, CT_SUM, SUMMED, 1, &end };
    float *const host = malloc(bytes);
    const void *src[SUMMED];
    void *there;
    struct device *gpu;
    size_t wrong = 0;

    (void)group;
    if (EXPECT(device_open(0)) && EXPECT((there = device_alloc(SUMMED * bytes, 0)) != NULL)
        && EXPECT_OK(cuda_gpu_of(there, &gpu))) {
        for (size_t i = 0; i < count; i++)
            host[i] = (float)(i % 4099);
        for (int s = 0; s < SUMMED; s++) {
            src[s] = (char *)there + (size_t)s * bytes;
            EXPECT_OK(cuda_from_host(gpu, (char *)there + (size_t)s * bytes, host, bytes));
        }
        EXPECT_OK(fold_to(gpu, &fold, &there, 1, src, count));
        EXPECT_OK(cuda_to_host(gpu, host, there, bytes));
        for (size_t i = 0; i < count; i++)
            wrong += host[i] != SUMMED * (float)(i % 4099);
        EXPECT(wrong == 0);
        device_free(there);
    }
    free(host);
}

static void a_large_sum_is_whole(void **state)
{
    size_t count = device_is_fake() ? 100003 * 4 : ((size_t)1 << 27) + 4;

    (void)state;
    run_processes(1, large_sum, &count);
}

/* ---- Many at once --------------------------------------------------------------------- */

/* Byte i of the upper half is copied from byte 200-i of the lower one: more copies than fit a
 * launch, with gaps. */
static void copy_there(ct_group *group, void *arg)
{
    enum { PARTS = 201 };
    static const int one = 1;
    const struct fold copy = { CT_U8, CT_MAX, 1, 1, &one };
    unsigned char sent[256], back[256];
    struct fold_part parts[PARTS];
    const void *src[PARTS];
    void *dst[PARTS];
    char *there;
    struct device *gpu;

    (void)group;
    (void)arg;
    for (int i = 0; i < 256; i++)
        sent[i] = (unsigned char)i;
    if (!EXPECT(device_open(0)) || !EXPECT((there = device_alloc(512, 3)) != NULL)
        || !EXPECT_OK(cuda_gpu_of(there, &gpu)))
        return;
    for (int i = 0; i < PARTS; i++) {
        src[i] = there + 200 - i;
        dst[i] = there + 256 + i;
        parts[i] =
            (struct fold_part){ .dst = &dst[i], .src = &src[i], .dsts = 1, .count = i % 10 > 0 };
    }
    EXPECT_OK(cuda_from_host(gpu, there, sent, 256));
    EXPECT_OK(cuda_fold(gpu, NULL, &copy, NULL, parts, PARTS));
    EXPECT_OK(cuda_finish(gpu, (struct patience){ .deadline = in_ms(LATE_MS) }));
    EXPECT_OK(cuda_to_host(gpu, back, there + 256, 256));
    for (int i = 0; i < 256; i++)
        EXPECT(back[i] == (i < PARTS && i % 10 > 0 ? 200 - i : 3));
    device_free(there);
}

static void many_copies_are_one_fold(void **state)
{
    (void)state;
    run_processes(1, copy_there, NULL);
}

/* ---- Called off ---------------------------------------------------------------------------- */

/* Folds in a stream, of memory that is freed before the stream comes to it. */
static void fold_freed_memory(uint32_t is_called_off)
{
    static const int end = 1;
    const struct fold copy = { CT_U8, CT_SUM, 1, 1, &end };
    void *word = NULL, *there = NULL, *dst;
    struct in_stream in = { NULL, NULL };
    struct device *gpu;
    struct gate gate;
    CUstream stream;

    if (!device_open(0) || device.cuMemAllocHost(&word, sizeof(uint32_t)) != CUDA_SUCCESS
        || device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS
        || !(there = device_alloc(128, 1)) || cuda_gpu_of(there, &gpu) != CT_OK
        || !gate_close(&gate, stream))
        abort();
    in = (struct in_stream){ stream, word };
    memcpy(word, &(uint32_t){ 0 }, sizeof(uint32_t));
    dst = (char *)there + 64;
    if (cuda_fold(gpu, &in, &copy, NULL,
                  &(struct fold_part){
                      .dst = &dst, .src = (const void *[]){ there }, .dsts = 1, .count = 64 },
                  1)
        != CT_OK)
        abort();
    device_free(there);
    memcpy(word, &is_called_off, sizeof is_called_off);
    gate_open(&gate);
    if (device.cuStreamSynchronize(stream) != CUDA_SUCCESS)
        abort();
}

static void fold_what_was_freed(void)
{
    fold_freed_memory(0);
}

static void call_off_what_was_freed(ct_group *group, void *arg)
{
    (void)group;
    (void)arg;
    fold_freed_memory(1);
}

static void a_fold_that_is_called_off_uses_no_memory_and_another_one_ends_the_program(void **state)
{
    (void)state;
    if (!device_is_fake() || getenv("FAKE_CUDA_LOCK")) /* then the free waits for the stream */
        skip();
    run_processes(1, call_off_what_was_freed, NULL);
    assert_true(
        device_ends(fold_what_was_freed, "a kernel that begins uses memory which was freed"));
}

/* ---- Loading ------------------------------------------------------------------------------ */

static ct_status fold_two(struct device *gpu, void *there)
{
    const int end = 2;
    const struct fold fold = { CT_U8, CT_SUM, 2, 1, &end };
    const void *const src[] = { there, (char *)there + 64 };

    return fold_to(gpu, &fold, &there, 1, src, 64);
}

static void failing_loads(ct_group *group, void *arg)
{
    static const char *const fails[][2] = {
        { "cuModuleLoadData:1", "loading libct's kernels|unknown error" },
        { "cuModuleGetFunction:3", "finding kernel|unknown error" },
        { "cuLaunchKernel:1", "launching kernel fold_u8|unknown error" },
    };
    unsigned char back;
    void *there;
    struct device *gpu;

    (void)group;
    (void)arg;
    setenv("FAKE_CUDA_FAIL", fails[0][0], 1); /* as soon as the GPU is used, without harm */
    if (!EXPECT(device_open(0)) || !EXPECT((there = device_alloc(128, 21)) != NULL)
        || !EXPECT_OK(cuda_gpu_of(there, &gpu)))
        return;
    for (int f = 0; f < 3; f++) {
        setenv("FAKE_CUDA_FAIL", fails[f][0], 1);
        EXPECT(device.cuInit(0) == CUDA_SUCCESS);
        EXPECT_ERROR(fold_two(gpu, there), CT_ERR_CUDA, fails[f][1]);
    }
    EXPECT_OK(fold_two(gpu, there));
    EXPECT_OK(cuda_to_host(gpu, &back, there, 1));
    EXPECT(back == 42);
    device_free(there);
}

static void a_load_that_failed_is_told_and_goes_on_next_time(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(1, failing_loads, NULL);
}

/* Twice: the second time the driver is not asked. */
static void too_old(ct_group *group, void *arg)
{
    void *there;
    struct device *gpu;

    (void)group;
    (void)arg;
    if (!EXPECT(device_open(0)) || !EXPECT((there = device_alloc(128, 21)) != NULL)
        || !EXPECT_OK(cuda_gpu_of(there, &gpu)))
        return;
    for (int i = 0; i < 2; i++)
        EXPECT_ERROR(fold_two(gpu, there), CT_ERR_UNSUPPORTED,
                     "the driver supports CUDA 11.8, but libct's kernels were built with|may need "
                     "a driver as new as that");
    device_free(there);
}

static void a_driver_that_is_too_old_for_the_kernels_is_named(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    setenv("FAKE_CUDA_KERNELS", "", 1);
    setenv("FAKE_CUDA_VERSION", "11080", 1);
    run_processes(1, too_old, NULL);
    unsetenv("FAKE_CUDA_VERSION");
    unsetenv("FAKE_CUDA_KERNELS");
}

struct thread {
    pthread_t id;
    pthread_barrier_t *start;
    void *there;
    int right;
};

static void *fold_first(void *arg)
{
    struct thread *const thread = arg;
    unsigned char back = 0;
    struct device *gpu;

    thread->right = cuda_gpu_of(thread->there, &gpu) == CT_OK;
    pthread_barrier_wait(thread->start);
    thread->right = thread->right && fold_two(gpu, thread->there) == CT_OK
                    && cuda_to_host(gpu, &back, thread->there, 1) == CT_OK && back == 8;
    return NULL;
}

static void fold_together(ct_group *group, void *arg)
{
    struct thread threads[4];
    pthread_barrier_t start;

    (void)group;
    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    pthread_barrier_init(&start, NULL, 4);
    for (int t = 0; t < 4; t++) {
        threads[t].start = &start;
        threads[t].there = device_alloc(128, 4);
    }
    for (int t = 0; t < 4; t++)
        EXPECT(pthread_create(&threads[t].id, NULL, fold_first, &threads[t]) == 0);
    for (int t = 0; t < 4; t++)
        pthread_join(threads[t].id, NULL);
    for (int t = 0; t < 4; t++) {
        EXPECT(threads[t].right);
        device_free(threads[t].there);
    }
}

static void threads_may_fold_first_together(void **state)
{
    (void)state;
    run_processes(1, fold_together, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_and_op_gives_the_hosts_bits),
        cmocka_unit_test(a_large_sum_is_whole),
        cmocka_unit_test(many_copies_are_one_fold),
        cmocka_unit_test(a_fold_that_is_called_off_uses_no_memory_and_another_one_ends_the_program),
        cmocka_unit_test(a_load_that_failed_is_told_and_goes_on_next_time),
        cmocka_unit_test(a_driver_that_is_too_old_for_the_kernels_is_named),
        cmocka_unit_test(threads_may_fold_first_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA, or without nvcc */
}

#endif
