/* SPDX-License-Identifier: Apache-2.0 */
/* test_message_pairs.c - messages between two GPUs of one host: directly, as soon as it is proved
 * that the one reads what lies in the other's memory.
 *
 * No machine with two GPUs has run this: it is proved of the fake driver. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>

#include "runtime/group.h"
#include "runtime/loan.h"
#include "tests/cuda/keyed.h"

enum { LARGE = 300000, MESSAGES = 6 };

/* ---- Ways -------------------------------------------------------------------- */

struct pair {
    const char *corrupt; /* what is copied between the two arrives as something else */
    int calls;           /* a call of the group comes between the messages */
};

/* What rank 0 may lend after the message number i. */
static enum lending expected(const struct pair *pair, int i)
{
    if (pair->corrupt)
        return i == 0 ? LENDS_WITH_SAMPLE : LENDS_NOTHING;
    return pair->calls ? LENDS : LENDS_WITH_SAMPLE;
}

/* Two GPUs, of which nobody knows whether they reach each other. */
static void another_gpus(ct_group *group, void *arg)
{
    const struct pair *const pair = arg;
    const int me = ct_rank(group);
    struct buffer b;

    if (pair->corrupt)
        setenv("FAKE_CUDA_PEERS_CORRUPT", pair->corrupt, 1);
    if (!EXPECT(device_open(me)))
        return;
    b = buffer_of(DEVICE);
    for (int i = 0; i < 4; i++) {
        write_key(b, 2, LARGE, me == 0 ? i : 77);
        if (me == 0)
            EXPECT_OK(ct_send(group, b.at + 2, LARGE, CT_U8, 1, i));
        else
            EXPECT_OK(ct_recv(group, b.at + 2, LARGE, CT_U8, 0, i, NULL));
        EXPECT(has_key(b, 2, LARGE, i));
        if (i == 0 && pair->calls)
            EXPECT_OK(ct_all_reduce(group, b.at, b.at, 1000, CT_I32, CT_MAX, NULL));
        EXPECT_OK(ct_barrier(group, NULL)); /* both know */
        EXPECT(me == 1 || may_lend_to(group->mesh, group->ranks[1]) == expected(pair, i));
        EXPECT(me == 0 || pair->calls || (group->reached != NULL) == (!pair->corrupt && i > 0));
    }
    free_buffer(b);
}

static void a_message_goes_to_another_gpu_that_a_trial_proved_to_read_it(void **state)
{
    struct pair sound = { NULL, 0 }, corrupt = { "0-1", 0 };

    (void)state;
    run_processes(2, another_gpus, &sound);
    run_threads(2, another_gpus, &sound);
    run_processes(2, another_gpus, &corrupt);
}

static void or_a_call_of_the_group(void **state)
{
    struct pair sound = { NULL, 1 }, corrupt = { "0-1", 1 };

    (void)state;
    run_processes(2, another_gpus, &sound);
    run_processes(2, another_gpus, &corrupt);
}

/* ---- Mishaps ------------------------------------------------------------------- */

/* Each rank has a GPU of its own, rank 1's is slow: the sample and the message take 3 copies. */
static struct buffer open_pair(ct_group *group, const char *lag_us)
{
    setenv("FAKE_CUDA_LAG_RANK", ct_rank(group) == 1 ? "all" : "-1", 1);
    setenv("FAKE_CUDA_LAG_US", lag_us, 1);
    if (!EXPECT(device_open(ct_rank(group))))
        return (struct buffer){ DEVICE, NULL };
    return buffer_of(DEVICE);
}

/* Behind this the next message is lent with a sample. */
static void exchange_first(ct_group *group, struct buffer b)
{
    write_key(b, 0, LARGE, 3);
    if (ct_rank(group) == 0)
        EXPECT_OK(ct_send(group, b.at, LARGE, CT_U8, 1, 0));
    else
        EXPECT_OK(ct_recv(group, b.at, LARGE, CT_U8, 0, 0, NULL));
}

