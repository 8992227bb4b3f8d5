/* SPDX-License-Identifier: Apache-2.0 */
/* hier.c - see hier.h. */
#include "tests/cuda/hier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/device/nccl/hier_leader.h"
#include "tests/cuda/device.h"

/* ---- A run ------------------------------------------------------------------------------ */

int hier_open(const struct hier_run *run, int rank)
{
    return EXPECT(device_open(run->devices[rank] - '0'));
}

void hier_settings(const struct hier_run *run)
{
    team_scratch = HIER_SCRATCH;
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("CT_LIBNCCL", FAKE_NCCL, 1);
    if (run->hosts)
        setenv("CT_FAULT", run->hosts, 1);
    else
        setenv("FAKE_CUDA_PEERS", "8-9", 1);
    if (run->variable)
        setenv(run->variable, run->value, 1);
}

int hier_forget_settings(void **state)
{
    static const char *const all[] = { "FAKE_CUDA_DEVICES", "CT_LIBNCCL",     "CT_DEVICE",
                                       "CT_ORDER",          "CT_FAULT",       "FAKE_CUDA_PEERS",
                                       "CT_LINK",           "FAKE_NCCL_FAIL", "FAKE_CUDA_KERNELS" };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unsetenv(all[i]);
    return 0;
}

void hier_go(rank_body *body, const struct hier_run *run)
{
    const int p = (int)strlen(run->devices);

    hier_settings(run);
    run_processes(p, body, (void *)(uintptr_t)run);
    run_threads(p, body, (void *)(uintptr_t)run);
    hier_forget_settings(NULL);
}

/* ---- Compared ------------------------------------------------------------------------------ */

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

struct hier_buffers hier_take(size_t bytes)
{
    struct hier_buffers b = { malloc(2 * bytes), malloc(2 * bytes), device_alloc(2 * bytes, 0),
                              bytes };

    if (!b.host || !b.seen || !b.there)
        abort();
    return b;
}

void hier_give(ct_group *group, struct hier_buffers b)
{
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(b.there);
    free(b.host);
    free(b.seen);
}

static const char *way_of(const struct hier_run *run, const struct pick *c)
{
    if (c->kind == ALL_TO_ALL && c->in_place)
        return "staged"; /* as all that bounces */
    if (c->op == CT_AVG && folds_in(c->kind))
        return run->of_averages;
    return c->kind >= ALL_GATHER ? run->of_blocks : run->expected;
}

void hier_compare(ct_group *group, const struct hier_run *run, const struct pick *c,
                  const struct hier_buffers *b)
{
    const size_t bytes = b->bytes;

    fill(b->host, 2 * bytes, c->dtype, ct_rank(group));
    if (device_put(at(b->there), b->host, 2 * bytes) != CUDA_SUCCESS)
        abort();
    EXPECT_OK(make(group, c, b->host, b->host + bytes));
    EXPECT_OK(make(group, c, b->there, b->there + bytes));
    if (strcmp(ct_last_algorithm(group), way_of(run, c)))
        expect_fails(__FILE__, __LINE__, "kind %d, op %d by %s", c->kind, c->op,
                     ct_last_algorithm(group));
    if (device.cuMemcpyDtoH(b->seen, at(b->there), 2 * bytes) != CUDA_SUCCESS)
        abort();
    if (memcmp(b->seen, b->host, 2 * bytes))
        expect_fails(__FILE__, __LINE__,
                     "kind %d, op %d, dtype %d, root %d, in place %d: other bits than on the host",
                     c->kind, c->op, c->dtype, c->root, c->in_place);
}

static void compare_kind(ct_group *group, const struct hier_run *run, enum kind kind,
                         const struct hier_buffers *b)
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
                                        .n = f % 2 ? 13 : HIER_COUNT };

                if (c.op != CT_AVG || p == 2 || p == 4)
                    hier_compare(group, run, &c, b);
            }
}

void hier_compare_kinds(ct_group *group, const struct hier_run *run, enum kind first,
                        enum kind last)
{
    struct hier_buffers b;

    if (!hier_open(run, ct_rank(group)))
        return;
    b = hier_take((size_t)ct_size(group) * HIER_COUNT * sizeof(float));
    for (int kind = (int)first; kind <= (int)last; kind++)
        compare_kind(group, run, (enum kind)kind, &b);
    hier_give(group, b);
}
