/* SPDX-License-Identifier: Apache-2.0 */
/* test_spanning.c - groups with several ranks on a GPU that span hosts, or GPUs of one host without
 * peer access: their calls on device memory are staged, and have the bits of the same
 * calls on host memory.  NCCL is there, but takes no two ranks with one GPU.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/cuda/calls.h"
#include "tests/cuda/deaths.h"
#include "tests/cuda/device.h"

enum { COUNT = 1777, CALLS = 3 };

struct run {
    const char *devices; /* a digit for each rank */
    const char *hosts;   /* as CT_FAULT has them; NULL: one, whose GPUs don't reach each other */
    const char *variable, *value; /* of the environment; NULL: none */
};

static void set(const struct run *run)
{
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("CT_LIBNCCL", FAKE_NCCL, 1);
    if (run->hosts)
        setenv("CT_FAULT", run->hosts, 1);
    else
        setenv("FAKE_CUDA_PEERS", "8-9", 1);
    if (run->variable)
        setenv(run->variable, run->value, 1);
}

/* Also behind a run that failed. */
static int unset(void **state)
{
    static const char *const all[] = { "FAKE_CUDA_DEVICES", "CT_LIBNCCL",       "CT_DEVICE",
                                       "CT_ORDER",          "CT_FAULT",         "CT_LINK",
                                       "FAKE_CUDA_PEERS",   "FAKE_CUDA_KERNELS" };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unsetenv(all[i]);
    return 0;
}

/* The body with the run, by processes and by threads. */
static void go(rank_body *body, const struct run *run)
{
    const int p = (int)strlen(run->devices);

    set(run);
    run_processes(p, body, (void *)(uintptr_t)run);
    run_threads(p, body, (void *)(uintptr_t)run);
    unset(NULL);
}

static int open_own(const struct run *run, int rank)
{
    return EXPECT(device_open(run->devices[rank] - '0'));
}

/* ---- Bits ---------------------------------------------------------------------------------- */

/* What sends and what receives lie one behind the other, `bytes` each. */
struct buffers {
    char *host, *seen, *there;
    size_t bytes;
};

static struct buffers take(size_t bytes)
{
    const struct buffers b = { malloc(2 * bytes), malloc(2 * bytes), device_alloc(2 * bytes, 0),
                               bytes };

    if (!b.host || !b.seen || !b.there)
        abort();
    return b;
}

static void give_back(ct_group *group, struct buffers b)
{
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(b.there);
    free(b.host);
    free(b.seen);
}

/* 1, 2 or 4: sums, products and averages over two or four ranks are exact.  What comes behind the
 * first PERIOD of them is the same again. */
enum { PERIOD = 33 };

static void fill(char *to, size_t bytes, ct_dtype dtype, int me)
{
    const size_t size = ct_dtype_size(dtype);

    for (size_t i = 0; i < PERIOD && i < bytes / size; i++) {
        const int value = 1 << ((i * 7 + i / 11 + (size_t)me * 5) % 3);

        if (dtype == CT_F32)
            ((float *)(void *)to)[i] = (float)value;
        else if (dtype == CT_I32)
            ((int32_t *)(void *)to)[i] = value - 2;
        else
            to[i] = (char)(value * 31 + me);
    }
    for (size_t done = PERIOD * size; done < bytes; done *= 2)
        memcpy(to + done, to, done < bytes - done ? done : bytes - done);
}

/* The same call on host memory and on the GPUs'. */
static void compare(ct_group *group, const struct pick *c, const struct buffers *b)
{
    const size_t bytes = b->bytes;

    fill(b->host, 2 * bytes, c->dtype, ct_rank(group));
    if (device_put(at(b->there), b->host, 2 * bytes) != CUDA_SUCCESS)
        abort();
    EXPECT_OK(make(group, c, b->host, b->host + bytes));
    EXPECT_OK(make(group, c, b->there, b->there + bytes));
    EXPECT(!strcmp(ct_last_algorithm(group), "staged"));
    if (device.cuMemcpyDtoH(b->seen, at(b->there), 2 * bytes) != CUDA_SUCCESS)
        abort();
    if (memcmp(b->seen, b->host, 2 * bytes))
        expect_fails(__FILE__, __LINE__,
                     "kind %d, op %d, dtype %d, root %d, in place %d: other bits than on the host",
                     c->kind, c->op, c->dtype, c->root, c->in_place);
}

