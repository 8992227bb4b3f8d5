/* SPDX-License-Identifier: Apache-2.0 */
/* test_message_ends.c - what becomes of messages of which the receiver maps the buffer
 * (runtime/messaging/device_rendezvous.c), and of what was mapped for them, when their group is
 * destroyed. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/group/group.h"
#include "runtime/messaging/device_rendezvous.h"
#include "tests/marks.h"
#include "tests/runtime/p2p/device/mapped_message.h"

static void group_ends(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_group *part;
    void *buffer;
    int before;

    (void)arg;
    setenv("FAKE_CUDA_MAPPED", "stays", 1);
    if (!EXPECT(device_open(0)) || !EXPECT_OK(ct_split_group(group, 0, me, &part)))
        return;
    buffer = device_alloc(BYTES, (unsigned char)(1 + me));
    before = device_allocations_here();
    if (me == 0)
        EXPECT_OK(ct_send(part, buffer, BYTES, CT_U8, 1, 0));
    else
        EXPECT_OK(ct_recv(part, buffer, BYTES, CT_U8, 0, 0, NULL));
    EXPECT(device_allocations_here() == before + me);
    EXPECT_OK(ct_destroy_process_group(part));
    EXPECT(device_allocations_here() == before);
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(buffer);
}

static void what_was_mapped_for_messages_ends_with_the_group(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, group_ends, NULL);
}

/* Works that no call waits for any more; kept, so that they are no leaks. */
static ct_work *lost;

static void receiver_leaves(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int done = 0;
    struct scene s;
    ct_group *part;
    ct_work *work;
    void *buffer;

    if (!EXPECT(device_open(0)) || !EXPECT_OK(ct_split_group(group, 0, me, &part)))
        return;
    if (me == 0) {
        buffer = device_alloc(BYTES, 1);
        EXPECT_OK(ct_isend(part, buffer, BYTES, CT_U8, 1, 0, &work));
        mark("has sent the RTS", 0);
        EXPECT_ERROR(ct_wait(work), CT_ERR_PEER, "isend|rank 1|has destroyed the group");
        mark(arg, 0);
        device_free(buffer);
    } else if (receive_held(&s, part, 0)) {
        await("has sent the RTS", 0);
        while (!device_copies_pending(group->mesh)) /* it waits for the gate */
            EXPECT_OK(ct_test(s.work, &done));
        lost = s.work;
        EXPECT_OK(ct_destroy_process_group(part));
        go_on(&s);
        await(arg, 0);
        EXPECT(is_full_of(s.buffer, 9));
        tear_down(&s);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    if (me == 0)
        EXPECT_OK(ct_destroy_process_group(part));
}

/* Its receiver knows that when it receives. */
static void sender_leaves(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_group *part;
    void *buffer;
    int word = 0;

    (void)arg;
    if (!EXPECT(device_open(0)) || !EXPECT_OK(ct_split_group(group, 0, me, &part)))
        return;
    buffer = device_alloc(BYTES, (unsigned char)(1 + me));
    if (me == 0) {
        EXPECT_OK(ct_isend(part, buffer, BYTES, CT_U8, 1, 0, &lost));
        EXPECT_OK(ct_destroy_process_group(part));
        EXPECT_OK(ct_send(group, &word, 1, CT_I32, 1, 1));
    } else {
        EXPECT_OK(ct_recv(group, &word, 1, CT_I32, 0, 1, NULL));
        EXPECT_OK(ct_set_next_timeout(part, 10000));
        EXPECT_ERROR(ct_recv(part, buffer, BYTES, CT_U8, 0, 0, NULL), CT_ERR_PEER,
                     "recv|rank 0|has destroyed the group");
        EXPECT_OK(ct_destroy_process_group(part));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(buffer);
}

static void with_its_group_a_message_ends_that_nobody_waited_for(void **state)
{
    (void)state;
    run_processes(2, receiver_leaves, (void *)(uintptr_t) "sent to who left");
    run_processes(2, sender_leaves, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_mapped_for_messages_ends_with_the_group),
        cmocka_unit_test(with_its_group_a_message_ends_that_nobody_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
