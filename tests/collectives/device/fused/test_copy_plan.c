/* SPDX-License-Identifier: Apache-2.0 */
/* test_copy_plan.c - how the steps of a plan are shared out among the devices of a host. */
#include "tests/harness.h"

#include "collectives/device/fused/copy_plan.h"
#include "collectives/device/group/device_group.h"

enum { RANKS = 7, BYTES = 300000 };

/* Ranks 0 1 2 on the first device, 3 and 6 on the second, 4 on the third, 5 on the fourth. */
static int of[RANKS] = { 0, 0, 0, 1, 2, 3, 1 };

static struct slice slice(int leaders, int mine, int near, int shared, size_t bytes)
{
    const struct leaders l = { .count = leaders, .ranks = RANKS, .of = of, .mine = mine };

    return slice_of(&l, near, shared, bytes);
}

/* One behind the other from the nearest one on, each at a line. */
static void check_cut(int leaders, int near, size_t bytes)
{
    size_t at = 0;

    for (int i = 0; i < leaders; i++) {
        const struct slice s = slice(leaders, (of[near] + i) % leaders, near, 1, bytes);

        assert_true(s.bytes == 0 || s.at == at);
        assert_true(s.bytes == 0 || s.at % 128 == 0);
        at += s.bytes;
    }
    assert_int_equal(at, bytes);
}

static void each_byte_of_a_call_is_done_once(void **state)
{
    static const size_t some[] = { 0,     1,     127,    128,    32767,  65535,
                                   65536, 65537, 131072, 131073, 999999, (size_t)3 << 30 };

    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        for (int near = 0; near < RANKS; near++)
            check_cut(4, near, some[i]);
    for (size_t bytes = 0; bytes < BYTES; bytes += 977)
        check_cut(4, 5, bytes);
    check_cut(1, 0, BYTES);
}

static void large_calls_are_cut_evenly(void **state)
{
    (void)state;
    for (int mine = 0; mine < 4; mine++) {
        const struct slice s = slice(4, mine, 0, 1, 1 << 20);

        assert_int_equal(s.at, mine << 18);
        assert_int_equal(s.bytes, 1 << 18);
    }
}

static void few_bytes_are_done_by_the_nearest(void **state)
{
    (void)state;
    for (int near = 0; near < RANKS; near++)
        for (int mine = 0; mine < 4; mine++)
            assert_int_equal(slice(4, mine, near, 1, 65535).bytes, mine == of[near] ? 65535 : 0);
}

static void a_block_among_many_is_done_by_the_nearest(void **state)
{
    (void)state;
    for (int near = 0; near < RANKS; near++)
        for (int mine = 0; mine < 4; mine++)
            assert_int_equal(slice(4, mine, near, 0, 1 << 20).bytes,
                             mine == of[near] ? 1 << 20 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_of_a_call_is_done_once),
        cmocka_unit_test(large_calls_are_cut_evenly),
        cmocka_unit_test(few_bytes_are_done_by_the_nearest),
        cmocka_unit_test(a_block_among_many_is_done_by_the_nearest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