static void compare_kind(ct_group *group, enum kind kind, const struct buffers *b)
{
    static const struct {
        ct_dtype dtype;
        ct_op op;
    } folds[] = {
        { CT_I32, CT_SUM }, { CT_I32, CT_PRODUCT }, { CT_U8, CT_MAX },
        { CT_F32, CT_SUM }, { CT_F32, CT_AVG },
    };
    const int p = ct_size(group);
    /* Where nothing is folded: both sizes, and odd ones. */
    const size_t picks = folds_in(kind) ? sizeof folds / sizeof *folds : 3;

    for (size_t f = 0; f < picks; f++)
        for (int root = 0; root < p; root += has_root(kind) ? 1 : p)
            for (int in_place = 0; in_place < 2; in_place++) {
                const struct pick c = { .kind = kind,
                                        .root = root,
                                        .in_place = in_place,
                                        .dtype = folds[f].dtype,
                                        .op = folds[f].op,
                                        .n = f % 2 ? 13 : COUNT };

                if (c.op != CT_AVG || p == 2 || p == 4)
                    compare(group, &c, b);
            }
}

static void all_kinds(ct_group *group, void *arg)
{
    struct buffers b;

    if (!open_own(arg, ct_rank(group)))
        return;
    b = take((size_t)ct_size(group) * COUNT * sizeof(float));
    for (int kind = 0; kind < CALL_KINDS; kind++)
        compare_kind(group, (enum kind)kind, &b);
    give_back(group, b);
}

static void between_hosts_every_call_has_the_bits_of_host_memory(void **state)
{
    (void)state;
    go(all_kinds, &(struct run){ .devices = "0011", .hosts = "hosts:0.0.1.1" });
    go(all_kinds, &(struct run){ .devices = "0101", .hosts = "hosts:0.1.0.1" });
    go(all_kinds, &(struct run){ .devices = "01210", .hosts = "hosts:0.1.1.1.0" });
}

static void between_gpus_without_peer_access_too(void **state)
{
    (void)state;
    go(all_kinds, &(struct run){ .devices = "0011" });
    go(all_kinds, &(struct run){ .devices = "00123" });
}

static void between_containers_with_one_gpu_too(void **state)
{
    (void)state;
    go(all_kinds, &(struct run){ .devices = "0011", .hosts = "hosts:0.1.1.0" });
}

static void lists(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    struct buffers b;

    if (!open_own(arg, ct_rank(group)))
        return;
    b = take((size_t)p * COUNT * sizeof(float));
    for (int kind = ALL_GATHER; kind < CALL_KINDS; kind++)
        for (int root = 0; root < p; root += has_root((enum kind)kind) ? 1 : p)
            compare(group,
                    &(struct pick){ .kind = (enum kind)kind,
                                    .root = root,
                                    .is_list = 1,
                                    .dtype = CT_I32,
                                    .op = CT_SUM,
                                    .n = COUNT },
                    &b);
    give_back(group, b);
}

static void blocks_may_lie_apart(void **state)
{
    (void)state;
    go(lists, &(struct run){ .devices = "0101", .hosts = "hosts:0.1.0.1" });
    go(lists, &(struct run){ .devices = "011" });
}

/* ---- Which path, and in a stream ------------------------------------------------------------ */

/* Of floats, and of integers, which NCCL would make in any order. */
static void sums(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    const float one = 1;
    float sum = 0;
    void *there;

    if (!open_own(arg, ct_rank(group)))
        return;
    there = device_alloc(sizeof one, 0);
    for (int i = 0; i < CALLS; i++) {
        EXPECT(device_put(at(there), &one, sizeof one) == CUDA_SUCCESS);
        EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_F32, CT_SUM, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), "staged"));
        EXPECT(device.cuMemcpyDtoH(&sum, at(there), sizeof sum) == CUDA_SUCCESS);
        EXPECT(sum == (float)p);
        EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_I32, CT_MAX, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), "staged"));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

static void they_are_staged_whatever_the_user_chose(void **state)
{
    static const char hosts[] = "hosts:0.0.1.1";

    (void)state;
    go(sums, &(struct run){ "0011", hosts, "CT_ORDER", "fast" });
    go(sums, &(struct run){ "0011", hosts, "CT_DEVICE", "fused" });
    go(sums, &(struct run){ "0011", hosts, "CT_DEVICE", "nccl" });
    go(sums, &(struct run){ "0011", hosts, "CT_DEVICE", "staged" });
    go(sums, &(struct run){ "0011", hosts, "CT_LINK", "tcp" });
    go(sums, &(struct run){ "0011", NULL, "CT_DEVICE", "nccl" });
    /* one of the GPUs is none that libct's kernels are for */
    go(sums, &(struct run){ "0011", hosts, "FAKE_CUDA_KERNELS", "0" });
}

