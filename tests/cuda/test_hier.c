/* SPDX-License-Identifier: Apache-2.0 */
/* test_hier.c - several ranks on each of several GPUs that don't all reach each other: which calls
 * go by NCCL between one rank of each GPU, that they have the bits of the same calls on host
 * memory, and who hears of a death.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/ct_cuda.h"
#include "tests/collectives/marks.h"
#include "tests/cuda/device.h"

/* LARGE: a reduce has more than the scratch of a GPU, and a reduce_scatter of four ranks, too. */
enum { COUNT = 1777, LARGE = 5 << 20, CALLS = 3, PHASES = 12 };

static CUdeviceptr at(const void *memory)
{
    return (CUdeviceptr)(uintptr_t)memory;
}

/* ---- A run ------------------------------------------------------------------------------ */

struct run {
    const char *devices; /* a digit for each rank */
    const char *hosts;   /* as CT_FAULT has them; NULL: one, whose GPUs don't reach each other */
    const char *expected;
    const char *of_blocks; /* the same of an all_gather and a reduce_scatter */
    const char *of_averages;
    const char *variable, *value; /* of the environment; NULL: none */
};

static int open_own(const struct run *run, int rank)
{
    return EXPECT(device_open(run->devices[rank] - '0'));
}

static void with_settings(const struct run *run)
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
static int forget_settings(void **state)
{
    static const char *const all[] = { "FAKE_CUDA_DEVICES", "CT_LIBNCCL",     "CT_DEVICE",
                                       "CT_ORDER",          "CT_FAULT",       "FAKE_CUDA_PEERS",
                                       "CT_LINK",           "FAKE_NCCL_FAIL", "FAKE_CUDA_KERNELS" };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unsetenv(all[i]);
    return 0;
}

static void go(rank_body *body, const struct run *run)
{
    const int p = (int)strlen(run->devices);

    with_settings(run);
    run_processes(p, body, (void *)(uintptr_t)run);
    run_threads(p, body, (void *)(uintptr_t)run);
    forget_settings(NULL);
}

/* ---- Every operation --------------------------------------------------------------------- */

struct pick {
    int kind, root, in_place;
    ct_dtype dtype;
    ct_op op;
    size_t n;
};

enum { BROADCAST, REDUCE, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, GATHER, KINDS };

/* Which of p blocks of each buffer is where a call in place begins. */
static ct_status make(ct_group *g, const struct pick *c, char *send, char *recv)
{
    const int me = ct_rank(g);
    const size_t n = c->n, block = (size_t)me * n * ct_dtype_size(c->dtype);

    switch (c->kind) {
    case BROADCAST:
        return ct_broadcast(g, recv, n, c->dtype, c->root, NULL);
    case REDUCE:
        return ct_reduce(g, send, c->in_place ? send : recv, n, c->dtype, c->op, c->root, NULL);
    case ALL_REDUCE:
        return ct_all_reduce(g, send, c->in_place ? send : recv, n, c->dtype, c->op, NULL);
    case ALL_GATHER:
        return ct_all_gather(g, c->in_place ? recv + block : send, recv, n, c->dtype, NULL);
    case REDUCE_SCATTER:
        return ct_reduce_scatter(g, send, c->in_place ? send + block : recv, n, c->dtype, c->op,
                                 NULL);
    default:
        return ct_gather(g, send, recv, n, c->dtype, c->root, NULL);
    }
}

/* 1, 2 or 4: sums, products and averages over two or four ranks are exact. */
static void fill(char *to, size_t bytes, ct_dtype dtype, int me)
{
    for (size_t i = 0; i < bytes / ct_dtype_size(dtype); i++) {
        const int value = 1 << ((i * 7 + i / 11 + (size_t)me * 5) % 3);

        if (dtype == CT_F32)
            ((float *)(void *)to)[i] = (float)value;
        else if (dtype == CT_I32)
            ((int32_t *)(void *)to)[i] = value - 2;
        else
            to[i] = (char)(value * 31 + me);
    }
}

static const char *way_of(const struct run *run, const struct pick *c)
{
    if (c->kind == GATHER)
        return "staged";
    if (c->kind >= ALL_GATHER)
        return run->of_blocks;
    return c->op == CT_AVG && (c->kind == REDUCE || c->kind == ALL_REDUCE) ? run->of_averages
                                                                           : run->expected;
}

