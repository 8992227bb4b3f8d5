/* SPDX-License-Identifier: Apache-2.0 */
/* test_monitored_barrier.c - ct_monitored_barrier names the ranks that do not come. */
#include "tests/marks.h"

enum { SOON_MS = 300 };

static void all_come(ct_group *group, void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        mark(i == 0 ? "0" : i == 1 ? "1" : "2", ct_rank(group));
        EXPECT_OK(ct_monitored_barrier(group, i == 1 ? -1 : GROUP_TIMEOUT_MS, i % 2));
        for (int r = 0; r < ct_size(group); r++)
            EXPECT(has_mark(i == 0 ? "0" : i == 1 ? "1" : "2", r));
    }
    EXPECT_ERROR(ct_monitored_barrier(group, 0, 0), CT_ERR_INVALID, "monitored_barrier|0 ms");
    EXPECT_OK(ct_barrier(group, NULL));
}

static void no_rank_leaves_before_all_came(void **state)
{
    (void)state;
    for (int p = 1; p <= 4; p++)
        run_ranks(p, all_come, NULL);
}

/* Ranks 1 and 3 of four stay away until the others have given up. */
static void two_stay_away(ct_group *group, void *arg)
{
    const int me = ct_rank(group), wait_all = *(const int *)arg;
    ct_status status;

    EXPECT_OK(ct_barrier(group, NULL));
    if (me % 2) {
        await("gave up", 0);
        await("gave up", 2);
    }
    /* Rank 0 alone gives up: rank 2 could before it, which is then late. */
    status = ct_monitored_barrier(group, me == 0 ? SOON_MS : GROUP_TIMEOUT_MS, wait_all);
    EXPECT_ERROR(status, me == 0 ? CT_ERR_TIMEOUT : CT_ERR_PEER,
                 "monitored_barrier #2|rank 1 (pid|did not join|300 ms");
    EXPECT(!strstr(ct_last_error(), ", rank 3 (pid") == !wait_all);
    if (me != 0)
        EXPECT_ERROR(status, CT_ERR_PEER, "on rank 0 (pid");
    mark("gave up", me);
    EXPECT_ERROR(ct_barrier(group, NULL), me == 0 ? CT_ERR_TIMEOUT : CT_ERR_PEER,
                 "monitored_barrier #2|rank 1");
    all_marked(group, "told");
}

static void rank_0_names_the_first_that_is_missing_or_all(void **state)
{
    (void)state;
    for (int wait_all = 0; wait_all < 2; wait_all++)
        run_ranks(4, two_stay_away, &wait_all);
}

static void rank_0_stays_away(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_status status;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (me == 0) {
        await("gave up", 1);
        await("gave up", 2);
    }
    status = ct_monitored_barrier(group, SOON_MS, 1);
    EXPECT(status == CT_ERR_TIMEOUT || status == CT_ERR_PEER);
    EXPECT_ERROR(status, status, "monitored_barrier #2|rank 0 (pid|has not joined");
    mark("gave up", me);
    all_marked(group, "told");
}

static void the_others_say_that_rank_0_did_not_come(void **state)
{
    (void)state;
    run_ranks(3, rank_0_stays_away, NULL);
}

/* Rank 0 is in another call, which matches no message of the barrier. */
static void another_call(ct_group *group, void *arg)
{
    int32_t value = 1, sum = 0;
    ct_status status;

    (void)arg;
    if (ct_rank(group) == 0)
        status = ct_all_reduce(group, &value, &sum, 1, CT_I32, CT_SUM, NULL);
    else
        status = ct_monitored_barrier(group, -1, 0);
    EXPECT_ERROR(status, CT_ERR_MISMATCH, "all_reduce #1|monitored_barrier #1|disagree");
    EXPECT(sum == 0);
    all_marked(group, "told");
}

static void another_call_is_a_mismatch(void **state)
{
    (void)state;
    run_ranks(2, another_call, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rank_leaves_before_all_came),
        cmocka_unit_test(rank_0_names_the_first_that_is_missing_or_all),
        cmocka_unit_test(the_others_say_that_rank_0_did_not_come),
        cmocka_unit_test(another_call_is_a_mismatch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
