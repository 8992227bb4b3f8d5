/* SPDX-License-Identifier: Apache-2.0 */
/* test_message_mishaps.c - messages by device rendezvous (runtime/messaging/device_rendezvous.c)
 * when one side makes another call, has a driver that fails, or is gone: no receive gets bytes
 * that were not sent, and none waits for ever. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>

#include "runtime/group/group.h"
#include "tests/marks.h"
#include "tests/runtime/p2p/device/mapped_message.h"

static void other_count(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    void *buffer;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(BYTES, (unsigned char)(5 - me));
    if (me == 0) {
        EXPECT_ERROR(ct_send(group, buffer, BYTES, CT_U8, 1, 0), CT_ERR_MISMATCH, "60000|30000");
        EXPECT_OK(ct_send(group, buffer, BYTES, CT_U8, 1, 0));
    } else {
        EXPECT_ERROR(ct_recv(group, buffer, BYTES / 2, CT_U8, 0, 0, NULL), CT_ERR_MISMATCH,
                     "60000|30000");
        EXPECT(is_full_of(buffer, 4));
        EXPECT_OK(ct_recv(group, buffer, BYTES, CT_U8, 0, 0, NULL));
        EXPECT(is_full_of(buffer, 5));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(buffer);
}

static void counts_that_differ_are_told_to_both(void **state)
{
    (void)state;
    run_processes(2, other_count, NULL);
    run_threads(2, other_count, NULL);
}

/* ---- Drivers that fail ------------------------------------------------------------- */

static void driver_fails(ct_group *group, void *arg)
{
    const size_t large = (size_t)4 * BYTES; /* is pinned */
    const int me = ct_rank(group);
    void *buffer;

    if (me == 1)
        setenv("FAKE_CUDA_FAIL", arg, 1);
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(large, (unsigned char)(3 + me));
    for (int i = 0; i < 2; i++)
        if (me == 0)
            EXPECT_OK(ct_send(group, buffer, large, CT_U8, 1, i));
        else
            EXPECT_OK(ct_recv(group, buffer, large, CT_U8, 0, i, NULL));
    EXPECT(is_full_of(buffer, 3));
    EXPECT(me == 1 || group->on_device.pinned.bytes > 0);
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(buffer);
}

static void what_a_driver_wont_map_or_copy_comes_through_the_host(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, driver_fails, (void *)(uintptr_t) "cuIpcOpenMemHandle:1");
    run_processes(2, driver_fails, (void *)(uintptr_t) "cuMemcpyDtoDAsync:1");
}

static void copy_fails(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    void *buffer;

    (void)arg;
    if (me == 1)
        setenv("FAKE_CUDA_FAIL", "cuEventQuery:1", 1);
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(BYTES, 3);
    if (me == 0) {
        EXPECT_OK(ct_send(group, buffer, BYTES, CT_U8, 1, 0));
    } else {
        EXPECT_ERROR(ct_recv(group, buffer, BYTES, CT_U8, 0, 0, NULL), CT_ERR_CUDA, "recv|rank 0");
        EXPECT_OK(ct_recv(group, buffer, BYTES, CT_U8, 0, 0, NULL));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(buffer);
}

/* Of rank 1 the first question is whether its own stream is done, and the second one whether the
 * copy is, which begins 20 ms late. */
static void asking_fails(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_work *work = NULL;
    void *buffer;

    (void)arg;
    setenv("FAKE_CUDA_LAG_RANK", me == 1 ? "all" : "-1", 1);
    setenv("FAKE_CUDA_LAG_US", "20000", 1);
    if (me == 1)
        setenv("FAKE_CUDA_FAIL", "cuEventQuery:2", 1);
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(BYTES, (unsigned char)(3 + me));
    if (me == 1) {
        EXPECT_OK(ct_irecv(group, buffer, BYTES, CT_U8, 0, 0, &work));
        CU(device.cuStreamSynchronize(NULL));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    if (me == 0) {
        EXPECT_OK(ct_send(group, buffer, BYTES, CT_U8, 1, 0));
        fill(buffer, 9);
    } else {
        EXPECT_ERROR(ct_wait(work), CT_ERR_CUDA, "recv|rank 0");
        EXPECT_OK(ct_recv(group, buffer, BYTES, CT_U8, 0, 0, NULL));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT(me == 0 || is_full_of(buffer, 3)); /* nothing was read when it was the sender's again */
    device_free(buffer);
}

static void a_receive_that_a_device_fails_is_not_the_senders_failure(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, copy_fails, NULL);
    run_processes(2, asking_fails, NULL);
}

/* ---- Deaths ---------------------------------------------------------------------- */

static void sender_dies(ct_group *group, void *arg)
{
    struct scene s;
    ct_work *work;

    if (!EXPECT(device_open(0)))
        return;
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_isend(group, device_alloc(BYTES, 1), BYTES, CT_U8, 1, 0, &work));
        mark(arg, 0);
        await(arg, 1);
        rank_leaves();
    }
    if (!receive_held(&s, group, 0))
        return;
    await(arg, 0);
    mark(arg, 1);
    EXPECT_ERROR(ct_wait(s.work), CT_ERR_PEER, "irecv|rank 0|gone");
    go_on(&s);
    EXPECT(is_full_of(s.buffer, 9));
    tear_down(&s);
}