/* The same call on host memory and on the GPUs'; the buffers have `bytes` each. */
static void compare(ct_group *group, const struct run *run, const struct pick *c, char *host,
                    char *seen, char *there, size_t bytes)
{
    const int me = ct_rank(group);

    fill(host, 2 * bytes, c->dtype, me);
    if (device.cuMemcpyHtoD(at(there), host, 2 * bytes) != CUDA_SUCCESS)
        abort();
    EXPECT_OK(make(group, c, host, host + bytes));
    EXPECT_OK(make(group, c, there, there + bytes));
    if (strcmp(ct_last_algorithm(group), way_of(run, c)))
        expect_fails(__FILE__, __LINE__, "kind %d, op %d by %s", c->kind, c->op,
                     ct_last_algorithm(group));
    if (device.cuMemcpyDtoH(seen, at(there), 2 * bytes) != CUDA_SUCCESS)
        abort();
    if (memcmp(seen, host, 2 * bytes))
        expect_fails(__FILE__, __LINE__,
                     "kind %d, op %d, dtype %d, root %d, in place %d: other bits than on the host",
                     c->kind, c->op, c->dtype, c->root, c->in_place);
}

struct buffers {
    char *host, *seen, *there;
    size_t bytes;
};

static struct buffers take(size_t bytes)
{
    struct buffers b = { malloc(2 * bytes), malloc(2 * bytes), device_alloc(2 * bytes, 0), bytes };

    if (!b.host || !b.seen || !b.there)
        abort();
    return b;
}

static void give(ct_group *group, struct buffers b)
{
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(b.there);
    free(b.host);
    free(b.seen);
}

static void all_kinds(ct_group *group, void *arg)
{
    static const struct {
        ct_dtype dtype;
        ct_op op;
    } folds[] = {
        { CT_I32, CT_SUM }, { CT_I32, CT_PRODUCT }, { CT_U8, CT_MAX },
        { CT_F32, CT_SUM }, { CT_F32, CT_AVG },
    };
    const struct run *run = arg;
    const int p = ct_size(group);
    struct buffers b;

    if (!open_own(run, ct_rank(group)))
        return;
    b = take((size_t)p * COUNT * sizeof(float));
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t f = 0; f < sizeof folds / sizeof *folds; f++)
            for (int root = 0; root < p; root += 1 + (kind > REDUCE) * p)
                for (int in_place = 0; in_place < 2; in_place++) {
                    const struct pick c = { kind,           root,        in_place,
                                            folds[f].dtype, folds[f].op, f % 2 ? 13 : COUNT };

                    if (c.op != CT_AVG || p == 2 || p == 4)
                        compare(group, run, &c, b.host, b.seen, b.there, b.bytes);
                }
    give(group, b);
}

#define BY_HIER .expected = "hier", .of_blocks = "hier", .of_averages = "hier"

static void between_hosts_one_rank_of_each_gpu_talks(void **state)
{
    (void)state;
    go(all_kinds, &(struct run){ .devices = "0011", .hosts = "hosts:0.0.1.1", BY_HIER });
    go(all_kinds, &(struct run){ .devices = "001122", .hosts = "hosts:0.0.0.0.1.1", BY_HIER });
    go(all_kinds, &(struct run){ .devices = "0101",
                                 .hosts = "hosts:0.1.0.1",
                                 .expected = "hier",
                                 .of_blocks = "staged", /* which NCCL would have in its own order */
                                 .of_averages = "hier" });
    go(all_kinds, &(struct run){ .devices = "0111",
                                 .hosts = "hosts:0.1.1.1",
                                 .expected = "hier",
                                 .of_blocks = "staged",
                                 .of_averages = "staged" });
}

static void so_it_is_between_gpus_that_dont_reach_each_other(void **state)
{
    (void)state;
    go(all_kinds, &(struct run){ .devices = "0011", BY_HIER });
    go(all_kinds, &(struct run){ .devices = "00123", /* three that are alone */
                                 .expected = "hier",
                                 .of_blocks = "staged",
                                 .of_averages = "staged" });
}

