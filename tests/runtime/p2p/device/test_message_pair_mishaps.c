/* SPDX-License-Identifier: Apache-2.0 */
/* test_message_pair_mishaps.c - a message between two GPUs with a peer-access check, and what may
 * happen before that has passed: another check passes, a rank gives up or dies, a driver fails.
 *
 * No machine with two GPUs has run this: it is tested with the fake driver only. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>
#include <string.h>

#include "cuda/device_internal.h"
#include "runtime/group/group_device.h"
#include "runtime/group/group.h"
#include "runtime/messaging/messaging_internal.h"
#include "tests/cuda/pairs.h"

/* Until what goes on now in rank 1's copies is through with this step. */
static void await_first_step(ct_group *group, ct_work *work)
{
    struct messages *m = group->mesh->messages;
    int done = 0;

    while (!atomic_load(&group->on_device.maps_from)) /* set when a trial begins */
        EXPECT_OK(ct_test(work, &done));
    pthread_mutex_lock(&m->copies_lock);
    pthread_mutex_unlock(&m->copies_lock);
}

/* A trial is under way, and its second copy can't come, when the pair is proved otherwise. */
static void proved_meanwhile(ct_group *group, void *arg)
{
    unsigned char reader[16], owner[16];
    struct buffer b = open_pair(group, "0");
    struct gate first, second;
    struct device *gpu;
    ct_work *work;
    int done = 0;

    (void)arg;
    if (!b.at)
        return;
    exchange_first(group, b);
    write_key(b, 0, LARGE, ct_rank(group) == 0 ? 40 : 90);
    if (!EXPECT_OK(cuda_gpu_of(b.at, &gpu)))
        return;
    cuda_gpu_id(gpu, reader);
    EXPECT_OK(ct_broadcast(group, memcpy(owner, reader, sizeof owner), 16, CT_U8, 0, NULL));
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_send(group, b.at, LARGE, CT_U8, 1, 1));
    } else {
        EXPECT(gate_close(&first, gpu->copies[COPY_BETWEEN_DEVICES]));
        EXPECT(gate_close(&second, gpu->copies[COPY_TO_HOST]));
        EXPECT_OK(ct_irecv(group, b.at, LARGE, CT_U8, 0, 1, &work));
        await_first_step(group, work);
        peer_access_add(group, reader, owner);
        gate_open(&first);
        for (int ms = 0; ms < 100; ms++) {
            EXPECT_OK(ct_test(work, &done));
            EXPECT(!done); /* its buffer is still being copied */
            nap(1);
        }
        gate_open(&second);
        EXPECT_OK(ct_wait(work));
        EXPECT(has_key(b, 0, LARGE, 40));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free_buffer(b);
}

static void a_trial_ends_though_the_pair_is_proved_meanwhile(void **state)
{
    const char *const pageable = getenv("FAKE_CUDA_PAGEABLE");

    (void)state;
    if (pageable && *pageable)
        skip(); /* the trial's copy to the host would wait for the test's gate in the driver */
    run_processes(2, proved_meanwhile, NULL);
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
    EXPECT_OK(ct_barrier(group, NULL)); /* the RTS was sent: later no rank would wait for it */
    if (me == 0) {
        EXPECT_OK(ct_wait(work));
    } else {
        EXPECT_OK(ct_set_next_timeout(group, ms));
        if (ct_recv(group, b.at, LARGE, CT_U8, 0, 1, NULL) != CT_OK) {
            write_key(b, 0, LARGE, 7);
            nap(60);
            EXPECT(has_key(b, 0, LARGE, 7));
            EXPECT_OK(ct_recv(group, b.at, LARGE, CT_U8, 0, 1, NULL)); /* the sender waits for it */
        }
        EXPECT(has_key(b, 0, LARGE, 40));
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
        EXPECT(me == 0 || (group->on_device.peer_access != NULL) == (i > 1));
        EXPECT_OK(ct_barrier(group, NULL));
    }
    free_buffer(b);
}

static void where_no_trial_can_be_made_messages_come_through_the_host(void **state)
{
    /* Mapped, copied, shown; the test pattern's memory, behind the buffer's, and its handle. */
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
        cmocka_unit_test(a_trial_ends_though_the_pair_is_proved_meanwhile),
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
