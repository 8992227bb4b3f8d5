/* SPDX-License-Identifier: Apache-2.0 */
/* ct_bench's checks: its expectations are the written order's and the library's, and what differs
 * from them in one element is seen. */
#include "tests/harness.h"

#include <stdio.h>

#include "bench/ct_bench/trial.h"
#include "tests/elements.h"

#define MOST 40 /* ranks whose values are folded */

static struct pattern given[MOST], expected, result;

/* ---- Expectations --------------------------------------------------------------- */

static void expect_fold(ct_dtype dtype, ct_op op, int ranks)
{
    const struct inputs inputs = { dtype, op, ranks, 3 };
    const void *sources[MOST];
    char what[80];

    for (int rank = 0; rank < ranks; rank++) {
        pattern_make(&given[rank], &inputs, rank);
        sources[rank] = given[rank].bytes;
    }
    pattern_make(&expected, &inputs, FOLDED);
    reference_fold(dtype, op, result.bytes, sources, ranks, PERIOD);
    snprintf(what, sizeof what, "%s of %s over %d ranks", name_of_op(op), name_of_dtype(dtype),
             ranks);
    if (pattern_wrong(&expected, 0, result.bytes, PERIOD) != 0)
        fail_msg("%s", what);
}

/* The reference knows complex numbers as value + 2 value i, which products do not stay. */
static void expectations_are_those_of_the_written_order(void **state)
{
    const int sizes[] = { 1, 2, 3, 4, 7, 9, MOST };

    (void)state;
    for (int dtype = 0; dtype < (int)DTYPES; dtype++)
        for (int op = 0; op < (int)OPS; op++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                if (op_has_meaning(dtype, op) && !(is_complex(dtype) && op == CT_PRODUCT))
                    expect_fold(dtype, op, sizes[i]);
}

static void all_reduce_gives_the_expected(ct_group *group, void *arg)
{
    const int rank = ct_rank(group), ranks = ct_size(group);

    (void)arg;
    for (int dtype = 0; dtype < (int)DTYPES; dtype++)
        for (int op = 0; op < (int)OPS; op++) {
            const struct inputs inputs = { dtype, op, ranks, 5 };

            if (!op_has_meaning(dtype, op))
                continue;
            pattern_make(&given[0], &inputs, rank);
            pattern_make(&expected, &inputs, FOLDED);
            EXPECT_OK(ct_all_reduce(group, given[0].bytes, result.bytes, PERIOD, dtype, op, NULL));
            EXPECT(pattern_wrong(&expected, 0, result.bytes, PERIOD) == 0);
        }
}

static void the_library_gives_the_expected_in_every_dtype_and_op(void **state)
{
    (void)state;
    run_processes(2, all_reduce_gives_the_expected, NULL);
    run_processes(5, all_reduce_gives_the_expected, NULL);
}

/* ---- What is not as expected -------------------------------------------------------- */

static unsigned char buffer[3 * PERIOD * 16];

static void a_wrong_element_is_seen_wherever_it_is(void **state)
{
    const size_t places[] = { 0, 1, PERIOD - 1, PERIOD, PERIOD + 1, 2 * PERIOD, 2 * PERIOD + 99 };
    const size_t count = 2 * PERIOD + 100;

    (void)state;
    for (int dtype = 0; dtype < (int)DTYPES; dtype++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const struct inputs inputs = { dtype, MOVED, 3, 1 };
            const size_t element = ct_dtype_size((ct_dtype)dtype);

            pattern_make(&expected, &inputs, 1);
            pattern_fill(&expected, 17, buffer, count);
            assert_int_equal(pattern_wrong(&expected, 17, buffer, count), 0);
            buffer[places[i] * element + element - 1] ^= 1;
            assert_int_equal(pattern_wrong(&expected, 17, buffer, count), 1);
        }
}

/* Of a bool every second element is the same whatever it is; half of that must differ. */
static void data_of_another_place_rank_or_round_is_wrong(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < (int)DTYPES; dtype++) {
        const struct inputs inputs = { dtype, MOVED, 3, 1 }, later = { dtype, MOVED, 3, 2 };

        pattern_make(&expected, &inputs, 1);
        for (size_t shift = 1; shift < 100; shift++) {
            pattern_fill(&expected, shift, buffer, PERIOD);
            assert_true(pattern_wrong(&expected, 0, buffer, PERIOD) > PERIOD / 4);
        }
        pattern_make(&given[0], &inputs, 2);
        assert_true(pattern_wrong(&expected, 0, given[0].bytes, PERIOD) > PERIOD / 4);
        pattern_make(&given[0], &later, 1);
        assert_true(pattern_wrong(&expected, 0, given[0].bytes, PERIOD) > PERIOD / 4);
    }
}

/* ---- Calls that do not do what they should ------------------------------------------- */

static ct_status does_nothing(const struct shape *s, void *send, void *recv)
{
    (void)s, (void)send, (void)recv;
    return CT_OK;
}

static ct_status errs_in_one_element(const struct shape *s, void *send, void *recv)
{
    const ct_status status = operations[0].call(s, send, recv);

    if (s->rank == 1)
        ((float *)recv)[s->count - 1] += 1;
    return status;
}

static ct_status spoils_what_was_given(const struct shape *s, void *send, void *recv)
{
    const ct_status status = operations[0].call(s, send, recv);

    if (s->rank == 0)
        ((float *)send)[0] += 1;
    return status;
}

static void expect_wrong(ct_status (*call)(const struct shape *, void *, void *), int in_place,
                         enum memory memory, int64_t count)
{
    struct operation operation = operations[0]; /* all_reduce */
    struct room room;
    struct trial trial = { .operation = &operation,
                           .shape = { CT_WORLD, ct_rank(CT_WORLD), ct_size(CT_WORLD), 1000, CT_F32,
                                      CT_SUM, 0 },
                           .in_place = in_place,
                           .room = &room };
    int64_t wrong = -1;

    operation.call = call;
    EXPECT(room_make(&room, 4000, memory));
    trial_place(&trial);
    EXPECT_OK(trial_check(&trial, &wrong));
    EXPECT(wrong == count);
    room_free(&room);
}

static void checks_all_reduces(ct_group *group, void *arg)
{
    (void)group, (void)arg;
    EXPECT_OK(ct_init_process_group(NULL));
    for (enum memory memory = ANY_MEMORY; memory <= SHARED_MEMORY; memory++) {
        expect_wrong(operations[0].call, 0, memory, 0);
        expect_wrong(operations[0].call, 1, memory, 0);
        expect_wrong(errs_in_one_element, 0, memory, 1);
        expect_wrong(errs_in_one_element, 1, memory, 1);
        expect_wrong(spoils_what_was_given, 0, memory, 1);
        expect_wrong(does_nothing, 0, memory, 2000);
    }
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void a_check_counts_the_wrong_elements_of_all_ranks(void **state)
{
    (void)state;
    run_programs(2, checks_all_reduces, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expectations_are_those_of_the_written_order),
        cmocka_unit_test(the_library_gives_the_expected_in_every_dtype_and_op),
        cmocka_unit_test(a_wrong_element_is_seen_wherever_it_is),
        cmocka_unit_test(data_of_another_place_rank_or_round_is_wrong),
        cmocka_unit_test(a_check_counts_the_wrong_elements_of_all_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
