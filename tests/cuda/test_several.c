/* SPDX-License-Identifier: Apache-2.0 */
/* test_several.c - the GPUs of one host, with one rank on each or several: which way calls go, that
 * they have the bits of the same calls on host memory, that no GPU is believed to reach another,
 * and who hears of a death.
 *
 * Runs against tests/fake/ alone. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/ct_cuda.h"
#include "runtime/log.h"
#include "tests/collectives/marks.h"
#include "tests/cuda/deaths.h"
#include "tests/cuda/device.h"

/* LARGE: bytes of so many floats are cut for four GPUs, and not at equal places. */
enum { SMALL = 777, LARGE = 50021, SAID = 4096, CALLS = 3, MOST_PHASES = 4 };

/* ---- A run ------------------------------------------------------------------------------ */

struct run {
    const char *devices; /* a digit for each rank */
    const char *expected;
    const char *variable, *value; /* of the environment; NULL: none */
    const char *said;             /* words of what rank 0 logs once, apart by '|'; NULL: nothing */
};

static int open_own(const struct run *run, int rank)
{
    return EXPECT(device_open(run->devices[rank] - '0'));
}

static void with_settings(const struct run *run)
{
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("CT_LIBNCCL", "/nowhere/libnccl.so.2", 1);
    setenv("CT_LOG", "info", 1);
    if (run->variable)
        setenv(run->variable, run->value, 1);
}

