/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_all_gather.c - how much ranks that wait load the store, and what they say. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/bootstrap/store_all_gather.h"
#include "runtime/store/store.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

enum { RANKS = 64 };

/* ---- A store without keys: its waits end at once with a timeout, and it counts the requests ----
 */

static int sets, adds, waits, questions, warners;

static ct_status is_set(ct_store *store, struct bytes key, struct bytes value)
{
    (void)store;
    (void)key;
    (void)value;
    sets++;
    return CT_OK;
}

static ct_status is_added_to(ct_store *store, struct bytes key, int64_t delta, int64_t *result)
{
    (void)store;
    (void)key;
    adds++;
    *result = delta;
    return CT_OK;
}

static ct_status is_waited_for(ct_store *store, const struct bytes *keys, int count,
                               int64_t deadline)
{
    (void)store;
    (void)keys;
    (void)deadline;
    EXPECT(count == 1); /* not one for each rank */
    waits++;
    return ct_fail(CT_ERR_TIMEOUT, "its time is over");
}

static ct_status are_checked(ct_store *store, const struct bytes *keys, int count, char *present)
{
    (void)store;
    (void)keys;
    questions++;
    for (int i = 0; i < count; i++)
        present[i] = i != RANKS - 1 && i != 2 && i != 3;
    return CT_OK;
}

static char first[16];

static ct_status is_compared(ct_store *store, struct bytes key, struct bytes expected,
                             struct bytes desired, void **value, size_t *bytes)
{
    (void)store;
    (void)key;
    (void)expected;
    warners++;
    if (!first[0])
        memcpy(first, desired.data, desired.size);
    return value_copy((struct bytes){ first, strlen(first) }, value, bytes);
}

static const struct store_ops counting = { .kind = "counting",
                                           .set = is_set,
                                           .add = is_added_to,
                                           .wait = is_waited_for,
                                           .check_each = are_checked,
                                           .compare_set = is_compared };

static struct ct_store counting_store(void)
{
    return (struct ct_store){ .ops = &counting, .timeout_ms = 1000, .maker = forks_maker() };
}

/* One of 64 ranks waits for the others, who don't come in time. */
static void waits_as(int rank, const char *log, int waits_due, int questions_due)
{
    struct ct_store store = counting_store();
    struct gathered all;

    setenv("CT_LOG", log, 1);
    log_setup("rank", LOG_NONE);
    waits = questions = 0;
    EXPECT_ERROR(store_all_gather_take(&store, "card", rank, RANKS, clock_ms() + 60000, &all),
                 CT_ERR_TIMEOUT, "of 64 ranks|rank 2-3, 63");
    gathered_free(&all);
    EXPECT(waits == waits_due);
    EXPECT(questions == questions_due);
}

static void keeps_the_line(void *arg, const char *line, size_t size)
{
    (void)arg;
    (void)line;
    (void)size;
}

static void of_the_ranks_that_wait_one_asks_for_the_missing_before_the_end(void **state)
{
    (void)state;
    log_divert(keeps_the_line, NULL);
    waits_as(5, "none", 1, 1); /* at the end, for its sentence */
    waits_as(0, "none", 1, 1);
    EXPECT(warners == 0);
    waits_as(5, "warn", 2, 2); /* and after 5 s for its warning */
    waits_as(0, "warn", 2, 1); /* rank 5 has warned */
    EXPECT(warners == 2);
    log_divert(NULL, NULL);
}

static void a_rank_gives_its_value_in_two_requests(void **state)
{
    struct ct_store store = counting_store();

    (void)state;
    sets = adds = waits = questions = 0;
    EXPECT_OK(store_all_gather_give(&store, "card", 7, RANKS, clock_ms() + 1000, "x", 1));
    EXPECT(sets == 1 && adds == 1 && waits == 0 && questions == 0);
}

/* ---- A real one
 * ---------------------------------------------------------------------------------- */

static void give_and_take(ct_store *store)
{
    struct gathered all;

    for (int i = RANKS - 1; i >= 0; i--)
        EXPECT_OK(store_all_gather_give(store, "port", i, RANKS, clock_ms() + 1000, "0123456789",
                                        (size_t)i % 11));
    EXPECT_OK(store_all_gather_take(store, "port", 3, RANKS, clock_ms() + 1000, &all));
    for (int i = 0; i < RANKS; i++) {
        EXPECT(all.at[i + 1] - all.at[i] == (size_t)i % 11);
        EXPECT(!memcmp(all.data + all.at[i], "0123456789", (size_t)i % 11));
    }
    gathered_free(&all);
    EXPECT_OK(ct_store_close(store));
}