static void in_a_stream(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    const float one = 1;
    float sum = 0;
    CUstream stream;
    float *there;

    if (!open_own(arg, ct_rank(group))
        || !EXPECT(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS))
        return;
    there = device_alloc(2 * sizeof one, 0);
    EXPECT(device_put(at(there), &one, sizeof one) == CUDA_SUCCESS);
    EXPECT_OK(ct_set_stream(group, stream));
    EXPECT_OK(ct_all_reduce(group, there + 1, there + 1, 1, CT_I16, CT_SUM, NULL));
    for (int i = 0; i < 2; i++)
        EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_F32, CT_SUM, NULL));
    EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    EXPECT(!strcmp(ct_last_algorithm(group), "staged"));
    EXPECT(device.cuMemcpyDtoH(&sum, at(there), sizeof sum) == CUDA_SUCCESS);
    EXPECT(sum == (float)(p * p));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT(device.cuStreamDestroy(stream) == CUDA_SUCCESS);
    device_free(there);
}

static void what_comes_later_in_the_stream_comes_after_them(void **state)
{
    const struct run run = { .devices = "0011", .hosts = "hosts:0.0.1.1" };

    (void)state;
    set(&run);
    run_processes(4, in_a_stream, (void *)(uintptr_t)&run);
}

/* ---- Deaths ---------------------------------------------------------------------------------- */

struct scene {
    const struct run *run;
    const struct pick *call;
    const char *operation; /* what CT_FAULT calls it */
};

static ct_status make_calls(ct_group *group, const void *arg, int calls)
{
    const struct scene *scene = arg;
    const size_t bytes = (size_t)program_size() * COUNT * sizeof(float);
    ct_status status = CT_OK;
    char *there;

    if (!open_own(scene->run, program_rank()))
        return CT_OK;
    there = device_alloc(2 * bytes, 0);
    for (int i = 0; i < calls && status == CT_OK; i++)
        status = make(group, scene->call, there, there + bytes);
    return status; /* the memory goes with the process */
}

/* Steps of a call behind which CT_FAULT can kill: in a group's first call, and in any other one. */
enum { STEPS_FIRST = 12, STEPS = 6 };

/* Of four ranks one after the other of the first three dies, behind each step of the group's first
 * or second such call. */
static void kill_each(const struct scene *scene, int in_call)
{
    char fault[120];

    for (int victim = 0; victim < 3; victim++)
        for (int step = 1; step <= (in_call == 1 ? STEPS_FIRST : STEPS); step++) {
            const struct death death = { make_calls, scene, CALLS, victim };

            snprintf(fault, sizeof fault, "%s;rank:%d,op:%s,call:%d,phase:%d,kill",
                     scene->run->hosts, victim, scene->operation, in_call, step);
            set(scene->run);
            setenv("CT_FAULT", fault, 1);
            one_of_them_dies(4, &death);
        }
}

static void the_ranks_that_are_left_report_a_death(void **state)
{
    static const struct run neighbours = { .devices = "0011", .hosts = "hosts:0.0.1.1" };
    static const struct run mixed = { .devices = "0101", .hosts = "hosts:0.1.0.1" };
    static const struct pick all_reduce = { ALL_REDUCE, .in_place = 1, .dtype = CT_F32,
                                            .op = CT_SUM, .n = COUNT };
    static const struct pick all_to_all = { ALL_TO_ALL, .dtype = CT_F32, .n = COUNT };

    (void)state;
    kill_each(&(struct scene){ &neighbours, &all_reduce, "all_reduce" }, 1);
    kill_each(&(struct scene){ &neighbours, &all_reduce, "all_reduce" }, 2);
    kill_each(&(struct scene){ &mixed, &all_to_all, "all_to_all" }, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(between_hosts_every_call_has_the_bits_of_host_memory, unset),
        cmocka_unit_test_teardown(between_gpus_without_peer_access_too, unset),
        cmocka_unit_test_teardown(between_containers_with_one_gpu_too, unset),
        cmocka_unit_test_teardown(blocks_may_lie_apart, unset),
        cmocka_unit_test_teardown(they_are_staged_whatever_the_user_chose, unset),
        cmocka_unit_test_teardown(what_comes_later_in_the_stream_comes_after_them, unset),
        cmocka_unit_test_teardown(the_ranks_that_are_left_report_a_death, unset),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without NCCL */
}

#endif
