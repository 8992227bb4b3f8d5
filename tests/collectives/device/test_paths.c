/* SPDX-License-Identifier: Apache-2.0 */
/* test_paths.c - which path a call on device memory takes: by an operation's override, by
 * CT_DEVICE, and in the words of CT_EXPLAIN. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "runtime/util/log.h"
#include "tests/cuda/numbers.h"

enum { LINES = 40 };

struct told {
    const char *gpus, *device, *all_reduce; /* of the environment; NULL: nothing */
    const char *few, *many, *broadcast;     /* the ways that calls go then */
};

static char lines[LINES][512];
static int said;

static void hear(void *arg, const char *line, size_t size)
{
    (void)arg;
    if (said < LINES && size < sizeof lines[0])
        memcpy(lines[said++], line, size);
}

static int was_said(const char *line)
{
    for (int i = 0; i < said; i++)
        if (strstr(lines[i], line))
            return 1;
    print_error("not said: %s", line);
    for (int i = 0; i < said; i++)
        print_error("said: %s", lines[i]);
    return 0;
}

static int went(const ct_group *group, const char *way)
{
    if (!strcmp(ct_last_algorithm(group), way))
        return 1;
    print_error("not %s: %s\n", way, ct_last_algorithm(group));
    return 0;
}

static void calls(ct_group *group, const struct told *told, int32_t *send, int32_t *recv)
{
    const int p = ct_size(group);

    for (int i = 0; i < 3; i++) {
        EXPECT_OK(ct_all_reduce(group, send, recv, 8, CT_I32, CT_SUM, NULL));
        EXPECT(went(group, told->few));
        EXPECT_OK(ct_all_reduce(group, send, recv, COUNT, CT_I32, CT_SUM, NULL));
        EXPECT(went(group, told->many));
        EXPECT_OK(ct_barrier(group, NULL));
        EXPECT(all_are(recv, p * (p + 1) / 2));
        EXPECT_OK(ct_broadcast(group, recv, COUNT, CT_I32, 0, NULL));
        EXPECT(went(group, told->broadcast));
    }
}

static void goes(ct_group *group, void *arg)
{
    const struct told *told = arg;
    const int me = ct_rank(group);
    int32_t *send, *recv;
    CUstream stream;

    if (!EXPECT(device_open(me % atoi(told->gpus)))
        || !EXPECT(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS))
        return;
    send = numbers(me + 1);
    recv = numbers(-1);
    calls(group, told, send, recv);
    EXPECT_OK(ct_set_stream(group, stream));
    EXPECT_OK(ct_all_reduce(group, send, recv, COUNT, CT_I32, CT_SUM, NULL));
    CU(device.cuStreamSynchronize(stream));
    EXPECT(went(group, told->many));
    EXPECT_OK(ct_barrier(group, NULL)); /* no rank uses it any more */
    device_free(send);
    device_free(recv);
}

static void tell(const struct told *told)
{
    setenv("FAKE_CUDA_DEVICES", told->gpus, 1);
    if (told->device)
        setenv("CT_DEVICE", told->device, 1);
    if (told->all_reduce)
        setenv("CT_ALL_REDUCE", told->all_reduce, 1);
}

static int forget(void **state)
{
    static const char *const all[] = { "FAKE_CUDA_DEVICES", "CT_DEVICE", "CT_ALL_REDUCE",
                                       "CT_HANDOVER", "CT_EXPLAIN" };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unsetenv(all[i]);
    return 0;
}