/* Also behind a run that failed. */
static int forget_settings(void **state)
{
    static const char *const all[] = {
        "FAKE_CUDA_DEVICES",   "CT_LIBNCCL", "CT_LOG",
        "CT_DEVICE",           "CT_ORDER",   "FAKE_CUDA_PEERS",
        "FAKE_CUDA_FAIL",      "CT_FAULT",   "FAKE_CUDA_PEERS_CORRUPT",
        "CUDA_VISIBLE_DEVICES"
    };

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

/* ---- What is logged ----------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    char text[SAID];
    size_t used;
} said = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void hear(void *unused, const char *line, size_t size)
{
    (void)unused;
    pthread_mutex_lock(&said.lock);
    if (strstr(line, "can't be fused") && said.used + size < SAID) {
        memcpy(said.text + said.used, line, size);
        said.used += size;
    }
    pthread_mutex_unlock(&said.lock);
}

static int lines(const char *text)
{
    int count = 0;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* Threads of one process say it once, together. */
static void check_said(const struct run *run, int me)
{
    char words[200], *rest = words, *word;

    pthread_mutex_lock(&said.lock);
    if (me == 0)
        EXPECT(lines(said.text) == (run->said != NULL));
    if (me == 0 && run->said) {
        snprintf(words, sizeof words, "%s", run->said);
        while ((word = strsep(&rest, "|")))
            if (!strstr(said.text, word))
                expect_fails(__FILE__, __LINE__, "\"%s\" is not in: %s", word, said.text);
    }
    pthread_mutex_unlock(&said.lock);
}

/* ---- Every operation --------------------------------------------------------------------- */

struct buffers {
    float *send, *recv;
    size_t floats; /* in each */
};

/* Numbers whose sum depends on the order. */
static void fill(struct buffers b, int me)
{
    uint32_t state = 2463534242u + (uint32_t)me * 7919u;

    for (size_t i = 0; i < b.floats; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        b.send[i] = (float)(int32_t)state * (state % 3 ? 1e-3f : 1e-9f);
        b.recv[i] = -(float)me;
    }
}

enum { KINDS = 11 };

static ct_status make(ct_group *g, int kind, float *send, float *recv, size_t n)
{
    const int p = ct_size(g), me = ct_rank(g), root = p - 1;

    switch (kind) {
    case 0:
        return ct_broadcast(g, send, n, CT_F32, root, NULL);
    case 1:
        return ct_reduce(g, send, recv, n, CT_F32, CT_SUM, root, NULL);
    case 2:
        return ct_all_reduce(g, send, recv, n, CT_F32, CT_SUM, NULL);
    case 3:
        return ct_all_reduce(g, send, send, n, CT_F32, CT_AVG, NULL);
    case 4:
        return ct_reduce_scatter(g, send, recv, n, CT_F32, CT_SUM, NULL);
    case 5:
        return ct_reduce_scatter(g, send, send + (size_t)me * n, n, CT_F32, CT_PRODUCT, NULL);
    case 6:
        return ct_gather(g, send, recv, n, CT_F32, root, NULL);
    case 7:
        return ct_all_gather(g, send, recv, n, CT_F32, NULL);
    case 8:
        return ct_all_gather(g, recv + (size_t)me * n, recv, n, CT_F32, NULL);
    case 9:
        return ct_scatter(g, send, recv, n, CT_F32, 0, NULL);
    default:
        return ct_all_to_all(g, send, recv, n, CT_F32, NULL);
    }
}

static struct buffers on_host(size_t floats)
{
    struct buffers b = { malloc(floats * sizeof(float)), malloc(floats * sizeof(float)), floats };

    if (!b.send || !b.recv)
        abort();
    return b;
}

static void put(void *there, const float *here, size_t floats)
{
    if (device_put(at(there), here, floats * sizeof *here) != CUDA_SUCCESS)
        abort();
}

static int is_there(const void *there, const float *here, size_t floats)
{
    float *seen = malloc(floats * sizeof *seen);
    int same;

    if (!seen || device.cuMemcpyDtoH(seen, at(there), floats * sizeof *seen) != CUDA_SUCCESS)
        abort();
    same = !memcmp(seen, here, floats * sizeof *seen);
    free(seen);
    return same;
}

/* The same call on host memory and on the GPUs'. */
static void compare(ct_group *group, const struct run *run, int kind, size_t n, struct buffers host,
                    struct buffers there)
{
    const int me = ct_rank(group);

    host.floats = (size_t)ct_size(group) * n;
    fill(host, me);
    put(there.send, host.send, host.floats);
    put(there.recv, host.recv, host.floats);
    EXPECT_OK(make(group, kind, host.send, host.recv, n));
    EXPECT_OK(make(group, kind, there.send, there.recv, n));
    if (strcmp(ct_last_algorithm(group), run->expected))
        expect_fails(__FILE__, __LINE__, "kind %d by %s", kind, ct_last_algorithm(group));
    if (!is_there(there.send, host.send, host.floats)
        || !is_there(there.recv, host.recv, host.floats))
        expect_fails(__FILE__, __LINE__, "kind %d of %zu: other bits than on the host", kind, n);
}

static void all_kinds(ct_group *group, void *arg)
{
    const struct run *run = arg;
    const size_t floats = (size_t)ct_size(group) * LARGE;
    struct buffers host = on_host(floats), there = { .floats = floats };

    if (!open_own(run, ct_rank(group)))
        return;
    there.send = device_alloc(floats * sizeof(float), 0);
    there.recv = device_alloc(floats * sizeof(float), 0);
    for (int kind = 0; kind < KINDS; kind++) {
        compare(group, run, kind, SMALL, host, there);
        compare(group, run, kind, LARGE, host, there);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    check_said(run, ct_rank(group));
    device_free(there.send);
    device_free(there.recv);
    free(host.send);
    free(host.recv);
}

static void the_gpus_of_a_host_share_a_call(void **state)
{
    static const char *const layouts[] = { "01", "0011", "0001", "0123", "3012", "01010", "2" };

    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        go(all_kinds, &(struct run){ .devices = layouts[i], .expected = "fused" });
}

static void gpus_that_dont_reach_each_other_go_another_way(void **state)
{
    (void)state;
    go(all_kinds, &(struct run){ .devices = "0012",
                                 .expected = "staged",
                                 .variable = "FAKE_CUDA_PEERS",
                                 .value = "0-1,0-2",
                                 .said = "rank 2 on GPU-|rank 3 on GPU-|01 and |02: " });
    go(all_kinds, &(struct run){ .devices = "0123",
                                 .expected = "fused",
                                 .variable = "FAKE_CUDA_PEERS",
                                 .value = "0-1,0-2,0-3,1-2,1-3,2-3" });
}

static void bytes_that_arrive_wrong_are_seen_before_a_call_has_them(void **state)
{
    (void)state;
    go(all_kinds, &(struct run){ .devices = "0122",
                                 .expected = "staged",
                                 .variable = "FAKE_CUDA_PEERS_CORRUPT",
                                 .value = "1-2",
                                 .said = "rank 1 on GPU-|rank 2 on GPU-|other bytes arrived" });
    go(all_kinds, &(struct run){ .devices = "0022", /* of GPUs that take no part */
                                 .expected = "fused",
                                 .variable = "FAKE_CUDA_PEERS_CORRUPT",
                                 .value = "0-1,2-3" });
}

/* ---- Which GPU -------------------------------------------------------------------------- */

/* Rank 1's buffer is for one call where rank 0's is. */
static void moves(ct_group *group, void *arg)
{
    const struct run *run = arg;
    const int me = ct_rank(group);
    const float one = 1;
    void *first, *second;

    if (!open_own(run, me))
        return;
    first = device_alloc(sizeof(float), 0);
    if (!EXPECT(device_open(0)))
        return;
    second = device_alloc(sizeof(float), 0);
    for (int i = 0; i < 6; i++) {
        void *const there = i % 2 ? second : first;
        const float sum = (float)ct_size(group);

        put(there, &one, 1);
        EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_F32, CT_SUM, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), i % 2 ? "staged" : "fused"));
        EXPECT(is_there(there, &sum, 1));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(first);
    device_free(second);
}

