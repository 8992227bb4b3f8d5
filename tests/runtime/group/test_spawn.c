/* SPDX-License-Identifier: Apache-2.0 */
/* test_spawn.c - ct_spawn from a process that has no thread yet. */
#include "tests/harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int sums(int rank, int size, void *arg)
{
    int x = rank + 1, right;

    if (ct_init_process_group(NULL) != CT_OK || ct_rank(CT_WORLD) != rank
        || ct_size(CT_WORLD) != size || ct_local_rank() != rank)
        return 1;
    if (ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, NULL) != CT_OK)
        return 2;
    right = x == size * (size + 1) / 2 + *(const int *)arg;
    return ct_destroy_process_group(CT_WORLD) != CT_OK || !right;
}

static void spawned_ranks_are_a_world(void **state)
{
    int nothing = 0;

    (void)state;
    for (int size = 1; size <= 5; size++)
        assert_int_equal(ct_spawn(size, sums, &nothing), 0);
    assert_null(getenv("RANK")); /* ours is as it was */
    assert_false(ct_is_initialized());
}

/* Rank 1 fails; the others would wait for ever. */
static int fails(int rank, int size, void *arg)
{
    (void)size;
    if (rank == 1 && *(const int *)arg < 128)
        return *(const int *)arg;
    if (rank == 1)
        raise(*(const int *)arg - 128);
    for (;;)
        pause();
}

static void the_first_failure_is_the_result_and_ends_the_others(void **state)
{
    int code = 7;

    (void)state;
    assert_int_equal(ct_spawn(3, fails, &code), 7);
    assert_non_null(strstr(ct_last_error(), "rank 1"));
    assert_non_null(strstr(ct_last_error(), "exited with code 7"));
    code = 128 + SIGKILL;
    assert_int_equal(ct_spawn(3, fails, &code), 128 + SIGKILL);
    assert_non_null(strstr(ct_last_error(), "was killed by signal 9"));
}

static void no_process_or_no_function_is_refused(void **state)
{
    (void)state;
    assert_int_equal(ct_spawn(0, fails, NULL), CT_ERR_INVALID);
    assert_int_equal(ct_spawn(2, NULL, NULL), CT_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spawned_ranks_are_a_world),
        cmocka_unit_test(the_first_failure_is_the_result_and_ends_the_others),
        cmocka_unit_test(no_process_or_no_function_is_refused),
    };

    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