static void large_ones(ct_group *group, void *arg)
{
    const struct run *run = arg;
    const int p = ct_size(group);
    struct buffers b;

    if (!open_own(run, ct_rank(group)))
        return;
    b = take((size_t)LARGE * sizeof(int32_t));
    compare(group, run,
            &(struct pick){ .kind = REDUCE, .root = 3, .dtype = CT_I32, .op = CT_SUM, .n = LARGE },
            b.host, b.seen, b.there, b.bytes);
    compare(group, run,
            &(struct pick){ .kind = REDUCE_SCATTER,
                            .in_place = 1,
                            .dtype = CT_I32,
                            .op = CT_SUM,
                            .n = (size_t)LARGE / (size_t)p },
            b.host, b.seen, b.there, b.bytes);
    give(group, b);
}

static void what_is_larger_than_the_scratch_goes_in_pieces(void **state)
{
    const struct run run = { .devices = "0011", .hosts = "hosts:0.0.1.1", BY_HIER };

    (void)state;
    with_settings(&run);
    run_processes(4, large_ones, (void *)(uintptr_t)&run);
}

/* ---- Which way ---------------------------------------------------------------------------- */

/* A sum of floats, and one of integers as is expected of blocks. */
static void sums(ct_group *group, void *arg)
{
    const struct run *run = arg;
    const int p = ct_size(group);
    const float one = 1;
    float sum = 0;
    void *there;

    if (!open_own(run, ct_rank(group)))
        return;
    there = device_alloc(sizeof one, 0);
    for (int i = 0; i < CALLS; i++) {
        EXPECT(device.cuMemcpyHtoD(at(there), &one, sizeof one) == CUDA_SUCCESS);
        EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_F32, CT_SUM, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), run->expected));
        EXPECT(device.cuMemcpyDtoH(&sum, at(there), sizeof sum) == CUDA_SUCCESS);
        EXPECT(sum == (float)p);
        EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_I32, CT_MAX, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), run->of_blocks));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

/* Behind a call that is not for NCCL. */
static void in_a_stream(ct_group *group, void *arg)
{
    const struct run *run = arg;
    const int p = ct_size(group);
    const float one = 1;
    float sum = 0;
    CUstream stream;
    float *there;

    if (!open_own(run, ct_rank(group))
        || !EXPECT(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS))
        return;
    there = device_alloc((size_t)(1 + p) * sizeof one, 0);
    EXPECT(device.cuMemcpyHtoD(at(there), &one, sizeof one) == CUDA_SUCCESS);
    EXPECT_OK(ct_set_stream(group, stream));
    EXPECT_OK(ct_gather(group, there, there + 1, 1, CT_F32, 0, NULL));
    for (int i = 0; i < 2; i++)
        EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_F32, CT_SUM, NULL));
    EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    EXPECT(!strcmp(ct_last_algorithm(group), "hier"));
    EXPECT(device.cuMemcpyDtoH(&sum, at(there), sizeof sum) == CUDA_SUCCESS);
    EXPECT(sum == (float)(p * p));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT(device.cuStreamDestroy(stream) == CUDA_SUCCESS);
    device_free(there);
}

static void it_begins_while_no_stream_waits(void **state)
{
    const struct run run = { .devices = "0011", .hosts = "hosts:0.0.1.1" };

    (void)state;
    with_settings(&run);
    run_processes(4, in_a_stream, (void *)(uintptr_t)&run);
}

static void what_cant_be_goes_another_way(void **state)
{
    static const char hosts[] = "hosts:0.0.1.1";

    (void)state;
    go(sums, &(struct run){ "0011", hosts, "staged", "hier", NULL, "CT_ORDER", "nodes" });
    go(sums, &(struct run){ "0011", hosts, "hier", "hier", NULL, "CT_ORDER", "fast" });
    go(sums, &(struct run){ "0011", hosts, "hier", "hier", NULL, "CT_DEVICE", "fused" });
    go(sums, &(struct run){ "0011", hosts, "hier", "hier", NULL, "CT_DEVICE", "nccl" });
    go(sums, &(struct run){ "0011", hosts, "staged", "staged", NULL, "CT_DEVICE", "staged" });
    go(sums, &(struct run){ "0011", hosts, "staged", "staged", NULL, "CT_LIBNCCL", "/nowhere" });
    go(sums, &(struct run){ "0011", hosts, "staged", "staged", NULL, "CT_LINK", "tcp" });
    go(sums, &(struct run){ "0011", hosts, "staged", "staged", NULL, "FAKE_NCCL_FAIL",
                            "ncclCommInitRankConfig:1:1" });
    /* one of the GPUs is none that libct's kernels are for */
    go(sums, &(struct run){ "0011", hosts, "staged", "staged", NULL, "FAKE_CUDA_KERNELS", "0" });
    /* one GPU, two containers */
    go(sums, &(struct run){ "0011", "hosts:0.1.1.0", "staged", "staged", NULL, NULL, NULL });
}