static void a_buffer_on_another_gpu_than_at_first_goes_another_way_once(void **state)
{
    (void)state;
    go(moves, &(struct run){ .devices = "011" });
}

/* A process that sees its own GPU alone can't map another's memory. */
static void sees_its_own(ct_group *group, void *arg)
{
    const char *devices = arg;
    const int me = ct_rank(group);
    const char own[2] = { devices[me], 0 };
    const float one = 1, sum = (float)ct_size(group);
    void *there;

    setenv("CUDA_VISIBLE_DEVICES", own, 1);
    if (!EXPECT(device_open(0)))
        return;
    there = device_alloc(sizeof(float), 0);
    put(there, &one, 1);
    EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_F32, CT_SUM, NULL));
    EXPECT(!strcmp(ct_last_algorithm(group), strchr(devices, '1') ? "staged" : "fused"));
    EXPECT(is_there(there, &sum, 1));
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

static void who_sees_one_gpu_reaches_no_other(void **state)
{
    (void)state;
    with_settings(&(struct run){ 0 });
    run_processes(3, sees_its_own, (void *)(uintptr_t) "001");
    run_processes(3, sees_its_own, (void *)(uintptr_t) "222");
}

/* The GPU of rank 2 is ready to work, and that of rank 0 can't map a buffer; in place, a part would
 * be too much. */
static void cant_map(ct_group *group, void *arg)
{
    const struct run *run = arg;
    const int me = ct_rank(group);
    struct buffers here = on_host(LARGE);
    const float sum = (float)ct_size(group);
    void *there;

    if (me == 0)
        setenv("FAKE_CUDA_FAIL", "cuIpcOpenMemHandle:3", 1); /* the first is the proof's */
    if (!open_own(run, me))
        return;
    there = device_alloc(LARGE * sizeof(float), 0);
    for (int i = 0; i < 3; i++) {
        for (size_t j = 0; j < LARGE; j++)
            here.send[j] = 1;
        put(there, here.send, LARGE);
        EXPECT_OK(ct_all_reduce(group, there, there, LARGE, CT_F32, CT_SUM, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), "staged"));
        for (size_t j = 0; j < LARGE; j++)
            here.send[j] = sum;
        EXPECT(is_there(there, here.send, LARGE));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
    free(here.send);
    free(here.recv);
}

