/* SPDX-License-Identifier: Apache-2.0 */
/* test_message_limits.c - messages by device rendezvous (runtime/messaging/device_rendezvous.c)
 * that one side gives up before the end: no receive gets bytes that were not sent, and no buffer
 * is written to after its call has returned. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>

#include "tests/marks.h"
#include "tests/runtime/p2p/device/mapped_message.h"

enum { SOON_MS = 100 };

/* The sender's buffer is its own again, and has other bytes, before anything is copied. */
static void sender_gives_up(ct_group *group, void *arg)
{
    struct scene s;
    void *buffer;
    ct_work *work;

    if (!EXPECT(device_open(0)))
        return;
    if (ct_rank(group) == 0) {
        buffer = device_alloc(BYTES, 1);
        EXPECT_OK(ct_isend(group, buffer, BYTES, CT_U8, 1, 0, &work));
        EXPECT_OK(ct_set_next_timeout(group, SOON_MS)); /* from its RTS on */
        EXPECT_ERROR(ct_wait(work), CT_ERR_TIMEOUT, "isend|limit");
        fill(buffer, 2);
        mark(arg, 0);
        EXPECT_OK(ct_send(group, buffer, BYTES, CT_U8, 1, 0));
        device_free(buffer);
    } else if (receive_held(&s, group, 0)) {
        await(arg, 0);
        go_on(&s);
        EXPECT_OK(ct_wait(s.work)); /* it takes the next one */
        EXPECT(is_full_of(s.buffer, 2));
        tear_down(&s);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void what_its_sender_gave_up_is_received_by_nobody(void **state)
{
    (void)state;
    run_processes(2, sender_gives_up, (void *)(uintptr_t) "given up");
    run_threads(2, sender_gives_up, (void *)(uintptr_t) "given up by a thread");
}

/* The sender gives up at any time of the receiver's copy, which takes a while: it is received as it
 * was sent, or not at all. */
static void sender_gives_up_late(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    void *buffer;

    (void)arg;
    setenv("FAKE_CUDA_LAG_RANK", me == 1 ? "all" : "-1", 1);
    setenv("FAKE_CUDA_LAG_US", "4000", 1);
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(BYTES, 0);
    for (int i = 0; i < 12; i++) {
        fill(buffer, (unsigned char)(me == 0 ? i + 1 : 100));
        EXPECT_OK(ct_barrier(group, NULL));
        EXPECT_OK(ct_set_next_timeout(group, me == 0 ? 1 + i : 30));
        if (me == 0) {
            if (ct_send(group, buffer, BYTES, CT_U8, 1, i) != CT_OK)
                fill(buffer, 200);
        } else if (ct_recv(group, buffer, BYTES, CT_U8, 0, i, NULL) == CT_OK) {
            EXPECT(is_full_of(buffer, (unsigned char)(i + 1)));
        }
        EXPECT_OK(ct_barrier(group, NULL));
    }
    device_free(buffer);
}

static void a_message_is_as_it_was_sent_whenever_its_sender_gives_up(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, sender_gives_up_late, NULL);
}

static void receiver_gives_up(ct_group *group, void *arg)
{
    (void)arg;
    struct scene s;
    ct_work *work;
    void *buffer;

    if (!EXPECT(device_open(0)))
        return;
    if (ct_rank(group) == 0) {
        buffer = device_alloc(BYTES, 1);
        EXPECT_OK(ct_isend(group, buffer, BYTES, CT_U8, 1, 0, &work));
        mark("has sent the RTS", 0);
        EXPECT_OK(ct_wait(work)); /* not its failure: it is received by the next one */
        device_free(buffer);
    } else if (receive_held(&s, group, 0)) {
        await("has sent the RTS", 0);
        EXPECT_OK(ct_set_next_timeout(group, SOON_MS));
        EXPECT_ERROR(ct_wait(s.work), CT_ERR_TIMEOUT, "irecv|limit");
        go_on(&s);
        EXPECT(is_full_of(s.buffer, 9));
        EXPECT_OK(ct_recv(group, s.buffer, BYTES, CT_U8, 0, 0, NULL));
        EXPECT(is_full_of(s.buffer, 1));
        tear_down(&s);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void who_gave_up_a_receive_is_not_written_to(void **state)
{
    (void)state;
    run_processes(2, receiver_gives_up, NULL);
}

/* The copy runs when the receiver gives up: that waits for it. */
static void receiver_gives_up_late(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    void *buffer;
    ct_work *work;

    (void)arg;
    setenv("FAKE_CUDA_LAG_RANK", me == 1 ? "all" : "-1", 1);
    setenv("FAKE_CUDA_LAG_US", "30000", 1);
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(BYTES, 1);
    if (me == 0)
        EXPECT_OK(ct_isend(group, buffer, BYTES, CT_U8, 1, 0, &work));
    EXPECT_OK(ct_barrier(group, NULL)); /* the RTS was sent: later no rank would wait for it */
    if (me == 0) {
        EXPECT_OK(ct_wait(work));
    } else {
        EXPECT_OK(ct_set_next_timeout(group, 40)); /* 30 are its stream's */
        if (ct_recv(group, buffer, BYTES, CT_U8, 0, 0, NULL) != CT_OK) {
            fill(buffer, 7);
            nap(60);
            EXPECT(is_full_of(buffer, 7));
            EXPECT_OK(ct_recv(group, buffer, BYTES, CT_U8, 0, 0, NULL));
        }
        EXPECT(is_full_of(buffer, 1));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(buffer);
}

static void nor_while_it_was_being_copied(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, receiver_gives_up_late, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_its_sender_gave_up_is_received_by_nobody),
        cmocka_unit_test(a_message_is_as_it_was_sent_whenever_its_sender_gives_up),
        cmocka_unit_test(who_gave_up_a_receive_is_not_written_to),
        cmocka_unit_test(nor_while_it_was_being_copied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
