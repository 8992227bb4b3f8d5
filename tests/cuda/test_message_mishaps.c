/* SPDX-License-Identifier: Apache-2.0 */
/* test_message_mishaps.c - messages that are lent (runtime/loan.c), and one side makes another
 * call, gives up, fails or is gone: nobody is given bytes that were not sent, nor is written to
 * when he has his buffer again, nor waits for ever. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "runtime/group.h"
#include "runtime/loan.h"
#include "tests/collectives/marks.h"
#include "tests/cuda/device.h"

/* Lent, and below what is pinned: to pin memory may be to wait for the stream. */
enum { BYTES = 60000, SOON_MS = 100, LATER_MS = 300 };

static int is_full_of(const void *memory, unsigned char byte)
{
    unsigned char *here = malloc(BYTES);
    size_t good = 0;

    CU(device.cuMemcpyDtoH(here, at(memory), BYTES));
    while (good < BYTES && here[good] == byte)
        good++;
    free(here);
    return good == BYTES;
}

static void fill(void *memory, unsigned char byte)
{
    CU(device.cuMemsetD8Async(at(memory), byte, BYTES, NULL));
    CU(device.cuStreamSynchronize(NULL));
}

/* A receive whose buffer's stream stands still, so that nothing is copied before go_on(). */
struct scene {
    CUstream stream;
    struct gate gate;
    void *buffer;
    ct_work *work;
};

static int receive_held(struct scene *s, ct_group *group, int from)
{
    *s = (struct scene){ .stream = NULL };
    CU(device.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
    s->buffer = device_alloc(BYTES, 9);
    EXPECT_OK(ct_set_stream(group, s->stream));
    return EXPECT(s->buffer && gate_close(&s->gate, s->stream))
           && EXPECT_OK(ct_irecv(group, s->buffer, BYTES, CT_U8, from, 0, &s->work));
}

static void go_on(struct scene *s)
{
    gate_open(&s->gate);
    CU(device.cuStreamSynchronize(s->stream));
}

static void tear_down(struct scene *s)
{
    device_free(s->buffer);
    CU(device.cuStreamDestroy(s->stream));
}

/* ---- Other calls ---------------------------------------------------------------- */

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

/* ---- Giving up ------------------------------------------------------------------- */

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
        EXPECT_OK(ct_set_next_timeout(group, SOON_MS)); /* from when it has been lent */
        EXPECT_ERROR(ct_wait(work), CT_ERR_TIMEOUT, "isend|limit");
        fill(buffer, 2);
        mark(arg, 0);
        EXPECT_OK(ct_send(group, buffer, BYTES, CT_U8, 1, 0));
        device_free(buffer);
    } else if (receive_held(&s, group, 0)) {
        await(arg, 0);
        go_on(&s);
        EXPECT_OK(ct_set_next_timeout(group, LATER_MS));
        EXPECT_ERROR(ct_wait(s.work), CT_ERR_TIMEOUT, "irecv|limit");
        EXPECT_OK(ct_recv(group, s.buffer, BYTES, CT_U8, 0, 0, NULL));
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
    struct scene s;
    ct_work *work;
    void *buffer;

    if (!EXPECT(device_open(0)))
        return;
    if (ct_rank(group) == 0) {
        buffer = device_alloc(BYTES, 1);
        EXPECT_OK(ct_isend(group, buffer, BYTES, CT_U8, 1, 0, &work));
        mark("lent", 0);
        EXPECT_OK(ct_wait(work)); /* not its failure */
        mark(arg, 0);
        device_free(buffer);
    } else if (receive_held(&s, group, 0)) {
        await("lent", 0);
        EXPECT_OK(ct_set_next_timeout(group, SOON_MS));
        EXPECT_ERROR(ct_wait(s.work), CT_ERR_TIMEOUT, "irecv|limit");
        await(arg, 0);
        go_on(&s);
        EXPECT(is_full_of(s.buffer, 9));
        tear_down(&s);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void who_gave_up_a_receive_is_not_written_to(void **state)
{
    (void)state;
    run_processes(2, receiver_gives_up, (void *)(uintptr_t) "sent");
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
    EXPECT_OK(ct_barrier(group, NULL)); /* lent: later it would be nobody's */
    if (me == 0) {
        EXPECT_OK(ct_wait(work));
    } else {
        EXPECT_OK(ct_set_next_timeout(group, 40)); /* 30 are its stream's */
        ct_recv(group, buffer, BYTES, CT_U8, 0, 0, NULL);
        fill(buffer, 7);
        nap(60);
        EXPECT(is_full_of(buffer, 7));
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
    EXPECT(me == 1 || group->pinned.bytes > 0);
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
    if (me == 0)
        EXPECT_OK(ct_send(group, buffer, BYTES, CT_U8, 1, 0));
    else
        EXPECT_ERROR(ct_recv(group, buffer, BYTES, CT_U8, 0, 0, NULL), CT_ERR_CUDA, "recv|rank 0");
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

static void a_receive_ends_with_the_one_who_lent_to_it(void **state)
{
    (void)state;
    run_processes(2, sender_dies, (void *)(uintptr_t) "lent");
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

/* ---- The end ------------------------------------------------------------------------ */

static int allocations_here(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    int count = 0;

    while (maps && fgets(line, sizeof line, maps))
        count += strstr(line, "memfd:fake-cuda") != NULL;
    if (maps)
        fclose(maps);
    return count;
}

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
    before = allocations_here();
    if (me == 0)
        EXPECT_OK(ct_send(part, buffer, BYTES, CT_U8, 1, 0));
    else
        EXPECT_OK(ct_recv(part, buffer, BYTES, CT_U8, 0, 0, NULL));
    EXPECT(allocations_here() == before + me);
    EXPECT_OK(ct_destroy_process_group(part));
    EXPECT(allocations_here() == before);
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

/* Works that nobody waits for any more; kept, so that they are no leaks. */
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
        mark("lent it", 0);
        EXPECT_OK(ct_wait(work));
        mark(arg, 0);
        device_free(buffer);
    } else if (receive_held(&s, part, 0)) {
        await("lent it", 0);
        while (!errands_are_left(group->mesh)) /* it waits for the gate */
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
        cmocka_unit_test(counts_that_differ_are_told_to_both),
        cmocka_unit_test(what_its_sender_gave_up_is_received_by_nobody),
        cmocka_unit_test(a_message_is_as_it_was_sent_whenever_its_sender_gives_up),
        cmocka_unit_test(who_gave_up_a_receive_is_not_written_to),
        cmocka_unit_test(nor_while_it_was_being_copied),
        cmocka_unit_test(what_a_driver_wont_map_or_copy_comes_through_the_host),
        cmocka_unit_test(a_receive_that_a_device_fails_is_not_the_senders_failure),
        cmocka_unit_test(a_receive_ends_with_the_one_who_lent_to_it),
        cmocka_unit_test(a_sender_may_die_at_any_time),
        cmocka_unit_test(who_lends_hears_of_its_receivers_death),
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