/* ---- Deaths ------------------------------------------------------------------------------- */

static ct_group *joined(void)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *group = NULL;
    ct_store *store = NULL;
    char path[200];

    options.timeout_ms = GROUP_TIMEOUT_MS;
    snprintf(path, sizeof path, "%s/hier", scratch());
    if (!EXPECT_OK(ct_store_file(path, GROUP_TIMEOUT_MS, &store)))
        return NULL;
    EXPECT_OK(ct_create_group(store, program_rank(), program_size(), &options, &group));
    EXPECT_OK(ct_store_close(store));
    return group;
}

static ct_status make_calls(ct_group *group, const struct run *run, int calls)
{
    ct_status status = CT_OK;
    void *there;

    if (!open_own(run, program_rank()))
        return CT_OK;
    there = device_alloc(COUNT * sizeof(float), 0);
    for (int i = 0; i < calls && status == CT_OK; i++)
        status = ct_all_reduce(group, there, there, COUNT, CT_F32, CT_SUM, NULL);
    return status; /* the memory may still be read by others: it goes with the process */
}

struct death {
    struct run run;
    int victim;
};

static int lives_or_dies(const struct death *death)
{
    ct_group *const group = joined();
    char who[16];

    if (!group)
        return 0;
    snprintf(who, sizeof who, "rank %d", death->victim);
    if (program_rank() == death->victim) {
        make_calls(group, &death->run, CALLS);
        raise(SIGKILL);
    }
    return EXPECT_ERROR(make_calls(group, &death->run, CALLS + 1), CT_ERR_PEER, who)
           && EXPECT_OK(ct_destroy_process_group(group));
}

/* In a process that the harness does not wait for. */
static void one_is_killed(ct_group *unused, void *arg)
{
    const struct death *death = arg;
    const pid_t pid = fork();
    int how = 0;

    (void)unused;
    if (pid == 0)
        _exit(!lives_or_dies(death));
    EXPECT(waitpid(pid, &how, 0) == pid);
    if (program_rank() == death->victim)
        EXPECT(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    else
        EXPECT(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static void kill_in(struct death *death, int call)
{
    char fault[120];

    for (int phase = 1; phase <= (call == 1 ? PHASES : PHASES / 2); phase++) {
        snprintf(fault, sizeof fault, "%s;rank:%d,op:all_reduce,call:%d,phase:%d,kill",
                 death->run.hosts, death->victim, call, phase);
        with_settings(&death->run);
        setenv("CT_FAULT", fault, 1);
        run_programs(4, one_is_killed, death);
    }
}

/* The executors of both GPUs and another rank, behind each hand-over. */
static void who_is_left_hears_of_a_death(void **state)
{
    static const int victims[] = { 0, 1, 2 };
    struct death death = { .run = { .devices = "0011", .hosts = "hosts:0.0.1.1" } };

    (void)state;
    for (size_t i = 0; i < sizeof victims / sizeof *victims; i++) {
        death.victim = victims[i];
        kill_in(&death, 1);
        kill_in(&death, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(between_hosts_one_rank_of_each_gpu_talks, forget_settings),
        cmocka_unit_test_teardown(so_it_is_between_gpus_that_dont_reach_each_other,
                                  forget_settings),
        cmocka_unit_test_teardown(what_is_larger_than_the_scratch_goes_in_pieces, forget_settings),
        cmocka_unit_test_teardown(it_begins_while_no_stream_waits, forget_settings),
        cmocka_unit_test_teardown(what_cant_be_goes_another_way, forget_settings),
        cmocka_unit_test_teardown(who_is_left_hears_of_a_death, forget_settings),
    };

    if (!device_is_fake())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without NCCL */
}

#endif