static void what_one_gpu_cant_map_none_begins(void **state)
{
    (void)state;
    with_settings(&(struct run){ 0 });
    run_processes(4, cant_map, &(struct run){ .devices = "0011" });
}

/* ---- What goes wrong ---------------------------------------------------------------------- */

static void fails_on_one(ct_group *group, void *arg)
{
    const struct run *run = arg;
    const int me = ct_rank(group);
    const float one = 1;
    ct_status status = CT_OK;
    void *there;

    if (me == 2)
        setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:5", 1); /* two are of the proof */
    if (!open_own(run, me))
        return;
    there = device_alloc(LARGE * sizeof(float), 0);
    put(there, &one, 1);
    for (int i = 0; i < 8 && status == CT_OK; i++)
        status = ct_all_reduce(group, there, there, LARGE, CT_F32, CT_SUM, NULL);
    EXPECT_STATUS(status, me == 2 ? CT_ERR_CUDA : CT_ERR_PEER);
    all_marked(group, "seen"); /* nobody frees what others may still write to */
    device_free(there);
}

static void a_gpu_that_fails_at_its_part_breaks_the_group(void **state)
{
    (void)state;
    with_settings(&(struct run){ 0 });
    run_processes(4, fails_on_one, &(struct run){ .devices = "0011" });
}

/* ---- Deaths --------------------------------------------------------------------------- */

static ct_status make_calls(ct_group *group, const void *run, int calls)
{
    ct_status status = CT_OK;
    void *there;

    if (!open_own(run, program_rank()))
        return CT_OK;
    there = device_alloc(LARGE * sizeof(float), 0);
    for (int i = 0; i < calls && status == CT_OK; i++)
        status = ct_all_reduce(group, there, there, LARGE, CT_F32, CT_SUM, NULL);
    return status; /* the memory may still be read by others: it goes with the process */
}

/* Behind each hand-over of the first call, which tries what the GPUs reach, and of a later one. */
static void who_is_left_hears_of_a_death(void **state)
{
    const struct run run = { .devices = "0011" };
    struct death death = { .make = make_calls, .arg = &run, .calls = CALLS };
    char fault[80];

    (void)state;
    with_settings(&run);
    for (death.victim = 0; death.victim < 4; death.victim++)
        for (int call = 1; call <= 2; call++)
            for (int phase = 1; phase <= (call == 1 ? 2 * MOST_PHASES : MOST_PHASES); phase++) {
                snprintf(fault, sizeof fault, "rank:%d,op:all_reduce,call:%d,phase:%d,kill",
                         death.victim, call, phase);
                setenv("CT_FAULT", fault, 1);
                one_of_them_dies(4, &death);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_gpus_of_a_host_share_a_call, forget_settings),
        cmocka_unit_test_teardown(gpus_that_dont_reach_each_other_go_another_way, forget_settings),
        cmocka_unit_test_teardown(bytes_that_arrive_wrong_are_seen_before_a_call_has_them,
                                  forget_settings),
        cmocka_unit_test_teardown(a_buffer_on_another_gpu_than_at_first_goes_another_way_once,
                                  forget_settings),
        cmocka_unit_test_teardown(who_sees_one_gpu_reaches_no_other, forget_settings),
        cmocka_unit_test_teardown(what_one_gpu_cant_map_none_begins, forget_settings),
        cmocka_unit_test_teardown(a_gpu_that_fails_at_its_part_breaks_the_group, forget_settings),
        cmocka_unit_test_teardown(who_is_left_hears_of_a_death, forget_settings),
    };

    if (!device_is_fake())
        return 77;
    log_divert(hear, NULL); /* in all that this process forks */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
