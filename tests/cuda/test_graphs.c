/* SPDX-License-Identifier: Apache-2.0 */
/* test_graphs.c - calls in CUDA graphs: each launch makes them again, with what is there then.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <dlfcn.h>
#include <nccl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/graphs.h"

/* ---- NCCL's own calls -------------------------------------------------------------------- */

/* As a program would, which links NCCL. */
static void all_reduce_by_nccl(const struct scene *s, ncclComm_t comm)
{
    void *const library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    __typeof__(ncclAllReduce) *make;
    __typeof__(ncclCommGetAsyncError) *how_is_it;
    ncclResult_t state;

    if (!EXPECT(library))
        return;
    *(void **)&make = dlsym(library, "ncclAllReduce");
    *(void **)&how_is_it = dlsym(library, "ncclCommGetAsyncError");
    state = make(s->send, s->recv, COUNT, ncclInt32, ncclSum, comm, (cudaStream_t)s->stream);
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
    if (!scene_set_up(&s, group, 4) || !EXPECT_OK(ct_nccl_comm(group, &comm)))
        return;
    put(&s, 0);
    begin(&s);
    all_reduce_by_nccl(&s, comm);
    exec = end(&s);
    for (int round = 1; round <= LAUNCHES && exec; round++) {
        put(&s, round);
        EXPECT(cu(device.cuGraphLaunch(exec, s.stream)));
        look(&s, s.recv, round, COUNT, sum_is);
        put(&s, round + 1); /* one that is in no graph, of the same communicator */
        all_reduce_by_nccl(&s, comm);
        look(&s, s.recv, round + 1, COUNT, sum_is);
    }
    if (exec)
        EXPECT(cu(device.cuGraphExecDestroy(exec)));
    scene_tear_down(&s);
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
        cmocka_unit_test_teardown(a_programs_own_calls_of_nccl_run_at_each_launch, forget_settings),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA or NCCL */
}

#endif