static void an_operation_takes_the_path_of_its_override_for_its_size(void **state)
{
    static const struct told runs[] = {
        { "1", NULL, "staged:1K,fused", "staged", "fused", "fused" },
        { "1", NULL, "fused:64,staged,ring", "fused", "staged", "fused" },
        { "1", "staged", "fused", "fused", "fused", "staged" },
        { "1", "staged", "staged:64", "staged", "staged", "staged" },
        { "3", NULL, "fused", "fused", "fused", "nccl" },
        { "3", "fused", "nccl:64,fused", "nccl", "fused", "fused" },
        { "3", "fused", "fused:64,nccl", "fused", "nccl", "fused" },
        { "3", "staged", "nccl", "nccl", "nccl", "staged" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        if (!device_is_fake() && strcmp(runs[i].gpus, "1") != 0) /* there may be one only */
            continue;
        tell(&runs[i]);
        run_processes(3, goes, (void *)(uintptr_t)&runs[i]);
        setenv("CT_HANDOVER", "stream", 1);
        run_processes(3, goes, (void *)(uintptr_t)&runs[i]);
        forget(NULL);
    }
}

/* A way is no must, and nothing that host memory asks for. */
static void a_path_that_cant_is_not_taken(void **state)
{
    static const struct told one_gpu = { "1", NULL, "nccl", "fused", "fused", "fused" };

    (void)state;
    tell(&one_gpu);
    run_processes(3, goes, (void *)(uintptr_t)&one_gpu);
    run_threads(2, goes, (void *)(uintptr_t)&one_gpu);
}

static void overrides_otherwise(ct_group *group, void *arg)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    const int both[] = { 0, 1 };
    int32_t *values;
    ct_group *own;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    options.parent = group;
    options.algorithms = ct_rank(group) ? "all_reduce=staged" : "all_reduce=fused";
    EXPECT_OK(ct_new_group_with(both, 2, &options, &own));
    values = numbers(1);
    EXPECT_ERROR(ct_all_reduce(own, values, values, COUNT, CT_I32, CT_SUM, NULL), CT_ERR_MISMATCH,
                 "all_reduce #1|were told different algorithms|CT_ALL_REDUCE");
    EXPECT_OK(ct_barrier(group, NULL)); /* no rank uses it any more */
    device_free(values);
}

static void ranks_with_different_path_overrides_find_out(void **state)
{
    (void)state;
    run_processes(2, overrides_otherwise, NULL);
}

static void explained(ct_group *group, void *arg)
{
    const struct told *told = arg;
    int32_t *send, *recv;

    if (!EXPECT(device_open(0)))
        return;
    said = 0;
    log_divert(hear, NULL);
    send = numbers(ct_rank(group) + 1);
    recv = numbers(-1);
    calls(group, told, send, recv);
    log_divert(NULL, NULL);
    device_free(send);
    device_free(recv);
    if (ct_rank(group) > 0)
        return;
    EXPECT(was_said("ct: all_reduce, 32 bytes per rank on a device, group created of 2 on 1 host: "
                    "staged, CT_ALL_REDUCE; shm_one_shot on the host\n"));
    EXPECT(
        was_said("bytes per rank on a device, group created of 2 on 1 host: fused, the first that "
                 "can; nccl can't; staged could\n"));
    EXPECT(was_said("ct: broadcast, "));
    EXPECT(was_said("fused, the first that can; nccl comes after it; staged could\n"));
    EXPECT(was_said("ct: barrier, 0 bytes per rank, group created of 2 on 1 host: shm, "));
}

static void ct_explain_says_which_path_and_why(void **state)
{
    static const struct told told = { "1", NULL, "staged:64,nccl", "staged", "fused", "fused" };

    (void)state;
    tell(&told);
    setenv("CT_EXPLAIN", "1", 1);
    run_processes(2, explained, (void *)(uintptr_t)&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_operation_takes_the_path_of_its_override_for_its_size, forget),
        cmocka_unit_test_teardown(a_path_that_cant_is_not_taken, forget),
        cmocka_unit_test_teardown(ranks_with_different_path_overrides_find_out, forget),
        cmocka_unit_test_teardown(ct_explain_says_which_path_and_why, forget),
    };

    setenv("CT_LIBNCCL", FAKE_NCCL, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA, or without NCCL's header */
}

#endif
