/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl.c - groups whose ranks each have a GPU: which calls go by NCCL, that they have the bits
 * of the same calls on host memory, and what becomes of them when something is missing or ends.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/choices.h"
#include "include/ct_cuda.h"
#include "tests/collectives/marks.h"
#include "tests/cuda/device.h"

enum { COUNT = 777, SOON_MS = 300, MOST_BYTES = COUNT * 16 * 4 };

/* ---- The environment of a run --------------------------------------------------------- */

struct setting {
    const char *variable, *value;
};

/* What a run is given beside NCCL and GPUs for all; ends with {NULL}. */
static void with(const struct setting *settings, int on)
{
    for (; settings && settings->variable; settings++)
        if (on)
            setenv(settings->variable, settings->value, 1);
        else
            unsetenv(settings->variable);
}

struct run_of {
    const struct setting *settings;
    const char *expected; /* ct_last_algorithm() of what NCCL can do */
    int devices;
    int one_in;    /* all_operations(): so many, the others are left out; 0: none is */
    int no_memory; /* is shared by the ranks: what NCCL can't make goes through the host */
};

static int device_of(const struct run_of *run, int rank)
{
    return rank % run->devices;
}

static void run_all(int processes, int threads, rank_body *body, struct run_of *run)
{
    char devices[12];

    if (run->devices == 0)
        run->devices = processes > threads ? processes : threads;
    snprintf(devices, sizeof devices, "%d", run->devices);
    setenv("FAKE_CUDA_DEVICES", devices, 1);
    setenv("CT_LIBNCCL", FAKE_NCCL, 1);
    with(run->settings, 1);
    if (processes > 0)
        run_processes(processes, body, run);
    if (threads > 0)
        run_threads(threads, body, run);
    with(run->settings, 0);
}

/* Also behind a run that failed. */
static int forget_settings(void **state)
{
    static const char *const all[] = { "FAKE_CUDA_DEVICES", "CT_LIBNCCL",     "CT_DEVICE",
                                       "CT_ORDER",          "CT_FAULT",       "CT_LINK",
                                       "FAKE_NCCL_FAIL",    "FAKE_NCCL_LATE", "FAKE_NCCL_VERSION",
                                       "FAKE_CUDA_PEERS" };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unsetenv(all[i]);
    return 0;
}

/* ---- All operations ---------------------------------------------------------------------- */

enum kind {
    BROADCAST,
    REDUCE,
    ALL_REDUCE,
    REDUCE_SCATTER,
    GATHER,
    ALL_GATHER,
    SCATTER,
    ALL_TO_ALL,
    KINDS
};

struct pick {
    enum kind kind;
    ct_dtype dtype;
    ct_op op;
    int root;
    int in_place;
    size_t count;
};

static int folds(enum kind kind)
{
    return kind == REDUCE || kind == ALL_REDUCE || kind == REDUCE_SCATTER;
}

static size_t send_blocks(enum kind kind, int p)
{
    return kind == REDUCE_SCATTER || kind == SCATTER || kind == ALL_TO_ALL ? (size_t)p : 1;
}

static size_t recv_blocks(enum kind kind, int p)
{
    return kind == GATHER || kind == ALL_GATHER || kind == ALL_TO_ALL ? (size_t)p : 1;
}

static ct_status make(ct_group *g, const struct pick *c, char *send, char *recv)
{
    switch (c->kind) {
    case BROADCAST:
        return ct_broadcast(g, recv, c->count, c->dtype, c->root, NULL);
    case REDUCE:
        return ct_reduce(g, send, recv, c->count, c->dtype, c->op, c->root, NULL);
    case ALL_REDUCE:
        return ct_all_reduce(g, send, recv, c->count, c->dtype, c->op, NULL);
    case REDUCE_SCATTER:
        return ct_reduce_scatter(g, send, recv, c->count, c->dtype, c->op, NULL);
    case GATHER:
        return ct_gather(g, send, recv, c->count, c->dtype, c->root, NULL);
    case ALL_GATHER:
        return ct_all_gather(g, send, recv, c->count, c->dtype, NULL);
    case SCATTER:
        return ct_scatter(g, send, recv, c->count, c->dtype, c->root, NULL);
    default:
        return ct_all_to_all(g, send, recv, c->count, c->dtype, NULL);
    }
}

