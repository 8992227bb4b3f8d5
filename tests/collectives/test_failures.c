/* SPDX-License-Identifier: Apache-2.0 */
/* test_failures.c - ranks that make different calls, come late, leave or give up.
 *
 * No rank hangs, every rank gets a status and a sentence, and the group stays
 * broken with that status.  Ranks wait for each other by files in scratch(),
 * so that no test depends on which rank is faster. */
#include "runtime/group/group.h"
#include "tests/marks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUICKLY_MS = 10000, /* half of the group's timeout: it was not the timeout */
    LARGE = 1 << 18     /* elements; no eager message */
};

static void stays_broken(ct_group *group, ct_status status)
{
    int32_t value = 1;
    ct_work *work = NULL;

    EXPECT_ERROR(ct_barrier(group, NULL), status, "broken");
    EXPECT_ERROR(ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, &work), status, "broken");
    EXPECT_STATUS(ct_send(group, &value, 1, CT_I32, 0, 0), status);
    EXPECT(value == 1 && work == NULL);
}

/* ---- Different calls --------------------------------------------------------- */

enum difference { OTHER_OP, OTHER_COUNT, OTHER_DTYPE, OTHER_ROOT, OTHER_CALL, DIFFERENCES };

/* The last rank of three deviates; each rank needs something of each. */
static ct_status deviate(ct_group *group, enum difference difference, size_t n, void *send,
                         void *recv)
{
    const int odd = ct_rank(group) == ct_size(group) - 1;

    switch (difference) {
    case OTHER_OP:
        return ct_all_reduce(group, send, recv, n, CT_I32, odd ? CT_MAX : CT_SUM, NULL);
    case OTHER_COUNT:
        return ct_all_reduce(group, send, recv, odd ? n + 1 : n, CT_I32, CT_SUM, NULL);
    case OTHER_DTYPE:
        return ct_all_reduce(group, send, recv, n, odd ? CT_F32 : CT_I32, CT_SUM, NULL);
    case OTHER_ROOT:
        return ct_reduce(group, send, recv, n, CT_I32, CT_SUM, odd ? 2 : 0, NULL);
    default:
        return odd ? ct_all_to_all(group, send, recv, n, CT_I32, NULL)
                   : ct_all_gather(group, send, recv, n, CT_I32, NULL);
    }
}

struct variant {
    enum difference difference;
    size_t count;
};

/* All are told, by whoever finds out. */
static void different_calls(ct_group *group, void *arg)
{
    const struct variant *variant = arg;
    const size_t room = (variant->count + 1) * (size_t)ct_size(group) * sizeof(int32_t);
    void *send = calloc(1, room), *recv = calloc(1, room);
    const double start = now_ms();
    ct_status status;

    status = deviate(group, variant->difference, variant->count, send, recv);
    if (variant->difference == OTHER_ROOT && status == CT_OK) /* its part was over: it had sent */
        status = ct_barrier(group, NULL);
    /* The sentence holds both calls, and the rank that made the other. */
    EXPECT_ERROR(status, CT_ERR_MISMATCH, "rank|disagree|#1|group created");
    if (now_ms() - start > QUICKLY_MS)
        expect_fails(__FILE__, __LINE__, "%.0f ms until: %s (difference %d, count %zu)",
                     now_ms() - start, ct_last_error(), (int)variant->difference, variant->count);
    stays_broken(group, CT_ERR_MISMATCH);
    all_marked(group, "different");
    free(send);
    free(recv);
}

static void different_calls_are_a_mismatch_and_break_the_group(void **state)
{
    struct variant variant;

    (void)state;
    for (int d = 0; d < DIFFERENCES; d++) {
        variant = (struct variant){ (enum difference)d, 4 };
        run_ranks(3, different_calls, &variant);
        variant.count = 300000; /* too large to send unasked */
        run_ranks(3, different_calls, &variant);
    }
}

/* ---- Late, gone --------------------------------------------------------------- */

