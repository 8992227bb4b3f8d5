/* SPDX-License-Identifier: Apache-2.0 */
/* test_scratch.c - memory of calls that is kept for the next one. */
#include "tests/harness.h"

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/util/scratch.h"

/* Of 100 calls that touch 384 pages each. */
#ifdef __SANITIZE_THREAD__
#define MOST_FAULTS 5000 /* its shadow memory has some, too */
#else
#define MOST_FAULTS 1000
#endif

static int open_it(void **state)
{
    static struct scratch scratch;

    scratch_open(&scratch);
    *state = &scratch;
    return 0;
}

static int close_it(void **state)
{
    scratch_close(*state);
    return 0;
}

/* Page faults of this process that the kernel answered with new memory. */
static long faults_so_far(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

static void *filled(struct scratch *scratch, size_t bytes, int with)
{
    void *data = scratch_take(scratch, bytes);

    assert_non_null(data);
    return memset(data, with, bytes);
}

static void calls_that_need_as_much_each_time_take_page_faults_only_at_first(void **state)
{
    const size_t bytes = 1 << 20;
    long before;

    scratch_give(*state, filled(*state, bytes, 1));
    before = faults_so_far();
    for (int i = 0; i < 100; i++) {
        void *other = filled(*state, bytes / 2, i);

        scratch_give(*state, filled(*state, bytes, i));
        scratch_give(*state, other);
    }
    assert_in_range(faults_so_far() - before, 0, MOST_FAULTS);
}

static void blocks_in_use_are_apart_and_hold_all_that_was_asked_for(void **state)
{
    static const size_t bytes[] = {
        0,       1,       SCRATCH_LEAST - 1, SCRATCH_LEAST,      20480, 20481, 100000,
        3 << 20, 5 << 20, SCRATCH_LARGEST,   SCRATCH_LARGEST + 1
    };
    enum { BLOCKS = sizeof bytes / sizeof *bytes };
    unsigned char *blocks[BLOCKS];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = filled(*state, bytes[i], i + 1);
        for (int i = 0; i < BLOCKS; i++) {
            assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
            for (size_t at = 0; at < bytes[i]; at++)
                if (blocks[i][at] != i + 1)
                    fail_msg("byte %zu of block %d is another's", at, i);
        }
        for (int i = round % 2; i < BLOCKS; i += 2)
            scratch_give(*state, blocks[i]);
        for (int i = (round + 1) % 2; i < BLOCKS; i += 2)
            scratch_give(*state, blocks[i]);
    }
}

static void no_more_is_kept_than_said_and_what_came_last_stays(void **state)
{
    struct scratch *scratch = *state;
    void *many[2000], *last;

    for (int i = 0; i < 2000; i++)
        many[i] = filled(scratch, 20000, i);
    for (int i = 0; i < 2000; i++)
        scratch_give(scratch, many[i]);
    assert_in_range(scratch->bytes, SCRATCH_KEPT / 2, SCRATCH_KEPT);
    last = filled(scratch, SCRATCH_LARGEST, 1);
    scratch_give(scratch, last);
    assert_in_range(scratch->bytes, SCRATCH_LARGEST, SCRATCH_KEPT);
    assert_ptr_equal(scratch_take(scratch, SCRATCH_LARGEST), last);
    scratch_give(scratch, last);
    scratch_give(scratch, filled(scratch, 2 * SCRATCH_KEPT, 1)); /* one that is not kept */
    assert_ptr_equal(scratch_take(scratch, SCRATCH_LARGEST), last);
    scratch_give(scratch, last);
    scratch_give(scratch, NULL);
}

static void more_than_there_can_be_is_no_memory(void **state)
{
    assert_null(scratch_take(*state, SIZE_MAX));
    assert_null(scratch_take(*state, SIZE_MAX - 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            calls_that_need_as_much_each_time_take_page_faults_only_at_first, open_it, close_it),
        cmocka_unit_test_setup_teardown(blocks_in_use_are_apart_and_hold_all_that_was_asked_for,
                                        open_it, close_it),
        cmocka_unit_test_setup_teardown(no_more_is_kept_than_said_and_what_came_last_stays, open_it,
                                        close_it),
        cmocka_unit_test_setup_teardown(more_than_there_can_be_is_no_memory, open_it, close_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