/* Where one buffer serves for both, by ct.h. */
static void lay_out(const struct pick *c, int me, char *send, char *recv, char **from, char **to)
{
    const size_t n = c->count * ct_dtype_size(c->dtype);

    *from = send;
    *to = recv;
    if (!c->in_place)
        return;
    if (c->kind == GATHER ? me == c->root : c->kind == ALL_GATHER)
        *from = recv + (size_t)me * n;
    else if (c->kind == SCATTER ? me == c->root : c->kind == REDUCE_SCATTER)
        *to = send + (size_t)me * n;
    else if (c->kind == ALL_REDUCE || c->kind == REDUCE || c->kind == ALL_TO_ALL)
        *to = send;
}

/* One and two, whose sums, products and averages over two or four are exact in every dtype. */
static void fill(const struct pick *c, int me, char *to, size_t count)
{
    static const unsigned short f16[] = { 0x3c00, 0x4000 }, bf16[] = { 0x3f80, 0x4000 };
    static const unsigned char e4m3[] = { 0x38, 0x40 }, e5m2[] = { 0x3c, 0x40 };
    const size_t size = ct_dtype_size(c->dtype);

    for (size_t i = 0; i < count; i++) {
        const int which = (int)((i * 7 + (size_t)me * 3 + i / 5) % 2);
        const float f = (float)(1 + which);
        const double d = 1 + which;
        const int64_t word = 1 + which;
        char *const here = to + i * size;

        switch ((int)c->dtype) {
        case CT_F16:
            memcpy(here, &f16[which], size);
            break;
        case CT_BF16:
            memcpy(here, &bf16[which], size);
            break;
        case CT_F8E4M3:
            memcpy(here, &e4m3[which], size);
            break;
        case CT_F8E5M2:
            memcpy(here, &e5m2[which], size);
            break;
        case CT_F32:
            memcpy(here, &f, sizeof f);
            break;
        case CT_C64:
            memcpy(here, &f, sizeof f);
            memcpy(here + sizeof f, &f, sizeof f);
            break;
        case CT_F64:
            memcpy(here, &d, sizeof d);
            break;
        case CT_C128:
            memcpy(here, &d, sizeof d);
            memcpy(here + sizeof d, &d, sizeof d);
            break;
        default:
            memcpy(here, &word, size); /* its low bytes */
        }
    }
}

static int is_integer(ct_dtype dtype)
{
    return dtype == CT_I8 || dtype == CT_U8 || dtype == CT_I32 || dtype == CT_U32 || dtype == CT_I64
           || dtype == CT_U64;
}

static int nccl_makes(const struct pick *c)
{
    const int floats = c->dtype == CT_F16 || c->dtype == CT_BF16 || c->dtype == CT_F32
                       || c->dtype == CT_F64,
              complexes = c->dtype == CT_C64 || c->dtype == CT_C128;

    if (c->kind == ALL_TO_ALL && c->in_place)
        return 0;
    if (!folds(c->kind))
        return 1;
    if (is_integer(c->dtype))
        return c->op == CT_SUM || c->op == CT_PRODUCT || c->op == CT_MIN || c->op == CT_MAX;
    return (floats && (c->op == CT_SUM || c->op == CT_PRODUCT || c->op == CT_AVG))
           || (complexes && (c->op == CT_SUM || c->op == CT_AVG));
}

static int is_defined(const struct pick *c)
{
    const int complexes = c->dtype == CT_C64 || c->dtype == CT_C128;

    if (!folds(c->kind))
        return c->op == CT_SUM; /* once */
    if (c->op == CT_AVG)
        return c->dtype != CT_BOOL;
    if (c->op == CT_MIN || c->op == CT_MAX)
        return !complexes;
    return c->op < CT_BAND || c->dtype <= CT_U64 || c->dtype == CT_BOOL;
}

