/* SPDX-License-Identifier: Apache-2.0 */
/* test_choices.c - which algorithm carries out a call, in which order it folds, and how the user
 * overrides both. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/core/algorithms.h"
#include "collectives/core/call.h"
#include "collectives/read_overrides.h"

/* The row that a call of so many f32 would take. */
static const char *row_for(ct_group *group, size_t count)
{
    struct call call = { .group = group,
                         .algorithms = all_reduce_algorithms,
                         .element = 4,
                         .signature = { .count = count,
                                        .operation = OPERATION_ALL_REDUCE,
                                        .dtype = CT_F32,
                                        .op = CT_SUM,
                                        .root = -1 } };

    return call_choose(&call) == CT_OK ? call.algorithm->name : "none";
}

#define EXPECT_ROW(group, count, name) EXPECT(!strcmp(row_for((group), (count)), (name)))

typedef void runner(int p, rank_body *body, void *arg);

/* p ranks run body, told by CT_ORDER and CT_ALL_REDUCE; NULL: not told. */
static void run_told(const char *order, const char *row, runner *run, int p, rank_body *body,
                     void *arg)
{
    if (order)
        setenv("CT_ORDER", order, 1);
    if (row)
        setenv("CT_ALL_REDUCE", row, 1);
    run(p, body, arg);
    unsetenv("CT_ALL_REDUCE");
    unsetenv("CT_ORDER");
}

static void sizes(ct_group *group, void *arg)
{
    (void)arg;
    (void)group;
    EXPECT(choices_size("1") == 1);
    EXPECT(choices_size("64K") == 65536 && choices_size("64k") == 65536);
    EXPECT(choices_size("2M") == 2097152 && choices_size("1G") == 1073741824);
    EXPECT(choices_size("") == 0 && choices_size("-1") == 0 && choices_size("1KK") == 0);
    EXPECT(choices_size("K") == 0 && choices_size("99999999999999999999") == 0);
    EXPECT(choices_size("18446744073709551615T") == 0);
}

static void a_size_is_a_number_with_a_unit(void **state)
{
    (void)state;
    run_processes(1, sizes, NULL);
}

static void as_it_comes(ct_group *group, void *arg)
{
    (void)arg;
    EXPECT_ROW(group, 1, "shm_one_shot");
    EXPECT_ROW(group, 2048, "shm_one_shot");
    EXPECT_ROW(group, 2049, "shm_two_shot");
}

static void without_an_override_the_first_row_that_suits_is_taken(void **state)
{
    (void)state;
    run_processes(2, as_it_comes, NULL);
}

static void by_variable(ct_group *group, void *arg)
{
    (void)arg;
    EXPECT_ROW(group, 4, "shm_two_shot");
    EXPECT_ROW(group, 5, "shm_one_shot");
    EXPECT_ROW(group, 65536, "shm_one_shot");
    EXPECT_ROW(group, 65537, "two_shot"); /* no overriding row can: a slot holds 256 KiB */
}

static void a_variable_names_rows_up_to_sizes(void **state)
{
    (void)state;
    run_told(NULL, "shm_two_shot:16, shm_one_shot:1M, two_shot", run_processes, 2, by_variable,
             NULL);
}

static void of_the_group(ct_group *group, void *arg)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    const int both[] = { 0, 1 };
    ct_group *own, *plain;
    float one = 1;

    (void)arg;
    options.parent = group;
    EXPECT_OK(ct_new_group_with(both, 2, &options, &plain));
    options.algorithms = "all_reduce = one_shot # always\n broadcast=binomial;";
    EXPECT_OK(ct_new_group_with(both, 2, &options, &own));
    EXPECT_ROW(own, 1 << 20, "one_shot");
    EXPECT_ROW(plain, 1, "shm_two_shot");
    EXPECT_ROW(group, 1, "shm_two_shot");
    EXPECT_OK(ct_all_reduce(own, &one, &one, 1, CT_F32, CT_SUM, NULL));
    EXPECT(one == 2);
    options.algorithms = "all_reduce=circle";
    EXPECT_ERROR(ct_new_group_with(both, 2, &options, &own), CT_ERR_INVALID,
                 "circle names no algorithm of all_reduce");
}

static void a_group_may_have_overrides_of_its_own(void **state)
{
    (void)state;
    run_told(NULL, "shm_two_shot", run_processes, 2, of_the_group, NULL);
}

