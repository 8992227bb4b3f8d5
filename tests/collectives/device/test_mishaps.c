/* SPDX-License-Identifier: Apache-2.0 */
/* test_mishaps.c - calls on device memory while a driver fails, a stream waits, a rank gives up or
 * is gone: a rank that waits for a device learns of it, and each rank's message says what happened.
 *
 * Runs against tests/fake/: what it proves is proved of the fake driver. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/marks.h"
#include "tests/cuda/device.h"

enum { COUNT = 1000, SOON_MS = 100, QUICKLY_MS = GROUP_TIMEOUT_MS / 2 };

/* A rank's GPU, a buffer of ones there, and a stream of the group's that stands still. */
struct scene {
    CUstream stream;
    struct gate gate;
    int32_t *buffer;
};

static int set_up(struct scene *s, ct_group *group)
{
    *s = (struct scene){ .stream = NULL };
    if (!EXPECT(device_open(0))
        || !EXPECT(device.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS))
        return 0;
    s->buffer = device_alloc(COUNT * sizeof *s->buffer, 1);
    EXPECT_OK(ct_set_stream(group, s->stream));
    return EXPECT(s->buffer != NULL) && EXPECT(gate_close(&s->gate, s->stream));
}

static void go_on(struct scene *s)
{
    gate_open(&s->gate);
    EXPECT(device.cuStreamSynchronize(s->stream) == CUDA_SUCCESS);
}

static void tear_down(struct scene *s)
{
    device_free(s->buffer);
    EXPECT(device.cuStreamDestroy(s->stream) == CUDA_SUCCESS);
}

/* ---- Drivers that fail ------------------------------------------------------------ */

static void fails_on_one(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int32_t *buffer;

    if (me == 1)
        setenv("FAKE_CUDA_FAIL", arg, 1);
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(COUNT * sizeof *buffer, 1);
    for (int i = 0; i < 2; i++)
        EXPECT_STATUS(ct_all_reduce(group, buffer, buffer, COUNT, CT_I32, CT_SUM, NULL),
                      me == 1 ? CT_ERR_CUDA : CT_ERR_PEER);
    mark(arg, me);
    for (int i = 0; i < ct_size(group); i++)
        await(arg, i);
    device_free(buffer);
}

static void a_driver_that_fails_on_one_rank_breaks_the_group(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, fails_on_one, (void *)(uintptr_t) "cuDeviceGetUuid:1");
    run_processes(3, fails_on_one, (void *)(uintptr_t) "cuEventRecord:1");
    run_processes(3, fails_on_one, (void *)(uintptr_t) "cuEventQuery:1");
}

/* Of a smaller allocation a driver may have rounded the size up. */
static void too_long(ct_group *group, void *arg)
{
    const size_t bytes = 2 << 20;
    int32_t *buffer;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(ct_rank(group) ? bytes : 2 * bytes, 1);
    EXPECT_ERROR(
        ct_all_reduce(group, buffer, buffer, bytes / sizeof *buffer + 1, CT_I32, CT_SUM, NULL),
        ct_rank(group) ? CT_ERR_INVALID : CT_ERR_PEER, "2097156 bytes|2097152");
    device_free(buffer);
}

static void a_buffer_that_ends_early_is_said_to(void **state)
{
    (void)state;
    run_processes(2, too_long, NULL);
}

/* ---- Streams that stand still ------------------------------------------------------- */

static void aborts(ct_group *group, void *arg)
{
    const double start = now_ms();
    ct_work *work = NULL;
    struct scene s;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL)); /* now there are connections to be told over */
    if (!set_up(&s, group))
        return;
    if (ct_rank(group) == 1) {
        for (int r = 0; r < ct_size(group); r++)
            if (r != 1)
                await("waits", r);
        nap(SOON_MS);
        EXPECT_OK(ct_abort(group));
    } else {
        EXPECT_OK(ct_all_reduce(group, s.buffer, s.buffer, COUNT, CT_I32, CT_SUM, &work));
        mark("waits", ct_rank(group));
        EXPECT_ERROR(ct_wait(work), CT_ERR_PEER, "rank 1|ct_abort");
        EXPECT(now_ms() - start < QUICKLY_MS);
    }
    go_on(&s);
    tear_down(&s);
}

static void who_waits_for_its_stream_hears_of_an_abort(void **state)
{
    (void)state;
    run_processes(3, aborts, NULL);
    use_link("tcp");
    run_processes(2, aborts, NULL);
    use_link(NULL);
}