struct buffers {
    char send[MOST_BYTES], recv[MOST_BYTES];
};

static const char *way_of(const struct run_of *run, const struct pick *c)
{
    if (nccl_makes(c))
        return "nccl";
    return run->no_memory ? "staged" : "fused";
}

/* The same call on the host and on the device, from the same bytes on. */
static void compare(ct_group *group, const struct run_of *run, const struct pick *c,
                    struct buffers *host, struct buffers *result, char *there)
{
    const int p = ct_size(group), me = ct_rank(group);
    const size_t element = ct_dtype_size(c->dtype);
    char *from, *to;

    memset(host, 0x5a, sizeof *host);
    fill(c, me, host->send, c->count * send_blocks(c->kind, p));
    fill(c, me + 1, host->recv, c->count * recv_blocks(c->kind, p));
    if (device_put(at(there), host, sizeof *host) != CUDA_SUCCESS)
        abort();
    lay_out(c, me, host->send, host->recv, &from, &to);
    EXPECT_OK(make(group, c, from, to));
    lay_out(c, me, there + offsetof(struct buffers, send), there + offsetof(struct buffers, recv),
            &from, &to);
    EXPECT_OK(make(group, c, from, to));
    if (strcmp(ct_last_algorithm(group), way_of(run, c)))
        expect_fails(__FILE__, __LINE__, "kind %d, dtype %d, op %d: by %s", c->kind, c->dtype,
                     c->op, ct_last_algorithm(group));
    if (device.cuMemcpyDtoH(result, at(there), sizeof *result) != CUDA_SUCCESS)
        abort();
    if (memcmp(result, host, sizeof *host))
        expect_fails(__FILE__, __LINE__,
                     "kind %d, dtype %d (%zu bytes), op %d, root %d%s: others "
                     "than on the host",
                     c->kind, c->dtype, element, c->op, c->root, c->in_place ? ", in place" : "");
}

static void all_operations(ct_group *group, void *arg)
{
    const struct run_of *run = arg;
    const int p = ct_size(group), averages = p == 2 || p == 4;
    struct buffers *host = malloc(sizeof *host), *result = malloc(sizeof *result);
    unsigned turn = 0;
    char *there;

    if (!EXPECT(host && result && device_open(device_of(run, ct_rank(group)))))
        return;
    there = device_alloc(sizeof *host, 0);
    for (int kind = 0; kind < KINDS; kind++)
        for (int dtype = CT_I8; dtype <= CT_F8E5M2; dtype++)
            for (int op = CT_SUM; op <= CT_BXOR; op++) {
                struct pick c = { .kind = (enum kind)kind, .dtype = (ct_dtype)dtype, .op = op };

                turn++;
                c.root = (int)turn % p;
                c.in_place = (int)(turn / 3) % 2;
                c.count = turn % 5 ? 1 + turn % 13 : COUNT;
                if (run->one_in && turn % (unsigned)run->one_in)
                    continue;
                if (is_defined(&c) && (averages || op != CT_AVG || is_integer(c.dtype)))
                    compare(group, run, &c, host, result, there);
            }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
    free(host);
    free(result);
}

static void each_operation_has_the_hosts_bits(void **state)
{
    (void)state;
    run_all(2, 0, all_operations, &(struct run_of){ 0 });
    run_all(3, 4, all_operations, &(struct run_of){ 0 });
    run_all(4, 0, all_operations, &(struct run_of){ .one_in = 3 });
}

static void also_between_hosts_and_over_sockets(void **state)
{
    static const struct setting hosts[] = { { "CT_FAULT", "hosts:0.1.0" }, { NULL, NULL } };
    static const struct setting sockets[] = { { "CT_LINK", "tcp" }, { NULL, NULL } };

    (void)state;
    run_all(3, 0, all_operations,
            &(struct run_of){ .settings = hosts, .one_in = 7, .no_memory = 1 });
    run_all(2, 3, all_operations,
            &(struct run_of){ .settings = sockets, .one_in = 7, .no_memory = 1 });
}