/* Rank 1 comes only when the others have given up. */
static void late(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int32_t value = 1;
    ct_status status;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_set_timeout(group, 200));
    if (me != 1) {
        const double start = now_ms();

        status = ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, NULL);
        EXPECT(status == CT_ERR_TIMEOUT || ct_size(group) > 2); /* or another gave up first */
        EXPECT_ERROR(status, status == CT_ERR_TIMEOUT ? CT_ERR_TIMEOUT : CT_ERR_PEER,
                     "all_reduce|#2|group created|rank 1|200 ms");
        EXPECT(status != CT_ERR_TIMEOUT || now_ms() - start > 150);
        EXPECT(now_ms() - start < QUICKLY_MS);
        stays_broken(group, status);
    }
    all_marked(group, "late");
}

static void the_timeout_names_the_operation_and_who_is_missing(void **state)
{
    (void)state;
    run_ranks(2, late, NULL);
    run_ranks(3, late, NULL);
}

/* Rank 1 ends without a word, behind a barrier; the others are in a call or enter one. */
static void leaver(ct_group *group, void *arg)
{
    const int blocked = *(const int *)arg;
    const double start = now_ms();
    int32_t value = 1;
    ct_status status;

    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 1) {
        if (blocked)
            nap(100);
        mark("gone", 1);
        rank_leaves();
    }
    if (!blocked)
        await("gone", 1);
    status = ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, NULL);
    EXPECT_ERROR(status, CT_ERR_PEER, "all_reduce|rank 1|gone");
    EXPECT(now_ms() - start < QUICKLY_MS);
    stays_broken(group, CT_ERR_PEER);
    mark("told", ct_rank(group));
    await("told", 0);
    await("told", 2);
}

static void a_rank_that_ends_is_found_long_before_the_timeout(void **state)
{
    int blocked = 0;

    (void)state;
    for (int tcp = 0; tcp < 2; tcp++)
        for (blocked = 0; blocked < 2; blocked++) {
            use_link(tcp ? "tcp" : NULL);
            run_processes(3, leaver, &blocked);
        }
    use_link(NULL);
}

/* On another host, and no rank has sent to another: there is no connection whose end could be
 * seen. */
static void leaves_unheard(ct_group *group, void *arg)
{
    const int blocked = *(const int *)arg;
    const double start = now_ms();
    int32_t value = 0;

    if (ct_rank(group) == 1) {
        if (blocked)
            nap(300);
        mark("unheard", blocked);
        rank_leaves();
    }
    if (!blocked)
        await("unheard", blocked);
    EXPECT_ERROR(ct_recv(group, &value, 1, CT_I32, 1, 7, NULL), CT_ERR_PEER, "recv|rank 1|gone");
    EXPECT(now_ms() - start < QUICKLY_MS);
}

static void a_rank_of_another_host_that_ends_before_it_said_a_word_is_found(void **state)
{
    int blocked = 0;

    (void)state;
    setenv("CT_FAULT", "hosts:0.1", 1);
    for (blocked = 0; blocked < 2; blocked++)
        run_processes(2, leaves_unheard, &blocked);
    unsetenv("CT_FAULT");
}

/* A receive from it fails as well; a message it sent before is still received. */
static void left_a_message(ct_group *group, void *arg)
{
    int32_t value = 42;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 1) {
        EXPECT_OK(ct_send(group, &value, 1, CT_I32, 0, 7));
        rank_leaves();
    }
    value = 0;
    EXPECT_OK(ct_recv(group, &value, 1, CT_I32, 1, 7, NULL));
    EXPECT(value == 42);
    EXPECT_ERROR(ct_recv(group, &value, 1, CT_I32, 1, 7, NULL), CT_ERR_PEER, "recv|rank 1|gone");
}

static void what_a_rank_sent_before_its_end_arrives(void **state)
{
    (void)state;
    run_processes(2, left_a_message, NULL);
    use_link("tcp");
    run_processes(2, left_a_message, NULL);
    use_link(NULL);
}

struct sender {
    ct_group *group;
    _Atomic int over;
};

static void *sends_without_a_receiver(void *arg)
{
    struct sender *sender = arg;
    int32_t value = 0;

    while (!atomic_load(&sender->over))
        ct_send(sender->group, &value, 1, CT_I32, 1, 9); /* rank 1 may have left */
    return NULL;
}