static void receives(ct_group *group, void *arg)
{
    int32_t value = 5, got[COUNT] = { 0 };
    ct_work *work = NULL;
    struct scene s;
    int done = 1;

    (void)arg;
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_send(group, &value, 1, CT_I32, 1, 0));
        EXPECT_OK(ct_barrier(group, NULL));
        return;
    }
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_irecv(group, s.buffer, 1, CT_I32, 0, 0, &work));
    EXPECT_OK(ct_barrier(group, NULL)); /* the message is here */
    EXPECT_OK(ct_test(work, &done));
    EXPECT(!done);
    EXPECT_ERROR(ct_wait_for(work, SOON_MS), CT_ERR_TIMEOUT,
                 "the work must still be passed to ct_wait()");
    go_on(&s);
    EXPECT_OK(ct_wait(work));
    EXPECT(device.cuMemcpyDtoH(got, (CUdeviceptr)(uintptr_t)s.buffer, sizeof got) == CUDA_SUCCESS);
    EXPECT(got[0] == 5 && got[1] == 0x01010101);
    tear_down(&s);
}

static void a_receive_is_done_when_its_buffer_may_be_written(void **state)
{
    (void)state;
    run_processes(2, receives, NULL);
}

static void from_the_dead(ct_group *group, void *arg)
{
    ct_work *work = NULL;
    struct scene s;

    (void)arg;
    if (ct_rank(group) == 1) {
        EXPECT_OK(ct_barrier(group, NULL));
        rank_leaves();
    }
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_irecv(group, s.buffer, COUNT, CT_I32, 1, 0, &work));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_ERROR(ct_wait(work), CT_ERR_PEER, "irecv|rank 1|gone");
    go_on(&s);
    tear_down(&s);
}

static void what_ends_a_receive_is_its_sentence_though_a_stream_stands_still(void **state)
{
    (void)state;
    run_processes(2, from_the_dead, NULL);
}

static void sends(ct_group *group, void *arg)
{
    struct scene s;

    (void)arg;
    if (ct_rank(group) == 0 && set_up(&s, group)) {
        EXPECT_OK(ct_set_next_timeout(group, SOON_MS));
        EXPECT_ERROR(ct_send(group, s.buffer, COUNT, CT_I32, 1, 0), CT_ERR_TIMEOUT,
                     "send|limit 100 ms|ct_set_next_timeout");
        go_on(&s);
        EXPECT_OK(ct_send(group, s.buffer, COUNT, CT_I32, 1, 1));
        tear_down(&s);
    } else if (ct_rank(group) == 1) {
        int32_t got[COUNT];

        EXPECT_OK(ct_recv(group, got, COUNT, CT_I32, 0, 1, NULL));
        EXPECT(got[COUNT - 1] == 0x01010101);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_sends_limit_is_that_of_its_stream_too(void **state)
{
    (void)state;
    run_processes(2, sends, NULL);
}

static void inherits(ct_group *group, void *arg)
{
    ct_group *child = NULL;
    ct_work *work = NULL;
    struct scene s;
    int done = 1;

    (void)arg;
    if (!set_up(&s, group) || !EXPECT_OK(ct_split_group(group, 0, ct_rank(group), &child)))
        return;
    EXPECT_OK(ct_all_reduce(child, s.buffer, s.buffer, COUNT, CT_I32, CT_MAX, &work));
    nap(SOON_MS / 4);
    EXPECT_OK(ct_test(work, &done));
    EXPECT(!done);
    go_on(&s);
    EXPECT_OK(ct_wait(work));
    EXPECT_OK(ct_destroy_process_group(child));
    tear_down(&s);
}

static void a_group_begins_with_the_stream_of_the_one_it_is_made_from(void **state)
{
    (void)state;
    run_processes(2, inherits, NULL);
}

static void misspelt(ct_group *unused, void *arg)
{
    (void)unused;
    (void)arg;
    setenv("CT_DEVICE", "stagd", 1);
    EXPECT_ERROR(ct_init_process_group(NULL), CT_ERR_INVALID, "CT_DEVICE=stagd|staged");
    unsetenv("CT_DEVICE");
    setenv("CT_HANDOVER", "hosts", 1);
    EXPECT_ERROR(ct_init_process_group(NULL), CT_ERR_INVALID, "CT_HANDOVER=hosts|host or stream");
}

static void a_path_or_a_way_that_there_is_not_is_refused(void **state)
{
    (void)state;
    run_programs(1, misspelt, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_that_fails_on_one_rank_breaks_the_group),
        cmocka_unit_test(a_buffer_that_ends_early_is_said_to),
        cmocka_unit_test(who_waits_for_its_stream_hears_of_an_abort),
        cmocka_unit_test(a_receive_is_done_when_its_buffer_may_be_written),
        cmocka_unit_test(what_ends_a_receive_is_its_sentence_though_a_stream_stands_still),
        cmocka_unit_test(a_sends_limit_is_that_of_its_stream_too),
        cmocka_unit_test(a_group_begins_with_the_stream_of_the_one_it_is_made_from),
        cmocka_unit_test(a_path_or_a_way_that_there_is_not_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