static void differently(ct_group *group, void *arg)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    const int both[] = { 0, 1 };
    ct_group *own;
    float values[16] = { 0 };

    (void)arg;
    options.parent = group;
    options.algorithms = ct_rank(group) ? "all_reduce=two_shot" : "all_reduce=one_shot";
    EXPECT_OK(ct_new_group_with(both, 2, &options, &own));
    EXPECT_ERROR(ct_all_reduce(own, values, values, 16, CT_F32, CT_SUM, NULL), CT_ERR_MISMATCH,
                 "all_reduce #1|were told different algorithms");
}

static void ranks_with_different_overrides_find_out(void **state)
{
    (void)state;
    run_ranks(2, differently, NULL);
}

static void by_file(ct_group *group, void *arg)
{
    (void)arg;
    EXPECT_ROW(group, 1, "shm_two_shot");
    EXPECT_ROW(group, 3, "one_shot");
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void overrides_can_lie_in_a_file(void **state)
{
    char path[] = "/tmp/ct_choices_XXXXXX";
    const int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    write_file(
        path,
        "# by ct_bench --tune; for CT_TUNING # so\nall_reduce = shm_two_shot:8, one_shot\n\n");
    setenv("CT_TUNING", path, 1);
    run_processes(2, by_file, NULL);
    unlink(path);
    unsetenv("CT_TUNING");
}

static void by_wrong_file(ct_group *group, void *path)
{
    ct_store *store;
    ct_group *alone;

    (void)group;
    setenv("CT_TUNING", path, 1);
    EXPECT_OK(ct_store_hash(&store));
    EXPECT_ERROR(ct_create_group(store, 0, 1, NULL, &alone), CT_ERR_INVALID,
                 "line 3|\"all_sum\" is not an operation; use a name such as all_reduce");
    EXPECT_OK(ct_store_close(store));
}

static void a_wrong_override_in_a_file_is_refused_with_its_line(void **state)
{
    char path[] = "/tmp/ct_choices_XXXXXX";
    const int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    write_file(path, "# by hand\n\nbroadcast = shm; all_sum = shm\n");
    run_processes(1, by_wrong_file, path);
    unlink(path);
}

/* The survivors of a group have its overrides. */
static void survivors(ct_group *world, void *arg)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    const int all[] = { 0, 1, 2 };
    ct_group *own, *left;
    float one = 1;

    (void)arg;
    options.parent = world;
    options.algorithms = "all_reduce=two_shot";
    EXPECT_OK(ct_new_group_with(all, 3, &options, &own));
    EXPECT_OK(ct_barrier(own, NULL));
    if (ct_rank(world) == 2)
        rank_leaves();
    EXPECT_STATUS(ct_all_reduce(own, &one, &one, 1, CT_F32, CT_SUM, NULL), CT_ERR_PEER);
    if (EXPECT_OK(ct_shrink_group(own, 5000, &left))) {
        EXPECT_ROW(left, 1, "two_shot");
        EXPECT_OK(ct_destroy_process_group(left));
    }
}

static void survivors_keep_the_overrides_of_their_group(void **state)
{
    (void)state;
    run_processes(3, survivors, NULL);
}

static void refused(ct_group *group, void *arg)
{
    char fifo[200];
    const struct {
        const char *variable, *value, *words;
    } cases[] = {
        { "CT_ALL_REDUCE", "circle", "CT_ALL_REDUCE=circle|names no algorithm of all_reduce" },
        { "CT_BROADCAST", "shm:4x", "CT_BROADCAST|\"4x\"|is not a size; use a size such as 64K" },
        { "CT_TUNING", "/nowhere/at/all", "CT_TUNING|/nowhere/at/all|No such file" },
        { "CT_TUNING", "/proc", "CT_TUNING: /proc is not a regular file" },
        { "CT_TUNING", fifo,
          "CT_TUNING|fifo is not a regular file" }, /* init does not wait for a writer */
        { "CT_BARRIER", "shm,shm,shm,shm,shm,shm,shm,shm,shm", "CT_BARRIER|more than 8" },
    };

    (void)arg;
    (void)group;
    snprintf(fifo, sizeof fifo, "%s/fifo", scratch());
    EXPECT(mkfifo(fifo, 0600) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ct_store *store;
        ct_group *alone;

        setenv(cases[i].variable, cases[i].value, 1);
        EXPECT_OK(ct_store_hash(&store));
        EXPECT_ERROR(ct_create_group(store, 0, 1, NULL, &alone),
                     i == 2 ? CT_ERR_SYSTEM : CT_ERR_INVALID, cases[i].words);
        EXPECT_OK(ct_store_close(store));
        unsetenv(cases[i].variable);
    }
}

static void a_wrong_override_is_refused_with_its_text(void **state)
{
    (void)state;
    run_processes(1, refused, NULL);
}

/* ---- The order of reductions ---------------------------------------------------- */