/* Rank 1 is done when its last bytes are in the socket's queue. */
static void done_early(ct_group *group, void *arg)
{
    enum { MANY = 8 << 20 };
    int32_t *values = calloc(MANY, sizeof *values), last = 0;
    struct sender sender = { .group = group };
    pthread_t thread;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 1) {
        values[MANY - 1] = last = 5;
        EXPECT_OK(ct_send(group, values, MANY, CT_I32, 0, 7));
        EXPECT_OK(ct_send(group, &last, 1, CT_I32, 0, 7));
    } else if (EXPECT(pthread_create(&thread, NULL, sends_without_a_receiver, &sender) == 0)) {
        EXPECT_OK(ct_recv(group, values, MANY, CT_I32, 1, 7, NULL));
        EXPECT_OK(ct_recv(group, &last, 1, CT_I32, 1, 7, NULL));
        EXPECT(values[MANY - 1] == 5 && last == 5);
        atomic_store(&sender.over, 1);
        pthread_join(thread, NULL);
    }
    free(values);
}

static void what_a_rank_sent_before_it_left_arrives_though_others_still_send_to_it(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        use_link(i % 2 ? "tcp" : NULL);
        run_processes(2, done_early, NULL);
    }
    use_link(NULL);
}

/* ---- A sub group that one destroys too early ------------------------------------ */

enum leaver_owes { A_BARRIER, A_MESSAGE, A_RECEIVE, OWED };

static ct_status wait_for_leaver(ct_group *sub, enum leaver_owes owed, int32_t *large)
{
    int32_t value = 0;

    switch (owed) {
    case A_BARRIER:
        return ct_barrier(sub, NULL);
    case A_MESSAGE:
        EXPECT_OK(ct_recv(sub, &value, 1, CT_I32, 0, 3, NULL));
        EXPECT(value == 42);
        return ct_recv(sub, &value, 1, CT_I32, 0, 3, NULL);
    default:
        return ct_send(sub, large, LARGE, CT_I32, 0, 3);
    }
}

struct early {
    enum leaver_owes owed;
    int late; /* the others wait when it has left already */
};

/* Rank 0 of three destroys the sub group; the world is sound. */
static void destroys_early(ct_group *world, void *arg)
{
    const struct early *early = arg;
    const double start = now_ms();
    int32_t *large = calloc(LARGE, sizeof *large), value = 42;
    ct_group *sub;

    EXPECT_OK(ct_split_group(world, 0, 0, &sub));
    EXPECT_OK(ct_barrier(sub, NULL));
    if (ct_rank(world) == 0) {
        for (int r = 1; r < 3 && early->owed == A_MESSAGE; r++)
            EXPECT_OK(ct_send(sub, &value, 1, CT_I32, r, 3));
        EXPECT_OK(ct_destroy_process_group(sub));
    }
    if (early->late)
        EXPECT_OK(ct_barrier(world, NULL));
    if (ct_rank(world) > 0) {
        EXPECT_ERROR(wait_for_leaver(sub, early->owed, large), CT_ERR_PEER,
                     "rank 0|destroyed the group");
        EXPECT(now_ms() - start < QUICKLY_MS);
        EXPECT_OK(ct_destroy_process_group(sub));
    }
    EXPECT_OK(ct_barrier(world, NULL));
    free(large);
}

static void who_destroys_a_group_is_not_waited_for_in_it(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * 2 * OWED; i++) {
        struct early early = { .owed = (enum leaver_owes)(i % OWED), .late = i / OWED % 2 };

        use_link(i / OWED / 2 ? "tcp" : NULL);
        run_ranks(3, destroys_early, &early);
    }
    use_link(NULL);
}

/* ---- Groups that not all make -------------------------------------------------------- */

/* Rank 1 is dead when the others list it. */
static void lists_the_dead(ct_group *world, void *arg)
{
    const int list[3] = { 0, 1, 2 };
    const double start = now_ms();
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *group = NULL;
    int32_t value = 1;

    (void)arg;
    EXPECT_OK(ct_barrier(world, NULL));
    if (ct_rank(world) == 1) {
        mark("gone", 1);
        rank_leaves();
    }
    await("gone", 1);
    options.local_sync = 1;
    options.parent = world;
    if (ct_new_group_with(list, 3, &options, &group) == CT_OK)
        EXPECT_ERROR(ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, NULL), CT_ERR_PEER,
                     "rank");
    EXPECT(now_ms() - start < QUICKLY_MS);
    mark("told", ct_rank(world));
    await("told", 0);
    await("told", 2);
}

