/* SPDX-License-Identifier: Apache-2.0 */
/* test_staged.c - calls on device memory that go through host memory: when that is pinned, and that
 * nothing is read or written there before its copy is done.  That random calls give the right
 * results is collectives/test_properties.c's to show (ctest cuda/properties-staged). */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>
#include <string.h>

#include "collectives/device/staged/staged.h"
#include "include/ct_cuda.h"
#include "runtime/util/log.h"
#include "tests/marks.h"
#include "tests/cuda/device.h"

enum { COUNT = 1000 };

/* Lines of the log that have the words. */
struct words {
    const char *words;
    int times;
};

static void count_line(void *arg, const char *line, size_t size)
{
    struct words *w = arg;

    w->times += memmem(line, size, w->words, strlen(w->words)) != NULL;
}

/* Of two groups, one after the other, each makes two calls; rank 1's driver does not let it pin the
 * first one's memory. */
static void one_cant_pin(ct_group *group, void *arg)
{
    struct words not_pinned = { "is not pinned: pinning ", 0 };
    const int me = ct_rank(group);
    int32_t here[COUNT], *there;

    (void)arg;
    if (me == 1)
        setenv("FAKE_CUDA_FAIL", "cuMemHostRegister:1", 1);
    if (!EXPECT(device_open(0)))
        return;
    there = device_alloc(sizeof here, 1);
    log_divert(count_line, &not_pinned);
    for (int i = 0; i < 2; i++) {
        ct_group *made;

        EXPECT_OK(ct_split_group(group, 0, me, &made));
        for (int j = 0; j < 2; j++)
            EXPECT_OK(ct_all_reduce(made, there, there, COUNT, CT_I32, CT_MAX, NULL));
        EXPECT_OK(ct_destroy_process_group(made));
    }
    log_divert(NULL, NULL);
    EXPECT(not_pinned.times == (me == 1));
    CU(device.cuMemcpyDtoH(here, at(there), sizeof here));
    EXPECT(here[0] == 0x01010101 && here[COUNT - 1] == 0x01010101);
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

static void memory_that_cant_be_pinned_is_used_all_the_same_and_said_once(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    setenv("CT_LOG", "info", 1);
    setenv("CT_DEVICE", "staged", 1);
    run_processes(3, one_cant_pin, NULL);
    unsetenv("CT_DEVICE");
    unsetenv("CT_LOG");
}

/* Calls in a stream that waits for them: to pin then, or to give back what is pinned, might be to
 * wait for that stream.  They need more each time, and another kind of memory. */
static void grows_in_stream(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    const size_t most = 300 * COUNT, half = most / 2 / sizeof(int32_t);
    const size_t counts[] = { 100, half, half };
    unsigned char *here = malloc(most);
    char *there, *all;
    CUstream stream;

    (void)arg;
    if (!EXPECT(device_open(0)) || !CU(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
        return;
    there = device_alloc(most, 0);
    all = device_alloc(most, 0);
    for (int round = 0; round < 2; round++) {
        EXPECT_OK(ct_set_stream(group, NULL)); /* this one waits, and nothing is held */
        EXPECT_OK(ct_all_reduce(group, there, there, 10, CT_I32, CT_MAX, NULL));
        EXPECT_OK(ct_set_stream(group, stream));
        for (int i = 0; i < 3; i++) {
            CU(device.cuMemsetD8Async(at(there), (unsigned char)(round + i + 1), most, stream));
            EXPECT_OK(ct_all_reduce(group, there, there, counts[i], CT_I32, CT_MAX, NULL));
            EXPECT_OK(ct_all_gather(group, there, all, counts[i] / (size_t)p, CT_I32, NULL));
        }
        CU(device.cuStreamSynchronize(stream));
        CU(device.cuMemcpyDtoH(here, at(all), most));
        EXPECT(here[0] == round + 3 && here[(half / (size_t)p * (size_t)p - 1) * 4] == round + 3);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
    device_free(all);
    CU(device.cuStreamDestroy(stream));
    free(here);
}

static void nothing_is_pinned_while_a_stream_waits_for_the_call(void **state)
{
    (void)state;
    setenv("CT_DEVICE", "staged", 1);
    run_processes(2, grows_in_stream, NULL);
    run_threads(2, grows_in_stream, NULL);
    unsetenv("CT_DEVICE");
}

/* ---- Pieces -------------------------------------------------------------------------- */

/* All pieces but the last are alike; what differs is the calls. */
static void other_count(ct_group *group, void *arg)
{
    const size_t count = ct_rank(group) == 1 ? COUNT : COUNT - 1;
    int32_t *there;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    there = device_alloc(COUNT * sizeof *there, 1);
    EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_MAX, NULL));
    EXPECT_ERROR(ct_all_reduce(group, there, there, count, CT_I32, CT_MAX, NULL), CT_ERR_MISMATCH,
                 "1000 i32|999 i32");
    mark("seen", ct_rank(group));
    for (int i = 0; i < ct_size(group); i++)
        await("seen", i);
    device_free(there);
}

static void ranks_with_other_counts_are_found_in_the_first_piece(void **state)
{
    const struct piece_sizes sizes = piece_sizes;

    (void)state;
    setenv("CT_DEVICE", "staged", 1);
    piece_sizes = (struct piece_sizes){ 512, 512 };
    run_processes(2, other_count, NULL);
    use_link("tcp");
    run_processes(2, other_count, NULL);
    use_link(NULL);
    piece_sizes = sizes;
    unsetenv("CT_DEVICE");
}

/* Rank 1's device begins all that it is told so late that whoever does not wait is seen to. */
static void late_pieces(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    int32_t here[COUNT], *there;

    if (!arg && me == 1)
        setenv("FAKE_CUDA_LAG_RANK", "all", 1);
    if (!EXPECT(device_open(0)))
        return;
    for (int i = 0; i < COUNT; i++)
        here[i] = i * (me + 1);
    there = device_alloc(sizeof here, 0);
    CU(device_put(at(there), here, sizeof here));
    EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL));
    CU(device.cuMemcpyDtoH(here, at(there), sizeof here));
    for (int i = 0; i < COUNT; i++)
        if (!EXPECT(here[i] == i * p * (p + 1) / 2))
            break;
    EXPECT(!strcmp(ct_last_algorithm(group), "staged"));
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

static void pieces_of_a_device_that_is_late_are_waited_for(void **state)
{
    const struct piece_sizes sizes = piece_sizes;

    (void)state;
    if (!device_is_fake())
        skip();
    setenv("CT_DEVICE", "staged", 1);
    setenv("FAKE_CUDA_LAG_US", "1000", 1);
    piece_sizes = (struct piece_sizes){ 256, 256 };
    run_processes(3, late_pieces, NULL);
    setenv("FAKE_CUDA_LAG_RANK", "all", 1); /* threads have one environment, and one driver */
    run_threads(2, late_pieces, "all");
    unsetenv("FAKE_CUDA_LAG_RANK");
    use_link("tcp");
    run_processes(2, late_pieces, NULL);
    use_link(NULL);
    piece_sizes = sizes;
    unsetenv("FAKE_CUDA_LAG_US");
    unsetenv("CT_DEVICE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_cant_be_pinned_is_used_all_the_same_and_said_once),
        cmocka_unit_test(nothing_is_pinned_while_a_stream_waits_for_the_call),
        cmocka_unit_test(ranks_with_other_counts_are_found_in_the_first_piece),
        cmocka_unit_test(pieces_of_a_device_that_is_late_are_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
