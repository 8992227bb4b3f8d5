/* SPDX-License-Identifier: Apache-2.0 */
/* test_messages.c - messages from and to device memory: which of them stay on the device, and that
 * all of them arrive, whatever memory is on either side.  What goes wrong with them is
 * test_message_mishaps.c's, _limits.c's and _ends.c's. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>

#include "include/ct_cuda.h"
#include "runtime/group/group.h"
#include "runtime/messaging/device_rendezvous.h"
#include "tests/marks.h"
#include "tests/cuda/keyed.h"

enum { LARGE = 300000 };

/* ---- Ways -------------------------------------------------------------------- */

/* What is staged is pinned, at this size. */
static void expect_way(const ct_group *group, int goes_over)
{
    if (ct_rank(group) == 0)
        EXPECT(goes_over ? group->on_device.pinned.bytes == 0 : group->on_device.pinned.bytes > 0);
    else
        EXPECT(goes_over ? group->on_device.maps_from != NULL : 1);
}

static void stays(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    struct buffer b;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    b = buffer_of(DEVICE);
    for (int i = 0; i < 3; i++) {
        write_key(b, 3, LARGE, me == 0 ? i : 77);
        if (me == 0)
            EXPECT_OK(ct_send(group, b.at + 3, LARGE, CT_U8, 1, i));
        else
            EXPECT_OK(ct_recv(group, b.at + 8, LARGE, CT_U8, 0, i, NULL));
        EXPECT(me == 0 || has_key(b, 8, LARGE, i));
    }
    expect_way(group, 1);
    EXPECT_OK(ct_barrier(group, NULL));
    free_buffer(b);
}

static void a_message_between_ranks_of_one_gpu_stays_on_it(void **state)
{
    (void)state;
    run_processes(2, stays, NULL);
    run_threads(2, stays, NULL);
}

static void does_not_stay(ct_group *unused, void *arg)
{
    const int me = program_rank();
    struct buffer b;
    ct_group *group;

    (void)unused;
    setenv("CT_DEVICE", arg, 1);
    if (!EXPECT_OK(ct_init_process_group(NULL)) || !EXPECT(device_open(0))
        || !EXPECT_OK(group_resolve(NULL, &group)))
        return;
    b = buffer_of(DEVICE);
    write_key(b, 0, LARGE, 5 + me);
    if (me == 0)
        EXPECT_OK(ct_send(group, b.at, LARGE, CT_U8, 1, 0));
    else
        EXPECT_OK(ct_recv(group, b.at, LARGE, CT_U8, 0, 0, NULL));
    EXPECT(has_key(b, 0, LARGE, 5));
    EXPECT(!group->on_device.maps_from);
    expect_way(group, 0);
    free_buffer(b);
    EXPECT_OK(ct_destroy_process_group(NULL));
}

static void unless_the_user_wishes_staged(void **state)
{
    (void)state;
    run_programs(2, does_not_stay, (void *)(uintptr_t) "staged");
}

/* Rank 1 can't map what rank 0 lends: that is asked for once, and the next one comes unasked.  The
 * pool of rank 0 has what the two needed one after the other. */
static void cant_map(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    struct buffer b;

    (void)arg;
    if (me == 1)
        setenv("FAKE_CUDA_IPC", "0", 1);
    if (!EXPECT(device_open(0)))
        return;
    b = buffer_of(DEVICE);
    for (int i = 0; i < 3; i++) {
        write_key(b, 1, LARGE, me == 0 ? i : 77);
        if (me == 0) {
            EXPECT(device_rendezvous_with(group->mesh, group->ranks[1]) == (i == 0));
            EXPECT_OK(ct_send(group, b.at + 1, LARGE, CT_U8, 1, i));
        } else {
            EXPECT_OK(ct_recv(group, b.at + 1, LARGE, CT_U8, 0, i, NULL));
        }
        EXPECT(has_key(b, 1, LARGE, i));
    }
    expect_way(group, 0);
    EXPECT_OK(ct_barrier(group, NULL));
    free_buffer(b);
}

static void what_cant_be_mapped_comes_through_the_host(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, cant_map, NULL);
}

/* ---- Semantics ---------------------------------------------------------------- */

static void all_kinds(ct_group *group, void *arg)
{
    const size_t sizes[] = {
        0, 1, DEVICE_RENDEZVOUS_ABOVE, DEVICE_RENDEZVOUS_ABOVE + 1, 131072, 131073, LARGE
    };
    const int me = ct_rank(group);

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    for (int i = 0; i < KINDS * KINDS; i++) {
        struct buffer b = buffer_of((enum kind)(me == 0 ? i / KINDS : i % KINDS));

        for (int k = 0; k < (int)(sizeof sizes / sizeof sizes[0]); k++) {
            const size_t offset = (size_t)(7 * k + 5 * me + i) % 16;

            write_key(b, offset, sizes[k], me == 0 ? 10 * i + k : 250);
            if (me == 0)
                EXPECT_OK(ct_send(group, b.at + offset, sizes[k], CT_U8, 1, 0));
            else
                EXPECT_OK(ct_recv(group, b.at + offset, sizes[k], CT_U8, 0, 0, NULL));
            EXPECT(has_key(b, offset, sizes[k], 10 * i + k));
        }
        EXPECT_OK(ct_barrier(group, NULL));
        free_buffer(b);
    }
}