/* The first trial that ends is the proof for all; the others are at their buffers still. */
static void many_at_once(ct_group *group, void *arg)
{
    struct buffer b = open_pair(group, "2000"), buffers[MESSAGES];
    ct_work *works[MESSAGES];

    (void)arg;
    if (!b.at)
        return;
    exchange_first(group, b);
    for (int i = 0; i < MESSAGES; i++) {
        buffers[i] = buffer_of(DEVICE);
        write_key(buffers[i], 0, LARGE, ct_rank(group) == 0 ? i : 90);
        if (ct_rank(group) == 0)
            EXPECT_OK(ct_isend(group, buffers[i].at, LARGE, CT_U8, 1, i, &works[i]));
        else
            EXPECT_OK(ct_irecv(group, buffers[i].at, LARGE, CT_U8, 0, i, &works[i]));
    }
    for (int i = MESSAGES - 1; i >= 0; i--) {
        EXPECT_OK(ct_wait(works[i]));
        EXPECT(has_key(buffers[i], 0, LARGE, i));
        free_buffer(buffers[i]);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free_buffer(b);
}

static void many_messages_may_bring_their_proof_at_once(void **state)
{
    (void)state;
    run_processes(2, many_at_once, NULL);
}

static void sender_gives_up(ct_group *group, void *arg)
{
    const int me = ct_rank(group), ms = *(const int *)arg;
    struct buffer b = open_pair(group, "3000");

    if (!b.at)
        return;
    exchange_first(group, b);
    write_key(b, 0, LARGE, me == 0 ? 40 : 100);
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_set_next_timeout(group, me == 0 ? ms : 100));
    if (me == 0) {
        if (ct_send(group, b.at, LARGE, CT_U8, 1, 1) != CT_OK)
            write_key(b, 0, LARGE, 200);
    } else if (ct_recv(group, b.at, LARGE, CT_U8, 0, 1, NULL) == CT_OK) {
        EXPECT(has_key(b, 0, LARGE, 40));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free_buffer(b);
}

static void a_message_is_as_it_was_sent_whenever_its_sender_gives_up(void **state)
{
    (void)state;
    for (int ms = 1; ms < 16; ms += 2)
        run_processes(2, sender_gives_up, &ms);
}

static void receiver_gives_up(ct_group *group, void *arg)
{
    const int me = ct_rank(group), ms = *(const int *)arg;
    struct buffer b = open_pair(group, "10000");
    ct_work *work = NULL;

    if (!b.at)
        return;
    exchange_first(group, b);
    write_key(b, 0, LARGE, 40);
    if (me == 0)
        EXPECT_OK(ct_isend(group, b.at, LARGE, CT_U8, 1, 1, &work));
    EXPECT_OK(ct_barrier(group, NULL)); /* lent: later it would be nobody's */
    if (me == 0) {
        EXPECT_OK(ct_wait(work));
    } else {
        EXPECT_OK(ct_set_next_timeout(group, ms));
        ct_recv(group, b.at, LARGE, CT_U8, 0, 1, NULL);
        write_key(b, 0, LARGE, 7);
        nap(60);
        EXPECT(has_key(b, 0, LARGE, 7));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free_buffer(b);
}

static void who_gave_up_a_receive_is_not_written_to(void **state)
{
    (void)state;
    for (int ms = 5; ms < 45; ms += 10)
        run_processes(2, receiver_gives_up, &ms);
}

static void sender_dies(ct_group *group, void *arg)
{
    const int me = ct_rank(group), ms = *(const int *)arg;
    struct buffer b = open_pair(group, "3000");
    ct_status status;
    ct_work *work;

    if (!b.at)
        return;
    exchange_first(group, b);
    write_key(b, 0, LARGE, 40 + me);
    EXPECT_OK(ct_barrier(group, NULL));
    if (me == 0) {
        EXPECT_OK(ct_isend(group, b.at, LARGE, CT_U8, 1, 1, &work));
        nap(ms);
        rank_leaves();
    }
    status = ct_recv(group, b.at, LARGE, CT_U8, 0, 1, NULL);
    EXPECT(status == CT_OK || status == CT_ERR_PEER);
    EXPECT(status != CT_OK || has_key(b, 0, LARGE, 40));
    free_buffer(b);
}

static void a_sender_may_die_at_any_time(void **state)
{
    (void)state;
    for (int ms = 0; ms < 14; ms += 3)
        run_processes(2, sender_dies, &ms);
}

struct failure {
    int rank;
    const char *what;
};

/* Of the trial nothing is known then, so the next message brings it again. */
static void driver_fails(ct_group *group, void *arg)
{
    const struct failure *const failure = arg;
    const int me = ct_rank(group);
    struct buffer b;

    if (me == failure->rank)
        setenv("FAKE_CUDA_FAIL", failure->what, 1);
    b = open_pair(group, "0");
    if (!b.at)
        return;
    exchange_first(group, b);
    for (int i = 1; i < 4; i++) {
        write_key(b, 5, LARGE, me == 0 ? i : 77);
        if (me == 0)
            EXPECT_OK(ct_send(group, b.at + 5, LARGE, CT_U8, 1, i));
        else
            EXPECT_OK(ct_recv(group, b.at + 5, LARGE, CT_U8, 0, i, NULL));
        EXPECT(has_key(b, 5, LARGE, i));
        EXPECT(me == 0 || (group->reached != NULL) == (i > 1));
        EXPECT_OK(ct_barrier(group, NULL));
    }
    free_buffer(b);
}

static void where_no_trial_can_be_made_messages_come_through_the_host(void **state)
{
    /* Mapped, copied, shown; the sample's memory, behind the buffer's, and its handle. */
    struct failure failures[] = { { 1, "cuIpcOpenMemHandle:1" },
                                  { 1, "cuMemcpyDtoDAsync:1" },
                                  { 1, "cuMemcpyDtoHAsync:1" },
                                  { 0, "cuMemAlloc:2" },
                                  { 0, "cuIpcGetMemHandle:2" } };

    (void)state;
    for (int i = 0; i < (int)(sizeof failures / sizeof failures[0]); i++)
        run_processes(2, driver_fails, &failures[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_goes_to_another_gpu_that_a_trial_proved_to_read_it),
        cmocka_unit_test(or_a_call_of_the_group),
        cmocka_unit_test(many_messages_may_bring_their_proof_at_once),
        cmocka_unit_test(a_message_is_as_it_was_sent_whenever_its_sender_gives_up),
        cmocka_unit_test(who_gave_up_a_receive_is_not_written_to),
        cmocka_unit_test(a_sender_may_die_at_any_time),
        cmocka_unit_test(where_no_trial_can_be_made_messages_come_through_the_host),
    };

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    setenv("CT_LIBNCCL", "/nowhere/libnccl.so.2", 1);
    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