static void an_older_library_moves_by_sends_and_receives(void **state)
{
    static const struct setting old[] = { { "CT_LIBNCCL", OLD_FAKE_NCCL }, { NULL, NULL } };

    (void)state;
    run_all(3, 3, all_operations, &(struct run_of){ .settings = old, .one_in = 3 });
}

/* ---- Which way ------------------------------------------------------------------------------ */

/* `there` gets COUNT times value, in f32 or i32. */
static void put(void *there, ct_dtype dtype, int value)
{
    union {
        float f[COUNT];
        int32_t i[COUNT];
    } here;

    for (int i = 0; i < COUNT; i++)
        if (dtype == CT_F32)
            here.f[i] = (float)value;
        else
            here.i[i] = value;
    if (device_put(at(there), &here, sizeof here) != CUDA_SUCCESS)
        abort();
}

static int32_t first_of(const void *there)
{
    int32_t value = -1;

    if (device.cuMemcpyDtoH(&value, at(there), sizeof value) != CUDA_SUCCESS)
        abort();
    return value;
}

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

static void the_user_may_choose_the_way(void **state)
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
    go("CT_DEVICE", "nccl", 2, "hier");
    run_all(3, 0, sums, &(struct run_of){ .settings = apart, .expected = "nccl", .devices = 3 });
    run_all(3, 0, sums,
            &(struct run_of){ .settings = ordered, .expected = "floats", .devices = 3 });
    run_all(1, 0, sums, &(struct run_of){ .expected = "fused", .devices = 1 });
    go(NULL, NULL, 2, "fused");
}

static void one_wishes_otherwise(ct_group *group, void *arg)
{
    if (ct_rank(group) == 1)
        group->choices->device = WISH_STAGED; /* as CT_DEVICE of this rank alone would */
    sums(group, arg);
}

