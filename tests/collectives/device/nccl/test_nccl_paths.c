/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl_paths.c - groups whose ranks each have a GPU: what keeps calls from NCCL, for good or
 * once, and that all ranks then take the same path.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <stdlib.h>
#include <string.h>

#include "collectives/core/algorithm_overrides.h"
#include "include/ct_cuda.h"
#include "tests/collectives/device/nccl/nccl.h"

/* A sum of floats goes as is expected, one of integers by NCCL, unless nothing does. */
static void sums(ct_group *group, void *arg)
{
    const struct run_of *run = arg;
    const int p = ct_size(group), me = ct_rank(group);
    void *there;

    if (!EXPECT(device_open(device_of(run, me))))
        return;
    there = device_alloc(COUNT * sizeof(float), 0);
    for (int i = 0; i < 3; i++) {
        const int for_good = !strcmp(run->expected, "nccl") || !strcmp(run->expected, "floats");

        put(there, CT_F32, me + 1);
        EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_F32, CT_SUM, NULL));
        if (!strcmp(run->expected, "floats"))
            EXPECT(!strcmp(ct_last_algorithm(group), "fused"));
        else
            EXPECT(!strcmp(ct_last_algorithm(group), run->expected));
        put(there, CT_I32, me + 1);
        EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), for_good ? "nccl" : run->expected));
        EXPECT(first_of(there) == p * (p + 1) / 2);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

static void go(const char *variable, const char *value, int devices, const char *expected)
{
    const struct setting settings[] = { { variable, value }, { NULL, NULL } };

    run_all(3, 3, sums,
            &(struct run_of){ .settings = settings, .expected = expected, .devices = devices });
}

static void an_order_that_the_user_gave_keeps_floats_from_nccl(void **state)
{
    (void)state;
    go(NULL, NULL, 3, "nccl");
    go("CT_ORDER", "fast", 3, "nccl");
    go("CT_ORDER", "nodes", 3, "floats");
    go("CT_ORDER", "rank", 3, "floats");
}

static void the_user_may_choose_the_path(void **state)
{
    static const struct setting ordered[] = { { "CT_DEVICE", "nccl" },
                                              { "CT_ORDER", "nodes" },
                                              { NULL, NULL } };
    static const struct setting apart[] = { { "CT_DEVICE", "fused" }, /* which it can't be */
                                            { "FAKE_CUDA_PEERS", "0-1,1-2" },
                                            { NULL, NULL } };

    (void)state;
    go("CT_DEVICE", "nccl", 3, "nccl");
    go("CT_DEVICE", "staged", 3, "staged");
    go("CT_DEVICE", "fused", 3, "fused");
    go("CT_DEVICE", "nccl", 1, "fused"); /* which it can't be */
    go("CT_DEVICE", "nccl", 2, "fused");
    run_all(3, 0, sums, &(struct run_of){ .settings = apart, .expected = "nccl", .devices = 3 });
    run_all(3, 0, sums,
            &(struct run_of){ .settings = ordered, .expected = "floats", .devices = 3 });
    run_all(1, 0, sums, &(struct run_of){ .expected = "fused", .devices = 1 });
    go(NULL, NULL, 2, "fused");
}

static void one_rank_overrides(ct_group *group, void *arg)
{
    if (ct_rank(group) == 1)
        group->algorithms.choices->device = PATH_STAGED; /* as CT_DEVICE of this rank alone would */
    sums(group, arg);
}

static void staged_on_one_rank_counts_for_all(void **state)
{
    (void)state;
    run_all(3, 0, one_rank_overrides, &(struct run_of){ .expected = "staged", .devices = 3 });
}

static void one_has_none(ct_group *group, void *arg)
{
    void *comm = NULL;

    if (ct_rank(group) == 2)
        setenv("CT_LIBNCCL", "/nowhere/libnccl.so.2", 1);
    sums(group, arg);
    EXPECT_ERROR(ct_nccl_comm(group, &comm), CT_ERR_UNSUPPORTED, "rank 2|/nowhere/libnccl.so.2");
}

/* Not rank 0, which only hears that another gave up. */
static void one_cant_join(ct_group *group, void *arg)
{
    void *comm = NULL;

    sums(group, arg);
    EXPECT_ERROR(ct_nccl_comm(group, &comm), CT_ERR_UNSUPPORTED, "rank 2|as it was told to");
}

static void one_has_another(ct_group *group, void *arg)
{
    if (ct_rank(group) == 0)
        setenv("FAKE_NCCL_VERSION", "22704", 1);
    sums(group, arg);
}

static void a_rank_that_cant_makes_all_take_another_path(void **state)
{
    static const struct setting fails[] = { { "FAKE_NCCL_FAIL", "ncclCommInitRankConfig:1:2" },
                                            { NULL, NULL } };
    static const struct setting hosts[] = { { "CT_FAULT", "hosts:0.1.0" }, { NULL, NULL } };

    (void)state;
    run_all(3, 0, one_has_none, &(struct run_of){ .expected = "fused", .devices = 3 });
    run_all(3, 0, one_has_none,
            &(struct run_of){ .settings = hosts, .expected = "staged", .devices = 3 });
    run_all(3, 0, one_has_another, &(struct run_of){ .expected = "fused", .devices = 3 });
    go("FAKE_NCCL_FAIL", "ncclGetUniqueId:1", 3, "fused");
    go("FAKE_NCCL_FAIL", "ncclCommInitRankConfig:1:0", 3, "fused");
    go("FAKE_NCCL_FAIL", "ncclCommInitRankConfig:1:1", 3, "fused");
    run_all(3, 3, one_cant_join,
            &(struct run_of){ .settings = fails, .expected = "fused", .devices = 3 });
}

/* Rank 0's buffers are a list; the others give one, which is the same call. */
static void alternates(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    void *lists[MAX_RANKS];
    int32_t *send, *recv;

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    send = device_alloc(COUNT * sizeof *send, 0);
    recv = device_alloc((size_t)p * COUNT * sizeof *recv, 0);
    put(send, CT_I32, me);
    for (int i = 0; i < p; i++)
        lists[i] = recv + (size_t)i * COUNT;
    for (int i = 0; i < 4; i++) {
        const int listed = i % 2 && me == 0;

        EXPECT_OK(listed ? ct_all_gather_list(group, send, lists, COUNT, CT_I32, NULL)
                         : ct_all_gather(group, send, recv, COUNT, CT_I32, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), i % 2 ? "fused" : "nccl"));
        for (int r = 0; r < p; r++)
            EXPECT(first_of(recv + (size_t)r * COUNT) == r);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(send);
    device_free(recv);
}

static void what_one_rank_cant_give_to_nccl_takes_another_path_once(void **state)
{
    (void)state;
    run_all(3, 3, alternates, &(struct run_of){ 0 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_order_that_the_user_gave_keeps_floats_from_nccl,
                                  forget_settings),
        cmocka_unit_test_teardown(the_user_may_choose_the_path, forget_settings),
        cmocka_unit_test_teardown(staged_on_one_rank_counts_for_all, forget_settings),
        cmocka_unit_test_teardown(a_rank_that_cant_makes_all_take_another_path, forget_settings),
        cmocka_unit_test_teardown(what_one_rank_cant_give_to_nccl_takes_another_path_once,
                                  forget_settings),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without NCCL */
}

#endif