static void memory_of_all_kinds_meets_memory_of_all_kinds(void **state)
{
    (void)state;
    run_processes(2, all_kinds, NULL);
    run_threads(2, all_kinds, NULL);
    use_link("tcp");
    run_processes(2, all_kinds, NULL);
    use_link(NULL);
}

/* Nobody waits for the first message before the second has come, so it must move by itself. */
static void waits_for_another(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    const enum kind kind = arg ? HOST : DEVICE; /* of the receiver: it asks for the bytes */
    struct buffer b;
    ct_work *work;
    int word = 0;

    if (!EXPECT(device_open(0)))
        return;
    b = buffer_of(me == 0 ? DEVICE : kind);
    write_key(b, 0, LARGE, 9 * (1 - me));
    if (me == 0) {
        EXPECT_OK(ct_isend(group, b.at, LARGE, CT_U8, 1, 0, &work));
        EXPECT_OK(ct_recv(group, &word, 1, CT_I32, 1, 1, NULL)); /* sent when all has come */
        EXPECT_OK(ct_wait(work));
        EXPECT_OK(ct_send(group, b.at, LARGE, CT_U8, 1, 0));
        EXPECT_OK(ct_send(group, &word, 1, CT_I32, 1, 1));
    } else {
        EXPECT_OK(ct_recv(group, b.at, LARGE, CT_U8, 0, 0, NULL));
        EXPECT(has_key(b, 0, LARGE, 9));
        EXPECT_OK(ct_send(group, &word, 1, CT_I32, 0, 1));
        EXPECT_OK(ct_irecv(group, b.at, LARGE, CT_U8, 0, 0, &work));
        EXPECT_OK(ct_recv(group, &word, 1, CT_I32, 0, 1, NULL));
        EXPECT_OK(ct_wait(work));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free_buffer(b);
}

static void messages_move_while_their_ranks_wait_for_others(void **state)
{
    (void)state;
    run_processes(2, waits_for_another, NULL);
    run_processes(2, waits_for_another, (void *)(uintptr_t) "host");
    run_threads(2, waits_for_another, NULL);
}

/* Nobody waits at all: rank 0 only looks at marks. */
static void nobody_waits(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    struct buffer b;
    ct_work *work;

    if (!EXPECT(device_open(0)))
        return;
    b = buffer_of(DEVICE);
    write_key(b, 0, LARGE, me);
    if (me == 0) {
        EXPECT_OK(ct_irecv(group, b.at, LARGE, CT_U8, 1, 0, &work));
        await(arg, 1);
        EXPECT_OK(ct_wait(work));
        EXPECT(has_key(b, 0, LARGE, 1));
    } else {
        EXPECT_OK(ct_send(group, b.at, LARGE, CT_U8, 0, 0));
        mark(arg, 1);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free_buffer(b);
}

static void nor_need_anybody_wait(void **state)
{
    (void)state;
    run_processes(2, nobody_waits, (void *)(uintptr_t) "sent");
}

static void from_anybody(ct_group *group, void *arg)
{
    const int me = ct_rank(group), size = ct_size(group);
    int from, seen[MAX_RANKS] = { 0 };
    struct buffer b;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    b = buffer_of(DEVICE);
    for (int i = 0; me > 0 && i < 5; i++) {
        write_key(b, (size_t)me, LARGE, 40 * me + i);
        EXPECT_OK(ct_send(group, b.at + me, LARGE, CT_U8, 0, 3));
    }
    for (int i = 0; me == 0 && i < 5 * (size - 1); i++) {
        EXPECT_OK(ct_recv(group, b.at, LARGE, CT_U8, CT_ANY_SOURCE, 3, &from));
        EXPECT(has_key(b, 0, LARGE, 40 * from + seen[from]++)); /* in the order they were sent */
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free_buffer(b);
}

static void anybody_may_lend_and_each_ones_come_in_order(void **state)
{
    (void)state;
    run_processes(4, from_anybody, NULL);
    run_threads(3, from_anybody, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_between_ranks_of_one_gpu_stays_on_it),
        cmocka_unit_test(unless_the_user_wishes_staged),
        cmocka_unit_test(what_cant_be_mapped_comes_through_the_host),
        cmocka_unit_test(memory_of_all_kinds_meets_memory_of_all_kinds),
        cmocka_unit_test(messages_move_while_their_ranks_wait_for_others),
        cmocka_unit_test(nor_need_anybody_wait),
        cmocka_unit_test(anybody_may_lend_and_each_ones_come_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