static void a_wish_of_one_rank_counts_for_all(void **state)
{
    (void)state;
    run_all(3, 0, one_wishes_otherwise, &(struct run_of){ .expected = "staged", .devices = 3 });
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

static void a_rank_that_cant_leads_all_another_way(void **state)
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

static void what_one_rank_cant_give_to_nccl_goes_another_way_once(void **state)
{
    (void)state;
    run_all(3, 3, alternates, &(struct run_of){ 0 });
}

static void flies(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    ct_work *works[4];
    void *there[4];

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    for (int i = 0; i < 4; i++) {
        there[i] = device_alloc(COUNT * sizeof(int32_t), 0);
        put(there[i], CT_I32, me + i);
    }
    for (int i = 0; i < 4; i++)
        EXPECT_OK(ct_all_reduce(group, there[i], there[i], COUNT, CT_I32, CT_SUM, &works[i]));
    for (int i = 3; i >= 0; i--)
        EXPECT_OK(ct_wait(works[i]));
    for (int i = 0; i < 4; i++) {
        EXPECT(first_of(there[i]) == p * (p - 1) / 2 + i * p);
        device_free(there[i]);
    }
}

static void asynchronous_calls_go_by_nccl_too(void **state)
{
    (void)state;
    run_all(3, 3, flies, &(struct run_of){ 0 });
}

/* Groups of the same ranks, called in another order on each from two threads' view: the calls of
 * one may not stand behind the other's. */
static void two_groups(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *other;
    ct_work *first, *second;
    void *a, *b;
    int ranks[MAX_RANKS];

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    for (int i = 0; i < p; i++)
        ranks[i] = i;
    options.parent = group;
    if (!EXPECT_OK(ct_new_group_with(ranks, p, &options, &other)))
        return;
    a = device_alloc(COUNT * sizeof(int32_t), 0);
    b = device_alloc(COUNT * sizeof(int32_t), 0);
    for (int i = 0; i < 5; i++) {
        put(a, CT_I32, 1);
        put(b, CT_I32, 2);
        if (me % 2) {
            EXPECT_OK(ct_all_reduce(group, a, a, COUNT, CT_I32, CT_SUM, &first));
            nap(5);
            EXPECT_OK(ct_all_reduce(other, b, b, COUNT, CT_I32, CT_SUM, &second));
        } else {
            EXPECT_OK(ct_all_reduce(other, b, b, COUNT, CT_I32, CT_SUM, &second));
            nap(5);
            EXPECT_OK(ct_all_reduce(group, a, a, COUNT, CT_I32, CT_SUM, &first));
        }
        EXPECT_OK(ct_wait(first));
        EXPECT_OK(ct_wait(second));
        EXPECT(first_of(a) == p && first_of(b) == 2 * p);
    }
    EXPECT_OK(ct_destroy_process_group(other));
    device_free(a);
    device_free(b);
}

static void two_groups_dont_stand_in_each_others_way(void **state)
{
    (void)state;
    run_all(3, 3, two_groups, &(struct run_of){ 0 });
}

/* A minimum of floats is not for NCCL, so the group's second call in the stream is the one that
 * joins; of other groups the first, with a work that a stream waits for. */
static void joins_late(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *others[2];
    int ranks[MAX_RANKS];
    CUstream stream;
    ct_work *work;
    void *there;

    if (!EXPECT(device_open(device_of(arg, ct_rank(group))))
        || !EXPECT(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS))
        return;
    for (int i = 0; i < p; i++)
        ranks[i] = i;
    options.parent = group;
    for (int i = 0; i < 2; i++)
        EXPECT_OK(ct_new_group_with(ranks, p, &options, &others[i]));
    there = device_alloc(COUNT * sizeof(int32_t), 0);
    put(there, CT_I32, 1);
    EXPECT_OK(ct_set_stream(group, stream));
    EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_F32, CT_MIN, NULL));
    for (int i = 0; i < 2; i++)
        EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    EXPECT(first_of(there) == p * p && !strcmp(ct_last_algorithm(group), "nccl"));
    EXPECT_OK(ct_all_reduce(others[0], there, there, COUNT, CT_I32, CT_SUM, &work));
    EXPECT_OK(ct_wait_on_stream(work, stream));
    EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS && first_of(there) == p * p * p);
    EXPECT_OK(ct_wait(work));
    EXPECT_OK(ct_coalesce_begin(others[1]));
    EXPECT_OK(ct_all_reduce(others[1], there, there, COUNT, CT_I32, CT_MAX, NULL));
    EXPECT_OK(ct_coalesce_end(others[1], &work));
    EXPECT_OK(ct_wait_on_stream(work, stream));
    EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS && first_of(there) == p * p * p);
    EXPECT_OK(ct_wait(work));
    for (int i = 0; i < 2; i++)
        EXPECT_OK(ct_destroy_process_group(others[i]));
    EXPECT(device.cuStreamDestroy(stream) == CUDA_SUCCESS);
    device_free(there);
}

static void nobody_joins_while_a_stream_waits(void **state)
{
    (void)state;
    run_all(2, 0, joins_late, &(struct run_of){ 0 });
}

/* ---- What goes wrong ----------------------------------------------------------------------------
 */

/* Rank 1's is late, and the victim ends while all are in it. */
static void one_ends(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    void *there;

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    there = device_alloc(COUNT * sizeof(int32_t), 0);
    if (me == 1) {
        ct_work *work;

        EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, &work));
        nap(SOON_MS);
        rank_leaves(); /* with the call in flight */
    }
    EXPECT_ERROR(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL), CT_ERR_PEER,
                 "rank 1");
    device_free(there);
}