static void a_receive_ends_with_the_sender_whose_buffer_it_maps(void **state)
{
    (void)state;
    run_processes(2, sender_dies, (void *)(uintptr_t) "has sent the RTS");
}

/* At any time of the mapping and the copy. */
static void sender_dies_late(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    char ms[2] = { *(const char *)arg, 0 };
    ct_status status;
    void *buffer;
    ct_work *work;

    setenv("FAKE_CUDA_LAG_RANK", me == 1 ? "all" : "-1", 1);
    setenv("FAKE_CUDA_LAG_US", "3000", 1);
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(BYTES, (unsigned char)(me + 1));
    EXPECT_OK(ct_barrier(group, NULL));
    if (me == 0) {
        EXPECT_OK(ct_isend(group, buffer, BYTES, CT_U8, 1, 0, &work));
        nap(atoi(ms));
        rank_leaves();
    }
    status = ct_recv(group, buffer, BYTES, CT_U8, 0, 0, NULL);
    EXPECT(status == CT_OK || status == CT_ERR_PEER);
    EXPECT(status != CT_OK || is_full_of(buffer, 1));
    device_free(buffer);
}

static void a_sender_may_die_at_any_time(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    for (const char *ms = "02468"; *ms; ms++)
        run_processes(2, sender_dies_late, (void *)(uintptr_t)ms);
}

static void receiver_dies(ct_group *group, void *arg)
{
    struct scene s;
    ct_work *work;
    void *buffer;

    if (!EXPECT(device_open(0)))
        return;
    if (ct_rank(group) == 1) {
        if (receive_held(&s, group, 0))
            mark(arg, 1);
        rank_leaves();
    }
    buffer = device_alloc(BYTES, 1);
    EXPECT_OK(ct_isend(group, buffer, BYTES, CT_U8, 1, 0, &work));
    EXPECT_ERROR(ct_wait(work), CT_ERR_PEER, "isend|rank 1|ended");
    device_free(buffer);
}

static void who_lends_hears_of_its_receivers_death(void **state)
{
    (void)state;
    run_processes(2, receiver_dies, (void *)(uintptr_t) "receives");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_that_differ_are_told_to_both),
        cmocka_unit_test(what_a_driver_wont_map_or_copy_comes_through_the_host),
        cmocka_unit_test(a_receive_that_a_device_fails_is_not_the_senders_failure),
        cmocka_unit_test(a_receive_ends_with_the_sender_whose_buffer_it_maps),
        cmocka_unit_test(a_sender_may_die_at_any_time),
        cmocka_unit_test(who_lends_hears_of_its_receivers_death),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
