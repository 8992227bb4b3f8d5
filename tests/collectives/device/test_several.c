/* SPDX-License-Identifier: Apache-2.0 */
/* test_several.c - the GPUs of one host, with one rank on each or several: which path calls take,
 * that they have the bits of the same calls on host memory, that peer access is checked.
 *
 * Runs against tests/fake/ alone. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/log.h"
#include "tests/cuda/several.h"

/* GUARD: floats behind a call's, which stay as they are. */
enum { SMALL = 777, GUARD = 77, SAID = 4096 };

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

/* From BLOCKS on they have a block for each rank, and no block is cut. */
enum { BLOCKS = 4, KINDS = 11 };

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

/* The same call on host memory and on the GPUs'. */
static void compare(ct_group *group, const struct run *run, int kind, size_t n, struct buffers host,
                    struct buffers there)
{
    const int me = ct_rank(group);

    host.floats = (kind < BLOCKS ? n : (size_t)ct_size(group) * n) + GUARD;
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
    const size_t p = (size_t)ct_size(group), floats = LARGE + GUARD;
    struct buffers host = on_host(floats), there = { .floats = floats };

    if (!open_own(run, ct_rank(group)))
        return;
    there.send = device_alloc(floats * sizeof(float), 0);
    there.recv = device_alloc(floats * sizeof(float), 0);
    for (int kind = 0; kind < KINDS; kind++) {
        compare(group, run, kind, SMALL, host, there);
        compare(group, run, kind, kind < BLOCKS ? LARGE : LARGE / p, host, there);
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

static void gpus_without_peer_access_take_another_path(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_gpus_of_a_host_share_a_call, forget_settings),
        cmocka_unit_test_teardown(gpus_without_peer_access_take_another_path, forget_settings),
        cmocka_unit_test_teardown(bytes_that_arrive_wrong_are_seen_before_a_call_has_them,
                                  forget_settings),
    };

    log_divert(hear, NULL); /* in all that this process forks */
    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