static void what_all_gave_is_taken_in_order_of_ranks(void **state)
{
    ct_store *store;

    (void)state;
    assert_int_equal(ct_store_hash(&store), CT_OK);
    give_and_take(store);
}

/* PyTorch's stores give up at once where the limit is 0, also for a key that is there. */
static ct_status get_unless_0(void *arg, const char *key, int timeout_ms, void **value,
                              size_t *bytes)
{
    return timeout_ms == 0 ? CT_ERR_TIMEOUT : ct_store_get(arg, key, timeout_ms, value, bytes);
}

static ct_status set_it(void *arg, const char *key, const void *value, size_t bytes)
{
    return ct_store_set(arg, key, value, bytes);
}

static ct_status add_to_it(void *arg, const char *key, int64_t delta, int64_t *result)
{
    return ct_store_add(arg, key, delta, result);
}

static ct_status wait_unless_0(void *arg, const char *const *keys, int count, int timeout_ms)
{
    return timeout_ms == 0 ? CT_ERR_TIMEOUT : ct_store_wait(arg, keys, count, timeout_ms);
}

static ct_status check_it(void *arg, const char *const *keys, int count, int *present)
{
    return ct_store_check(arg, keys, count, present);
}

static ct_status compare_it(void *arg, const char *key, const void *expected, size_t expected_bytes,
                            const void *desired, size_t desired_bytes, void **value, size_t *bytes)
{
    return ct_store_compare_set(arg, key, expected, expected_bytes, desired, desired_bytes, value,
                                bytes);
}

static void a_store_that_gives_up_at_once_without_time_is_given_some(void **state)
{
    const ct_store_ops ops = { .size = sizeof ops,
                               .set = set_it,
                               .get = get_unless_0,
                               .add = add_to_it,
                               .wait = wait_unless_0,
                               .check = check_it,
                               .compare_set = compare_it };
    ct_store *below, *store;

    (void)state;
    assert_int_equal(ct_store_hash(&below), CT_OK);
    assert_int_equal(ct_store_wrap(&ops, below, 1000, &store), CT_OK);
    give_and_take(store);
    EXPECT_OK(ct_store_close(below));
}

/* The rank that counted to the last one died before it had joined them. */
static void the_keys_of_all_ranks_are_enough_at_the_deadline(void **state)
{
    ct_store *store;
    struct gathered all;

    (void)state;
    assert_int_equal(ct_store_hash(&store), CT_OK);
    EXPECT_OK(ct_store_set(store, "card/0", "a", 1));
    EXPECT_OK(ct_store_set(store, "card/1", "bc", 2));
    EXPECT_OK(store_all_gather_take(store, "card", 0, 2, clock_ms() + 50, &all));
    EXPECT(all.at[2] == 3 && !memcmp(all.data, "abc", 3));
    gathered_free(&all);
    EXPECT_OK(ct_store_close(store));
}

/* Any program that reaches the store may have written it. */
static void sizes_that_are_not_those_of_the_values_are_a_mismatch(void **state)
{
    static const struct {
        unsigned char value[16];
        size_t bytes;
    } wrong[] = {
        { { 0 }, 0 },
        { { 0 }, 7 },
        { { 1 }, 8 },
        { { 1, 0, 0, 0, 2, 0, 0, 0, 'x', 'y' }, 10 },
        { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'x' }, 9 },
        { { 0, 0, 0, 0, 0, 0, 0, 0, 'x' }, 9 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ct_store *store;
        struct gathered all;

        assert_int_equal(ct_store_hash(&store), CT_OK);
        EXPECT_OK(ct_store_set(store, "card/all", wrong[i].value, wrong[i].bytes));
        EXPECT_ERROR(store_all_gather_take(store, "card", 0, 2, clock_ms() + 50, &all),
                     CT_ERR_MISMATCH, "card/all|another version");
        gathered_free(&all);
        EXPECT_OK(ct_store_close(store));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_ranks_that_wait_one_asks_for_the_missing_before_the_end),
        cmocka_unit_test(a_rank_gives_its_value_in_two_requests),
        cmocka_unit_test(what_all_gave_is_taken_in_order_of_ranks),
        cmocka_unit_test(a_store_that_gives_up_at_once_without_time_is_given_some),
        cmocka_unit_test(the_keys_of_all_ranks_are_enough_at_the_deadline),
        cmocka_unit_test(sizes_that_are_not_those_of_the_values_are_a_mismatch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
