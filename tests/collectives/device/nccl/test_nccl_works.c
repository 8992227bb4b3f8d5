/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl_works.c - calls by NCCL that run at the same time, calls that fail, and ranks that end
 * meanwhile.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include "tests/collectives/device/nccl/nccl.h"

enum { SOON_MS = 300 };

static void flies(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    ct_work *works[4];
    void *there[4];

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    for (int i = 0; i < 4; i++) {
        there[i] = device_alloc(COUNT * sizeof(int32_t), 0);
        put(there[i], CT_I32, me + i);
    }
    for (int i = 0; i < 4; i++)
        EXPECT_OK(ct_all_reduce(group, there[i], there[i], COUNT, CT_I32, CT_SUM, &works[i]));
    for (int i = 3; i >= 0; i--)
        EXPECT_OK(ct_wait(works[i]));
    for (int i = 0; i < 4; i++) {
        EXPECT(first_of(there[i]) == p * (p - 1) / 2 + i * p);
        device_free(there[i]);
    }
}

static void asynchronous_calls_go_by_nccl_too(void **state)
{
    (void)state;
    run_all(3, 3, flies, &(struct run_of){ 0 });
}

/* Groups of the same ranks, called in another order on each from two threads' view: the calls of
 * one may not stand behind the other's. */
static void two_groups(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *other;
    ct_work *first, *second;
    void *a, *b;
    int ranks[MAX_RANKS];

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    for (int i = 0; i < p; i++)
        ranks[i] = i;
    options.parent = group;
    if (!EXPECT_OK(ct_new_group_with(ranks, p, &options, &other)))
        return;
    a = device_alloc(COUNT * sizeof(int32_t), 0);
    b = device_alloc(COUNT * sizeof(int32_t), 0);
    for (int i = 0; i < 5; i++) {
        put(a, CT_I32, 1);
        put(b, CT_I32, 2);
        if (me % 2) {
            EXPECT_OK(ct_all_reduce(group, a, a, COUNT, CT_I32, CT_SUM, &first));
            nap(5);
            EXPECT_OK(ct_all_reduce(other, b, b, COUNT, CT_I32, CT_SUM, &second));
        } else {
            EXPECT_OK(ct_all_reduce(other, b, b, COUNT, CT_I32, CT_SUM, &second));
            nap(5);
            EXPECT_OK(ct_all_reduce(group, a, a, COUNT, CT_I32, CT_SUM, &first));
        }
        EXPECT_OK(ct_wait(first));
        EXPECT_OK(ct_wait(second));
        EXPECT(first_of(a) == p && first_of(b) == 2 * p);
    }
    EXPECT_OK(ct_destroy_process_group(other));
    device_free(a);
    device_free(b);
}

static void two_groups_do_not_block_each_other(void **state)
{
    (void)state;
    run_all(3, 3, two_groups, &(struct run_of){ 0 });
}

/* ---- What goes wrong ---------------------------------------------------------------------- */

/* Rank 1's is late, and the victim ends while all are in it. */
static void one_ends(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    void *there;

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    there = device_alloc(COUNT * sizeof(int32_t), 0);
    if (me == 1) {
        ct_work *work;

        EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, &work));
        nap(SOON_MS);
        rank_leaves(); /* with the call in flight */
    }
    EXPECT_ERROR(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL), CT_ERR_PEER,
                 "rank 1");
    device_free(there);
}

static void who_waits_in_nccl_hears_of_a_death(void **state)
{
    static const struct setting late[] = { { "FAKE_NCCL_LATE", "1:30000" }, { NULL, NULL } };
    static const struct setting far[] = { { "FAKE_NCCL_LATE", "1:30000" },
                                          { "CT_FAULT", "hosts:0.1.0" },
                                          { NULL, NULL } };
    static const struct setting sockets[] = { { "FAKE_NCCL_LATE", "1:30000" },
                                              { "CT_LINK", "tcp" },
                                              { NULL, NULL } };

    (void)state;
    run_all(3, 0, one_ends, &(struct run_of){ .settings = late });
    run_all(3, 0, one_ends, &(struct run_of){ .settings = far });
    run_all(3, 0, one_ends, &(struct run_of){ .settings = sockets });
}

static void one_never_ends(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    void *there;

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    there = device_alloc(COUNT * sizeof(int32_t), 0);
    /* In it all come, however busy the machine is, and the communicator is made. */
    EXPECT_OK(ct_set_timeout(group, me == 0 ? 10 * SOON_MS : GROUP_TIMEOUT_MS));
    EXPECT_ERROR(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL),
                 me == 0 ? CT_ERR_TIMEOUT : CT_ERR_PEER, me == 0 ? "NCCL" : "rank 0");
    device_free(there); /* nothing uses it any more */
}

static void a_deadline_ends_it_on_all_ranks(void **state)
{
    static const struct setting late[] = { { "FAKE_NCCL_LATE", "1:30000" }, { NULL, NULL } };

    (void)state;
    run_all(3, 3, one_never_ends, &(struct run_of){ .settings = late });
}

static void one_fails(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_status status = CT_OK;
    void *there;

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    there = device_alloc(COUNT * sizeof(int32_t), 0);
    put(there, CT_I32, 0);
    for (int i = 0; i < 3 && status == CT_OK; i++)
        status = ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL);
    EXPECT_ERROR(status, me == 2 ? CT_ERR_NCCL : CT_ERR_PEER, "all_reduce|as it was told to");
    device_free(there);
}

static void the_message_holds_the_words_of_nccl(void **state)
{
    static const struct setting fails[] = { { "FAKE_NCCL_FAIL", "ncclAllReduce:2:2" },
                                            { NULL, NULL } };

    (void)state;
    run_all(3, 3, one_fails, &(struct run_of){ .settings = fails });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(asynchronous_calls_go_by_nccl_too, forget_settings),
        cmocka_unit_test_teardown(two_groups_do_not_block_each_other, forget_settings),
        cmocka_unit_test_teardown(who_waits_in_nccl_hears_of_a_death, forget_settings),
        cmocka_unit_test_teardown(a_deadline_ends_it_on_all_ranks, forget_settings),
        cmocka_unit_test_teardown(the_message_holds_the_words_of_nccl, forget_settings),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without NCCL */
}

#endif