/* Of 1e8, 1 and -1e8 in f32: with the outer two first the sum is 1, from left to right 0. */
static void sum_of_three(ct_group *group, void *wanted)
{
    const float values[] = { 1e8f, 1, -1e8f };
    float large[5000], sum = values[ct_rank(group)];

    for (int i = 0; i < 5000; i++)
        large[i] = sum;
    EXPECT_OK(ct_all_reduce(group, &sum, &sum, 1, CT_F32, CT_SUM, NULL));
    EXPECT(sum == *(float *)wanted);
    EXPECT_OK(ct_all_reduce(group, large, large, 5000, CT_F32, CT_SUM, NULL));
    EXPECT(large[0] == sum && large[4999] == sum);
}

static void the_order_is_by_hosts_or_by_ranks(void **state)
{
    float by_hosts = 1, by_ranks = 0;

    (void)state;
    setenv("CT_FAULT", "hosts:0.1.0", 1);
    run_ranks(3, sum_of_three, &by_hosts);
    run_told("rank", NULL, run_ranks, 3, sum_of_three, &by_ranks);
    unsetenv("CT_FAULT");
    run_told("rank", NULL, run_ranks, 3, sum_of_three, &by_ranks);
}

static void a_ring_of_floats(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    float values[999];

    (void)arg;
    EXPECT_ROW(group, 1 << 20, "ring");
    for (int i = 0; i < 999; i++)
        values[i] = (float)(i + ct_rank(group));
    EXPECT_OK(ct_all_reduce(group, values, values, 999, CT_F32, CT_SUM, NULL));
    for (int i = 0; i < 999; i++)
        if (!EXPECT(values[i] == (float)(p * i + p * (p - 1) / 2)))
            return;
}

static void who_wants_it_fast_gets_a_ring_for_floats(void **state)
{
    (void)state;
    run_told("fast", "ring", run_ranks, 4, a_ring_of_floats, NULL);
}

/* Nothing is added, and yet a bool comes out as one. */
static void a_ring_of_one(ct_group *group, void *arg)
{
    const unsigned char given[] = { 0, 1, 0x1c };
    unsigned char all[3] = { 9, 9, 9 };

    (void)arg;
    EXPECT_OK(ct_all_reduce(group, given, all, 3, CT_BOOL, CT_SUM, NULL));
    EXPECT(all[0] == 0 && all[1] == 1 && all[2] == 1);
}

static void a_bool_in_a_ring_of_one_becomes_0_or_1(void **state)
{
    (void)state;
    run_told("fast", "ring", run_ranks, 1, a_ring_of_one, NULL);
}

static void another_order(ct_group *group, void *arg)
{
    char path[256];
    ct_store *store;
    ct_group *own;

    (void)arg;
    snprintf(path, sizeof path, "%s/order", scratch());
    EXPECT_OK(ct_store_file(path, GROUP_TIMEOUT_MS, &store));
    setenv("CT_ORDER", ct_rank(group) ? "rank" : "nodes", 1);
    EXPECT_ERROR(ct_create_group(store, ct_rank(group), 2, NULL, &own), CT_ERR_MISMATCH,
                 "CT_ORDER is|\"rank\"|\"nodes\"");
    setenv("CT_ORDER", "slow", 1);
    EXPECT_OK(ct_store_close(store));
    EXPECT_OK(ct_store_hash(&store));
    EXPECT_ERROR(ct_create_group(store, 0, 1, NULL, &own), CT_ERR_INVALID,
                 "CT_ORDER=slow is not an order; use nodes, rank or fast");
    EXPECT_OK(ct_store_close(store));
}

static void ranks_with_other_orders_do_not_meet(void **state)
{
    (void)state;
    run_processes(2, another_order, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_is_a_number_with_a_unit),
        cmocka_unit_test(without_an_override_the_first_row_that_suits_is_taken),
        cmocka_unit_test(a_variable_names_rows_up_to_sizes),
        cmocka_unit_test(a_group_may_have_overrides_of_its_own),
        cmocka_unit_test(ranks_with_different_overrides_find_out),
        cmocka_unit_test(overrides_can_lie_in_a_file),
        cmocka_unit_test(a_wrong_override_is_refused_with_its_text),
        cmocka_unit_test(a_wrong_override_in_a_file_is_refused_with_its_line),
        cmocka_unit_test(survivors_keep_the_overrides_of_their_group),
        cmocka_unit_test(the_order_is_by_hosts_or_by_ranks),
        cmocka_unit_test(who_wants_it_fast_gets_a_ring_for_floats),
        cmocka_unit_test(a_bool_in_a_ring_of_one_becomes_0_or_1),
        cmocka_unit_test(ranks_with_other_orders_do_not_meet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