static void who_waits_in_nccl_hears_of_a_death(void **state)
{
    static const struct setting late[] = { { "FAKE_NCCL_LATE", "1:30000" }, { NULL, NULL } };
    static const struct setting far[] = { { "FAKE_NCCL_LATE", "1:30000" },
                                          { "CT_FAULT", "hosts:0.1.0" },
                                          { NULL, NULL } };
    static const struct setting sockets[] = { { "FAKE_NCCL_LATE", "1:30000" },
                                              { "CT_LINK", "tcp" },
                                              { NULL, NULL } };

    (void)state;
    run_all(3, 0, one_ends, &(struct run_of){ .settings = late });
    run_all(3, 0, one_ends, &(struct run_of){ .settings = far });
    run_all(3, 0, one_ends, &(struct run_of){ .settings = sockets });
}

static void one_never_ends(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    void *there;

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    there = device_alloc(COUNT * sizeof(int32_t), 0);
    /* In it all come, however busy the machine is, and the communicator is made. */
    EXPECT_OK(ct_set_timeout(group, me == 0 ? 10 * SOON_MS : GROUP_TIMEOUT_MS));
    EXPECT_ERROR(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL),
                 me == 0 ? CT_ERR_TIMEOUT : CT_ERR_PEER, me == 0 ? "NCCL" : "rank 0");
    device_free(there); /* nothing uses it any more */
}

static void a_deadline_ends_it_on_all_ranks(void **state)
{
    static const struct setting late[] = { { "FAKE_NCCL_LATE", "1:30000" }, { NULL, NULL } };

    (void)state;
    run_all(3, 3, one_never_ends, &(struct run_of){ .settings = late });
}

static void one_fails(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_status status = CT_OK;
    void *there;

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    there = device_alloc(COUNT * sizeof(int32_t), 0);
    put(there, CT_I32, 0);
    for (int i = 0; i < 3 && status == CT_OK; i++)
        status = ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL);
    EXPECT_ERROR(status, me == 2 ? CT_ERR_NCCL : CT_ERR_PEER, "all_reduce|as it was told to");
    device_free(there);
}

static void an_error_of_nccl_is_told_in_its_words(void **state)
{
    static const struct setting fails[] = { { "FAKE_NCCL_FAIL", "ncclAllReduce:2:2" },
                                            { NULL, NULL } };

    (void)state;
    run_all(3, 3, one_fails, &(struct run_of){ .settings = fails });
}

/* ---- The communicator ---------------------------------------------------------------- */

/* As a program would, which links NCCL. */
static void uses_it(ncclComm_t comm, int p, void *there)
{
    void *const library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    __typeof__(ncclAllReduce) *all_reduce;
    __typeof__(ncclCommGetAsyncError) *how_is_it;
    ncclResult_t state;

    if (!EXPECT(library))
        return;
    *(void **)&all_reduce = dlsym(library, "ncclAllReduce");
    *(void **)&how_is_it = dlsym(library, "ncclCommGetAsyncError");
    put(there, CT_I32, 3);
    state = all_reduce(there, there, COUNT, ncclInt32, ncclSum, comm, NULL);
    while (state == ncclInProgress)
        EXPECT(how_is_it(comm, &state) == ncclSuccess);
    EXPECT(state == ncclSuccess && device.cuStreamSynchronize(NULL) == CUDA_SUCCESS);
    EXPECT(first_of(there) == 3 * p);
    dlclose(library);
}