static void a_group_with_a_dead_member_keeps_no_rank_waiting(void **state)
{
    (void)state;
    run_processes(3, lists_the_dead, NULL);
    use_link("tcp");
    run_processes(3, lists_the_dead, NULL);
    use_link(NULL);
}

/* Rank 0 is late in handing on what rank 1 needs of the lists, and rank 1 gives up; rank 2 has
 * all it needs. */
static void one_gives_up(ct_group *world, void *arg)
{
    const int list[3] = { 0, 1, 2 };
    const double start = now_ms();
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *group = NULL;
    ct_status status;

    (void)arg;
    options.parent = world;
    EXPECT_OK(ct_barrier(world, NULL));
    if (ct_rank(world) == 1)
        EXPECT_OK(ct_set_next_timeout(world, 200));
    status = ct_new_group_with(list, 3, &options, &group);
    if (ct_rank(world) == 1)
        EXPECT_ERROR(status, CT_ERR_TIMEOUT, "new_group #2 on group created, rank 1");
    else if (status == CT_OK)
        EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_PEER, "new_group #2|rank 1");
    EXPECT(now_ms() - start < QUICKLY_MS);
    all_marked(world, "gave.up");
}

static void a_group_that_one_could_not_make_is_broken_for_the_others(void **state)
{
    (void)state;
    use_link("tcp");
    setenv("CT_NEW_GROUP", "ring", 1);
    setenv("CT_FAULT", "rank:0,op:new_group,phase:1,delay:4s", 1);
    run_ranks(3, one_gives_up, NULL);
    unsetenv("CT_FAULT");
    unsetenv("CT_NEW_GROUP");
    use_link(NULL);
}

/* ---- Aborted -------------------------------------------------------------------- */

enum blocked_in { IN_BARRIER, IN_WAIT, IN_RECV, BLOCKS };

static void *aborts(void *group)
{
    nap(30);
    ct_abort(group);
    return NULL;
}

/* Not before the call has begun, or the call does not name itself. */
static void *aborts_a_call(void *group)
{
    while (atomic_load(&((ct_group *)group)->running) == 0)
        nap(1);
    return aborts(group);
}

/* Rank 1 never comes; a thread of rank 0 gives up for it. */
static void aborted(ct_group *group, void *arg)
{
    const enum blocked_in where = *(const enum blocked_in *)arg;
    const double start = now_ms();
    pthread_t thread;
    ct_work *work = NULL;
    int32_t value = 1;

    if (ct_rank(group) == 0
        && EXPECT(pthread_create(&thread, NULL, where == IN_RECV ? aborts : aborts_a_call, group)
                  == 0)) {
        if (where == IN_BARRIER) {
            EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_ABORTED, "barrier|group created");
        } else if (where == IN_WAIT) {
            EXPECT_OK(ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, &work));
            EXPECT_STATUS(ct_wait(work), CT_ERR_ABORTED);
        } else {
            EXPECT_STATUS(ct_recv(group, &value, 1, CT_I32, 1, 0, NULL), CT_ERR_ABORTED);
        }
        EXPECT(now_ms() - start < QUICKLY_MS);
        pthread_join(thread, NULL);
        stays_broken(group, CT_ERR_ABORTED);
    }
    all_marked(group, "aborted");
}

static void an_abort_from_another_thread_wakes_whoever_is_blocked(void **state)
{
    (void)state;
    for (int i = 0; i < BLOCKS; i++) {
        enum blocked_in where = (enum blocked_in)i;

        run_ranks(2, aborted, &where);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_calls_are_a_mismatch_and_break_the_group),
        cmocka_unit_test(the_timeout_names_the_operation_and_who_is_missing),
        cmocka_unit_test(a_rank_that_ends_is_found_long_before_the_timeout),
        cmocka_unit_test(a_rank_of_another_host_that_ends_before_it_said_a_word_is_found),
        cmocka_unit_test(what_a_rank_sent_before_its_end_arrives),
        cmocka_unit_test(what_a_rank_sent_before_it_left_arrives_though_others_still_send_to_it),
        cmocka_unit_test(who_destroys_a_group_is_not_waited_for_in_it),
        cmocka_unit_test(a_group_with_a_dead_member_keeps_no_rank_waiting),
        cmocka_unit_test(a_group_that_one_could_not_make_is_broken_for_the_others),
        cmocka_unit_test(an_abort_from_another_thread_wakes_whoever_is_blocked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
