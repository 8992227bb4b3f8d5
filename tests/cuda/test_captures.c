/* SPDX-License-Identifier: Apache-2.0 */
/* test_captures.c - libct's calls beside a capture leave it sound.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <stdlib.h>

#include "tests/cuda/graphs.h"

/* libct has left this thread as it was. */
static int thread_is_global(void)
{
    CUstreamCaptureMode now = CU_STREAM_CAPTURE_MODE_GLOBAL;

    return cu(device.cuThreadExchangeStreamCaptureMode(&now))
           && now == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

/* ---- Somebody else's capture
 * ---------------------------------------------------------------------- */

static void beside_a_capture(ct_group *group, void *arg)
{
    const int gpus = *(const int *)arg;
    ct_work *work = NULL, *other = NULL;
    int32_t here = 1;
    CUstream calls;
    struct scene s;

    if (!scene_set_up(&s, group, gpus)
        || !EXPECT(cu(device.cuStreamCreate(&calls, CU_STREAM_NON_BLOCKING))))
        return;
    put(&s, 3);
    EXPECT_OK(ct_barrier(group, NULL)); /* all that the test itself allocates is there */
    EXPECT(cu(device.cuStreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_GLOBAL)));
    EXPECT(cu(device.cuMemsetD8Async(at(s.recv), 7, 1, s.stream)));
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, &work));
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, &other));
    EXPECT_OK(ct_wait_on_stream(work, calls));
    EXPECT_OK(ct_wait(work));
    EXPECT_OK(ct_wait(other));
    EXPECT_OK(ct_set_stream(group, calls));
    EXPECT_OK(all_reduce(&s));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_send(group, &here, 1, CT_I32, (s.me + 1) % s.p, 0));
    EXPECT_OK(ct_recv(group, s.send, 1, CT_I32, CT_ANY_SOURCE, 0, NULL));
    EXPECT_OK(ct_barrier(group, NULL));
    end_and_forget(&s);
    EXPECT(thread_is_global());
    EXPECT_OK(ct_barrier(group, NULL)); /* nobody captures any more */
    put(&s, 3);
    EXPECT_OK(all_reduce(&s));
    EXPECT(cu(device.cuStreamSynchronize(calls)));
    look(&s, s.recv, 3, COUNT, sum_is);
    EXPECT_OK(ct_set_stream(group, NULL));
    EXPECT(cu(device.cuStreamDestroy(calls)));
    scene_tear_down(&s);
}

static void calls_beside_a_capture_leave_it_sound(void **state)
{
    static const int apart = 4, shared = 1;

    (void)state;
    run_apart(3, 2, beside_a_capture, (void *)(uintptr_t)&apart);
    run_apart(3, 2, beside_a_capture, (void *)(uintptr_t)&shared);
    setenv("CT_DEVICE", "staged", 1);
    run_apart(3, 2, beside_a_capture, (void *)(uintptr_t)&shared);
}

static void a_group_ends(ct_group *group, void *arg)
{
    ct_group *part = NULL;
    struct scene s, of_part;

    (void)arg;
    if (!scene_set_up(&s, group, 4) || !EXPECT_OK(ct_split_group(group, 0, 0, &part)))
        return;
    of_part = s;
    of_part.group = part;
    join(&of_part);
    EXPECT_OK(ct_barrier(group, NULL));
    begin(&s);
    EXPECT_OK(ct_destroy_process_group(part));
    end_and_forget(&s);
    scene_tear_down(&s);
}

static void so_does_the_end_of_a_group(void **state)
{
    (void)state;
    run_apart(2, 0, a_group_ends, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(calls_beside_a_capture_leave_it_sound, forget_settings),
        cmocka_unit_test_teardown(so_does_the_end_of_a_group, forget_settings),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA or NCCL */
}

#endif
