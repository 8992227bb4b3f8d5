/* SPDX-License-Identifier: Apache-2.0 */
/* test_message_pairs.c - messages between two GPUs of one host: directly, as soon as it is proved
 * that the one reads what lies in the other's memory.
 *
 * What goes wrong with them is test_message_pair_mishaps.c's.
 *
 * No machine with two GPUs has run this: it is proved of the fake driver. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>

#include "runtime/group/group.h"
#include "runtime/messaging/device_rendezvous.h"
#include "tests/cuda/pairs.h"

enum { MESSAGES = 6 };

/* ---- Ways -------------------------------------------------------------------- */

struct pair {
    const char *corrupt; /* what is copied between the two arrives as something else */
    int calls;           /* a call of the group comes between the messages */
};

/* What rank 0 may lend after the message number i. */
static enum device_rendezvous expected(const struct pair *pair, int i)
{
    if (pair->corrupt)
        return i == 0 ? DEVICE_RENDEZVOUS_WITH_TEST_PATTERN : NO_DEVICE_RENDEZVOUS;
    return pair->calls ? DEVICE_RENDEZVOUS : DEVICE_RENDEZVOUS_WITH_TEST_PATTERN;
}

/* Two GPUs without a peer-access check between them yet. */
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
        EXPECT(me == 1
               || device_rendezvous_with(group->mesh, group->ranks[1]) == expected(pair, i));
        EXPECT(me == 0 || pair->calls
               || (group->on_device.peer_access != NULL) == (!pair->corrupt && i > 0));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_goes_to_another_gpu_that_a_trial_proved_to_read_it),
        cmocka_unit_test(or_a_call_of_the_group),
        cmocka_unit_test(many_messages_may_bring_their_proof_at_once),
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
