/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/graphs.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = COUNT * PARTS * sizeof(int32_t) };

int scene_set_up(struct scene *s, ct_group *group, int gpus)
{
    *s = (struct scene){ .group = group, .p = ct_size(group), .me = ct_rank(group) };
    s->way = gpus < s->p || s->p == 1 ? "fused" : "nccl";
    if (!EXPECT(device_open(s->me % gpus))
        || !CU(device.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING)))
        return 0;
    s->send = device_alloc(BYTES, 0);
    s->recv = device_alloc(BYTES, 0);
    return EXPECT(s->send && s->recv);
}

void scene_free(const struct scene *s)
{
    CU(device.cuStreamDestroy(s->stream));
    device_free(s->send);
    device_free(s->recv);
}

void scene_tear_down(const struct scene *s)
{
    CU(device.cuStreamSynchronize(s->stream));
    EXPECT_OK(ct_barrier(s->group, NULL));
    scene_free(s);
}

int32_t given(int rank, int round, int i)
{
    return rank * 1000 + round * 100 + i % 7;
}

void put(const struct scene *s, int round)
{
    int32_t here[COUNT * PARTS];

    for (int i = 0; i < COUNT * PARTS; i++)
        here[i] = given(s->me, round, i);
    CU(device.cuMemcpyHtoDAsync(at(s->send), here, sizeof here, s->stream));
    CU(device.cuMemsetD8Async(at(s->recv), 0xEE, BYTES, s->stream));
    CU(device.cuStreamSynchronize(s->stream));
}

void look(const struct scene *s, const void *there, int round, int count, expected_fn *is)
{
    int32_t here[COUNT * PARTS];

    CU(device.cuMemcpyDtoHAsync(here, at(there), sizeof here, s->stream));
    CU(device.cuStreamSynchronize(s->stream));
    for (int i = 0; i < count; i++)
        if (here[i] != is(s, round, i)) {
            expect_fails(__FILE__, __LINE__, "round %d: number %d is %d, not %d", round, i, here[i],
                         is(s, round, i));
            return;
        }
}

int32_t sum_is(const struct scene *s, int round, int i)
{
    int32_t sum = 0;

    for (int rank = 0; rank < s->p; rank++)
        sum += given(rank, round, i);
    return sum;
}

/* Of captures: a global one would be void by what other ranks' threads ask. */
static CUstreamCaptureMode mode;

void begin(const struct scene *s)
{
    CU(device.cuStreamBeginCapture(s->stream, mode));
}

CUgraphExec end(const struct scene *s)
{
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;

    if (!CU(device.cuStreamEndCapture(s->stream, &graph)))
        return NULL;
    CU(device.cuGraphInstantiate(&exec, graph, 0));
    CU(device.cuGraphDestroy(graph));
    return exec;
}

void run_apart(int processes, int threads, rank_body *body, void *arg)
{
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("CT_LIBNCCL", FAKE_NCCL, 1);
    if (processes > 0)
        run_processes(processes, body, arg);
    mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    if (threads > 0)
        run_threads(threads, body, arg);
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}

int forget_settings(void **state)
{
    static const char *const all[] = {
        "FAKE_CUDA_DEVICES", "CT_LIBNCCL",         "CT_DEVICE",
        "FAKE_NCCL_FAIL",    "FAKE_CUDA_LAG_RANK", "FAKE_CUDA_LAG_US"
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unsetenv(all[i]);
    use_link(NULL);
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return 0;
}

ct_status all_reduce(const struct scene *s)
{
    return ct_all_reduce(s->group, s->send, s->recv, COUNT, CT_I32, CT_SUM, NULL);
}

void join(const struct scene *s)
{
    EXPECT_OK(ct_set_stream(s->group, s->stream));
    put(s, 0);
    EXPECT_OK(all_reduce(s));
    look(s, s->recv, 0, COUNT, sum_is);
    EXPECT(!strcmp(ct_last_algorithm(s->group), s->way));
}

const struct operation all_reduce_of_sums = { all_reduce, sum_is, 0, 1 };

void end_and_forget(const struct scene *s)
{
    CUgraphExec exec = end(s);

    if (exec)
        CU(device.cuGraphExecDestroy(exec));
}

void launch_with_new_data(const struct scene *s, const struct operation *o)
{
    const int count = (o->blocks ? o->blocks : s->p) * COUNT;
    const void *const result = o->in_send ? s->send : s->recv;
    CUgraphExec exec;

    put(s, 1);
    begin(s);
    EXPECT_OK(o->make(s));
    EXPECT(!strcmp(ct_last_algorithm(s->group), s->way));
    exec = end(s);
    if (!exec)
        return;
    for (int round = 2; round < 2 + LAUNCHES; round++) {
        put(s, round);
        CU(device.cuGraphLaunch(exec, s->stream));
        look(s, result, round, count, o->is);
    }
    put(s, 9);
    EXPECT_OK(o->make(s)); /* calls of the same group outside of it go on */
    look(s, result, 9, count, o->is);
    CU(device.cuGraphExecDestroy(exec));
}
