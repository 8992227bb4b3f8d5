/* SPDX-License-Identifier: Apache-2.0 */
/* test_graphs.c - calls in CUDA graphs: which can be captured, that each launch makes them again,
 * and that a capture stays sound whatever libct does beside it.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/cuda/device.h"

enum { COUNT = 500, LAUNCHES = 4, PARTS = 4, BYTES = COUNT * PARTS * 4 };

static int cu(CUresult result)
{
    return result == CUDA_SUCCESS;
}

static CUdeviceptr at(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

/* A rank's GPU, a stream, and buffers there for PARTS * COUNT numbers. */
struct scene {
    ct_group *group;
    int p, me;
    CUstream stream;
    int32_t *send, *recv;
};

static int set_up(struct scene *s, ct_group *group, int gpus)
{
    *s = (struct scene){ .group = group, .p = ct_size(group), .me = ct_rank(group) };
    if (!EXPECT(device_open(s->me % gpus))
        || !EXPECT(cu(device.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING))))
        return 0;
    s->send = device_alloc(BYTES, 0);
    s->recv = device_alloc(BYTES, 0);
    return EXPECT(s->send && s->recv);
}

static void tear_down(const struct scene *s)
{
    EXPECT(cu(device.cuStreamSynchronize(s->stream)));
    EXPECT_OK(ct_barrier(s->group, NULL));
    EXPECT(cu(device.cuStreamDestroy(s->stream)));
    device_free(s->send);
    device_free(s->recv);
}

/* What each rank gives: number i of it in round `round`. */
static int32_t given(int rank, int round, int i)
{
    return rank * 1000 + round * 100 + i % 7;
}

static void put(const struct scene *s, int round)
{
    int32_t here[COUNT * PARTS];

    for (int i = 0; i < COUNT * PARTS; i++)
        here[i] = given(s->me, round, i);
    EXPECT(cu(device.cuMemcpyHtoDAsync(at(s->send), here, sizeof here, s->stream)));
    EXPECT(cu(device.cuMemsetD8Async(at(s->recv), 0xEE, BYTES, s->stream)));
    EXPECT(cu(device.cuStreamSynchronize(s->stream)));
}

/* Number i of what is there is expected(s, round, i), of the first `count`. */
typedef int32_t expected_fn(const struct scene *s, int round, int i);

static void look(const struct scene *s, const void *there, int round, int count, expected_fn *is)
{
    int32_t here[COUNT * PARTS];

    EXPECT(cu(device.cuMemcpyDtoHAsync(here, at(there), sizeof here, s->stream)));
    EXPECT(cu(device.cuStreamSynchronize(s->stream)));
    for (int i = 0; i < count; i++)
        if (here[i] != is(s, round, i)) {
            expect_fails(__FILE__, __LINE__, "round %d: number %d is %d, not %d", round, i, here[i],
                         is(s, round, i));
            return;
        }
}

static int32_t sum_is(const struct scene *s, int round, int i)
{
    int32_t sum = 0;

    for (int rank = 0; rank < s->p; rank++)
        sum += given(rank, round, i);
    return sum;
}

static void begin(const struct scene *s)
{
    EXPECT(cu(device.cuStreamBeginCapture(s->stream, CU_STREAM_CAPTURE_MODE_GLOBAL)));
}

/* NULL: the capture was void. */
static CUgraphExec end(const struct scene *s)
{
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;

    if (!EXPECT(cu(device.cuStreamEndCapture(s->stream, &graph))))
        return NULL;
    EXPECT(cu(device.cuGraphInstantiate(&exec, graph, 0)));
    EXPECT(cu(device.cuGraphDestroy(graph)));
    return exec;
}

static void launch(const struct scene *s, CUgraphExec exec)
{
    EXPECT(cu(device.cuGraphLaunch(exec, s->stream)));
    EXPECT(cu(device.cuStreamSynchronize(s->stream)));
}

/* Each rank has a GPU of its own, and all have NCCL. */
static void run_apart(int processes, int threads, rank_body *body, void *arg)
{
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("CT_LIBNCCL", FAKE_NCCL, 1);
    if (processes > 0)
        run_processes(processes, body, arg);
    if (threads > 0)
        run_threads(threads, body, arg);
    unsetenv("FAKE_CUDA_DEVICES");
    unsetenv("CT_LIBNCCL");
}

/* ---- NCCL's own calls -------------------------------------------------------------------- */

/* As a program would, which links NCCL. */
static void all_reduce_by_nccl(const struct scene *s, ncclComm_t comm)
{
    void *const library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    __typeof__(ncclAllReduce) *all_reduce;
    __typeof__(ncclCommGetAsyncError) *how_is_it;
    ncclResult_t state;

    if (!EXPECT(library))
        return;
    *(void **)&all_reduce = dlsym(library, "ncclAllReduce");
    *(void **)&how_is_it = dlsym(library, "ncclCommGetAsyncError");
    state = all_reduce(s->send, s->recv, COUNT, ncclInt32, ncclSum, comm, (cudaStream_t)s->stream);
    while (state == ncclInProgress)
        EXPECT(how_is_it(comm, &state) == ncclSuccess);
    EXPECT(state == ncclSuccess);
    dlclose(library);
}

static void by_the_program(ct_group *group, void *arg)
{
    CUgraphExec exec;
    struct scene s;
    void *comm;

    (void)arg;
    if (!set_up(&s, group, 4) || !EXPECT_OK(ct_nccl_comm(group, &comm)))
        return;
    put(&s, 0);
    begin(&s);
    all_reduce_by_nccl(&s, comm);
    exec = end(&s);
    for (int round = 1; round <= LAUNCHES && exec; round++) {
        put(&s, round);
        launch(&s, exec);
        look(&s, s.recv, round, COUNT, sum_is);
        put(&s, round + 1); /* one that is in no graph, of the same communicator */
        all_reduce_by_nccl(&s, comm);
        look(&s, s.recv, round + 1, COUNT, sum_is);
    }
    if (exec)
        EXPECT(cu(device.cuGraphExecDestroy(exec)));
    tear_down(&s);
}

static void a_programs_own_calls_of_nccl_run_at_each_launch(void **state)
{
    (void)state;
    run_apart(2, 2, by_the_program, NULL);
    run_apart(4, 0, by_the_program, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_programs_own_calls_of_nccl_run_at_each_launch),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA or NCCL */
}

#endif
