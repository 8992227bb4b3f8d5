/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of rows in device memory: which bytes must be read and written, and what a copy of
 * half as many takes. */
#include "tests/harness.h"

#include <math.h>
#include <string.h>

#include "bench/ct_bench/limits.h"

/* A GPU that takes 10 us to begin and a us for each 1000 bytes of a copy. */
static struct limits gpu(int ranks)
{
    struct limits limits = { .ranks = ranks, .device = 1, .sizes = LIMIT_SIZES };

    for (int i = 0; i < LIMIT_SIZES; i++)
        limits.speeds[i] =
            (struct speed){ limit_bytes(i), 10 + (double)limit_bytes(i) / 1000, NAN, NAN, NAN };
    return limits;
}

static const struct operation *named(const char *name)
{
    for (int i = 0; i < operation_count; i++)
        if (!strcmp(operations[i].name, name))
            return &operations[i];
    fail_msg("no %s", name);
    return NULL;
}

/* Of n ranks, with rows called by the larger buffer: as many of them are read and written. */
static const struct {
    const char *name;
    int in_place;
    double of_2, of_4;
} moved[] = {
    { "all_reduce", 0, 4, 8 },     { "all_reduce", 1, 4, 8 }, { "reduce", 0, 3, 5 },
    { "broadcast", 1, 2, 4 },      { "all_gather", 0, 3, 5 }, { "all_gather", 1, 2, 4 },
    { "gather", 0, 2, 2 },         { "gather", 1, 1, 1.5 },   { "scatter", 1, 1, 1.5 },
    { "reduce_scatter", 0, 3, 5 }, { "all_to_all", 0, 4, 8 }, { "all_to_all", 1, 2, 6 },
    { "ping_pong", 0, 2, 2 },      { "send_recv", 0, 4, 8 },
};

static void a_limit_is_a_copy_of_half_the_bytes_that_must_move(void **state)
{
    const struct limits two = gpu(2), four = gpu(4);
    const double bytes = 1 << 20;

    (void)state;
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
        const struct operation *operation = named(moved[i].name);
        const double us_2 = limits_of(&two, operation, bytes, moved[i].in_place),
                     us_4 = limits_of(&four, operation, bytes, moved[i].in_place);

        if (fabs(us_2 - (10 + moved[i].of_2 / 2 * bytes / 1000)) > 1e-6
            || fabs(us_4 - (10 + moved[i].of_4 / 2 * bytes / 1000)) > 1e-6)
            fail_msg("%s: %g and %g us", moved[i].name, us_2, us_4);
    }
}

static void few_bytes_take_what_the_launch_does(void **state)
{
    const struct limits limits = gpu(4);

    (void)state;
    assert_true(limits_of(&limits, named("all_reduce"), 8, 0) == limits.speeds[0].copy_hot);
    assert_true(limits_of(&limits, named("reduce"), 64, 0) == limits.speeds[0].copy_hot);
}

static void what_moves_nothing_has_no_limit(void **state)
{
    const struct limits limits = gpu(4), alone = gpu(1);

    (void)state;
    assert_true(isnan(limits_of(&limits, named("barrier"), 0, 0)));
    assert_true(isnan(limits_of(&alone, named("all_reduce"), 1 << 20, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_is_a_copy_of_half_the_bytes_that_must_move),
        cmocka_unit_test(few_bytes_take_what_the_launch_does),
        cmocka_unit_test(what_moves_nothing_has_no_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