static void gets_it(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    void *comm = NULL, *again = NULL, *there;

    EXPECT_ERROR(ct_nccl_comm(group, NULL), CT_ERR_INVALID, "ct_nccl_comm");
    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    there = device_alloc(COUNT * sizeof(int32_t), 0);
    EXPECT_OK(ct_nccl_comm(group, &comm));
    EXPECT_OK(ct_nccl_comm(group, &again));
    EXPECT(comm != NULL && comm == again);
    uses_it(comm, p, there);
    put(there, CT_I32, 1);
    EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT(first_of(there) == p && !strcmp(ct_last_algorithm(group), p == 1 ? "fused" : "nccl"));
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

/* Rank 0 has no context yet: nobody gets it, and the group is as sound as before. */
static void gets_it_later(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    void *comm = NULL;

    if (me != 0)
        EXPECT(device_open(device_of(arg, me)));
    EXPECT_ERROR(ct_nccl_comm(group, &comm), CT_ERR_UNSUPPORTED,
                 me == 0 ? "has not loaded a CUDA driver" : "rank 0");
    EXPECT(comm == NULL);
    gets_it(group, arg);
}

/* Behind a call that is fused, with no context: it is that of the buffers' GPU. */
static void gets_it_without_context(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    void *comm = NULL, *there;

    if (!EXPECT(device_open(device_of(arg, me))))
        return;
    there = device_alloc(COUNT * sizeof(float), 0);
    EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_F32, CT_MIN, NULL));
    EXPECT(!strcmp(ct_last_algorithm(group), "fused"));
    EXPECT(me != 1 || device.cuCtxSetCurrent(NULL) == CUDA_SUCCESS);
    EXPECT_OK(ct_nccl_comm(group, &comm));
    EXPECT(device_open(device_of(arg, me)));
    uses_it(comm, ct_size(group), there);
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

static void does_not_get_it(ct_group *group, void *arg)
{
    void *comm = NULL;
    int32_t here = 1;

    EXPECT(device_open(device_of(arg, ct_rank(group))));
    for (int i = 0; i < 2; i++)
        EXPECT_ERROR(ct_nccl_comm(group, &comm), CT_ERR_UNSUPPORTED, "ct_nccl_comm|same GPU");
    EXPECT(comm == NULL);
    EXPECT_OK(ct_all_reduce(group, &here, &here, 1, CT_I32, CT_SUM, NULL));
    EXPECT(here == ct_size(group));
}

static void a_program_gets_the_groups_communicator(void **state)
{
    static const struct setting hosts[] = { { "CT_FAULT", "hosts:0.1.0" }, { NULL, NULL } };

    (void)state;
    run_all(3, 0, gets_it_later, &(struct run_of){ 0 });
    run_all(3, 0, gets_it, &(struct run_of){ .settings = hosts });
    run_all(0, 3, gets_it, &(struct run_of){ 0 });
    run_all(1, 0, gets_it, &(struct run_of){ 0 });
    run_all(3, 3, gets_it_without_context, &(struct run_of){ 0 });
    run_all(3, 3, does_not_get_it, &(struct run_of){ .devices = 2 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_operation_has_the_hosts_bits, forget_settings),
        cmocka_unit_test_teardown(also_between_hosts_and_over_sockets, forget_settings),
        cmocka_unit_test_teardown(an_older_library_moves_by_sends_and_receives, forget_settings),
        cmocka_unit_test_teardown(an_order_that_the_user_gave_keeps_floats_from_nccl,
                                  forget_settings),
        cmocka_unit_test_teardown(the_user_may_choose_the_way, forget_settings),
        cmocka_unit_test_teardown(a_wish_of_one_rank_counts_for_all, forget_settings),
        cmocka_unit_test_teardown(a_rank_that_cant_leads_all_another_way, forget_settings),
        cmocka_unit_test_teardown(what_one_rank_cant_give_to_nccl_goes_another_way_once,
                                  forget_settings),
        cmocka_unit_test_teardown(asynchronous_calls_go_by_nccl_too, forget_settings),
        cmocka_unit_test_teardown(two_groups_dont_stand_in_each_others_way, forget_settings),
        cmocka_unit_test_teardown(nobody_joins_while_a_stream_waits, forget_settings),
        cmocka_unit_test_teardown(who_waits_in_nccl_hears_of_a_death, forget_settings),
        cmocka_unit_test_teardown(a_deadline_ends_it_on_all_ranks, forget_settings),
        cmocka_unit_test_teardown(an_error_of_nccl_is_told_in_its_words, forget_settings),
        cmocka_unit_test_teardown(a_program_gets_the_groups_communicator, forget_settings),
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
