/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl.c - groups whose ranks each have a GPU: which operations go by NCCL, and that all have
 * the bits of the same calls on host memory.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <stdlib.h>
#include <string.h>

#include "tests/cuda/calls.h"
#include "tests/collectives/device/nccl/nccl.h"

enum { MOST_BYTES = COUNT * 16 * 4 };

static size_t send_blocks(enum kind kind, int p)
{
    return kind == REDUCE_SCATTER || kind == SCATTER || kind == ALL_TO_ALL ? (size_t)p : 1;
}

static size_t recv_blocks(enum kind kind, int p)
{
    return kind == GATHER || kind == ALL_GATHER || kind == ALL_TO_ALL ? (size_t)p : 1;
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
    if (!folds_in(c->kind))
        return 1;
    if (is_integer(c->dtype))
        return c->op == CT_SUM || c->op == CT_PRODUCT || c->op == CT_MIN || c->op == CT_MAX;
    return (floats && (c->op == CT_SUM || c->op == CT_PRODUCT || c->op == CT_AVG))
           || (complexes && (c->op == CT_SUM || c->op == CT_AVG));
}

static int is_defined(const struct pick *c)
{
    const int complexes = c->dtype == CT_C64 || c->dtype == CT_C128;

    if (!folds_in(c->kind))
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

    memset(host, 0x5a, sizeof *host);
    fill(c, me, host->send, c->n * send_blocks(c->kind, p));
    fill(c, me + 1, host->recv, c->n * recv_blocks(c->kind, p));
    if (device_put(at(there), host, sizeof *host) != CUDA_SUCCESS)
        abort();
    EXPECT_OK(make(group, c, host->send, host->recv));
    EXPECT_OK(make(group, c, there + offsetof(struct buffers, send),
                   there + offsetof(struct buffers, recv)));
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
    for (int kind = 0; kind < CALL_KINDS; kind++)
        for (int dtype = CT_I8; dtype <= CT_F8E5M2; dtype++)
            for (int op = CT_SUM; op <= CT_BXOR; op++) {
                struct pick c = { .kind = (enum kind)kind, .dtype = (ct_dtype)dtype, .op = op };

                turn++;
                c.root = (int)turn % p;
                c.in_place = (int)(turn / 3) % 2;
                c.n = turn % 5 ? 1 + turn % 13 : COUNT;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_operation_has_the_hosts_bits, forget_settings),
        cmocka_unit_test_teardown(also_between_hosts_and_over_sockets, forget_settings),
        cmocka_unit_test_teardown(an_older_library_moves_by_sends_and_receives, forget_settings),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without NCCL */
}

#endif
