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

enum { SOON_MS = 50 };

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
        CU(device.cuGraphLaunch(exec, s.stream));
        look(&s, s.recv, round, COUNT, sum_is);
        put(&s, round + 1); /* one that is in no graph, of the same communicator */
        all_reduce_by_nccl(&s, comm);
        look(&s, s.recv, round + 1, COUNT, sum_is);
    }
    if (exec)
        CU(device.cuGraphExecDestroy(exec));
    scene_tear_down(&s);
}

static void a_programs_own_calls_of_nccl_run_at_each_launch(void **state)
{
    (void)state;
    run_apart(2, 2, by_the_program, NULL);
    run_apart(4, 0, by_the_program, NULL);
}

/* ---- libct's calls ------------------------------------------------------------------------- */

static ct_status broadcast(const struct scene *s)
{
    return ct_broadcast(s->group, s->send, COUNT, CT_I32, s->p - 1, NULL);
}

static int32_t broadcast_is(const struct scene *s, int round, int i)
{
    return given(s->p - 1, round, i);
}

static ct_status all_gather(const struct scene *s)
{
    return ct_all_gather(s->group, s->send, s->recv, COUNT, CT_I32, NULL);
}

static int32_t all_gather_is(const struct scene *s, int round, int i)
{
    (void)s;
    return given(i / COUNT, round, i % COUNT);
}

static ct_status all_to_all(const struct scene *s)
{
    return ct_all_to_all(s->group, s->send, s->recv, COUNT, CT_I32, NULL);
}

static int32_t all_to_all_is(const struct scene *s, int round, int i)
{
    return given(i / COUNT, round, s->me * COUNT + i % COUNT);
}

static const struct operation operations[] = { { all_reduce, sum_is, 0, 1 },
                                               { broadcast, broadcast_is, 1, 1 },
                                               { all_gather, all_gather_is, 0, 0 },
                                               { all_to_all, all_to_all_is, 0, 0 } };

static void all_operations(ct_group *group, void *arg)
{
    struct scene s;

    if (!scene_set_up(&s, group, arg ? *(const int *)arg : 4))
        return;
    join(&s);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        launch_with_new_data(&s, &operations[i]);
    scene_tear_down(&s);
}

static void each_launch_makes_the_call_again_with_what_is_there_then(void **state)
{
    (void)state;
    run_apart(2, 2, all_operations, NULL);
    run_apart(4, 0, all_operations, NULL);
}

static void as_sends_and_receives(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("CT_LIBNCCL", OLD_FAKE_NCCL, 1);
    run_processes(4, all_operations, NULL);
}

static void over_sockets(void **state)
{
    (void)state;
    use_link("tcp");
    run_apart(3, 0, all_operations, NULL);
}

/* The sum of what the ranks gave, which all have, summed again. */
static int32_t step_is(const struct scene *s, int round, int i)
{
    return s->p * sum_is(s, round, i);
}

static void training_step(ct_group *group, void *arg)
{
    const size_t bytes = COUNT * sizeof(int32_t);
    CUgraphExec exec;
    struct scene s;
    char *gradient;

    if (!scene_set_up(&s, group, arg ? *(const int *)arg : 4)
        || !EXPECT(gradient = device_alloc(bytes, 0)))
        return;
    join(&s);
    begin(&s);
    CU(device.cuMemsetD8Async(at(gradient), 0x11, bytes, s.stream));
    CU(device.cuMemcpyDtoDAsync(at(gradient), at(s.send), bytes, s.stream));
    EXPECT_OK(ct_all_reduce(group, gradient, gradient, COUNT, CT_I32, CT_SUM, NULL));
    CU(device.cuMemsetD8Async(at(s.recv), 0, bytes, s.stream));
    EXPECT_OK(ct_all_reduce(group, gradient, s.recv, COUNT, CT_I32, CT_SUM, NULL));
    CU(device.cuMemcpyDtoDAsync(at(s.send), at(s.recv), bytes, s.stream));
    exec = end(&s);
    for (int round = 1; round <= LAUNCHES && exec; round++) {
        put(&s, round);
        CU(device.cuGraphLaunch(exec, s.stream));
        look(&s, s.send, round, COUNT, step_is);
    }
    if (exec)
        CU(device.cuGraphExecDestroy(exec));
    scene_tear_down(&s);
    device_free(gradient);
}

static void a_whole_step_with_its_calls_is_one_graph(void **state)
{
    (void)state;
    run_apart(2, 2, training_step, NULL);
    run_apart(4, 0, training_step, NULL);
}

static const int one = 1, two = 2; /* GPUs */
static void where_ranks_share_a_gpu_their_streams_hand_over(void **state)
{
    (void)state;
    run_apart(3, 2, all_operations, (void *)(uintptr_t)&one);
    run_apart(1, 1, all_operations, (void *)(uintptr_t)&one);
    run_apart(3, 2, training_step, (void *)(uintptr_t)&one);
}

static void and_where_they_share_two(void **state)
{
    (void)state;
    run_apart(4, 0, all_operations, (void *)(uintptr_t)&two);
    run_apart(4, 0, training_step, (void *)(uintptr_t)&two);
}

/* As on a thread that has used no GPU yet. */
static void without_a_context(ct_group *group, void *arg)
{
    CUcontext context;
    CUgraphExec exec;
    struct scene s;

    (void)arg;
    if (!scene_set_up(&s, group, 4))
        return;
    join(&s);
    begin(&s);
    CU(device.cuCtxGetCurrent(&context));
    CU(device.cuCtxSetCurrent(NULL));
    EXPECT_OK(all_reduce(&s));
    CU(device.cuCtxSetCurrent(context));
    exec = end(&s);
    put(&s, 1);
    CU(device.cuGraphLaunch(exec, s.stream));
    look(&s, s.recv, 1, COUNT, sum_is);
    CU(device.cuGraphExecDestroy(exec));
    scene_tear_down(&s);
}

static void which_context_is_current_does_not_matter(void **state)
{
    (void)state;
    run_apart(2, 0, without_a_context, NULL);
}

/* Rank 1 never launches: the stream stands still until the group ends. */
static void one_stays_away(ct_group *group, void *arg)
{
    ct_group *part = NULL;
    CUgraphExec exec;
    struct scene s, of_part;

    if (!scene_set_up(&s, group, arg ? *(const int *)arg : 4)
        || !EXPECT_OK(ct_split_group(group, 0, 0, &part)))
        return;
    of_part = s;
    of_part.group = part;
    join(&of_part);
    begin(&s);
    EXPECT_OK(all_reduce(&of_part));
    exec = end(&s);
    if (s.me == 0) {
        CU(device.cuGraphLaunch(exec, s.stream));
        nap(SOON_MS);
        EXPECT(device.cuStreamQuery(s.stream) == CUDA_ERROR_NOT_READY);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_abort(part));
    EXPECT_OK(ct_destroy_process_group(part));
    CU(device.cuStreamSynchronize(s.stream));
    CU(device.cuGraphExecDestroy(exec));
    EXPECT_OK(ct_barrier(group, NULL)); /* no GPU has anything to do with the buffers any more */
    scene_tear_down(&s);
}

static void a_groups_end_ends_a_launch_that_waits_for_a_rank(void **state)
{
    (void)state;
    if (device_is_fake())
        run_apart(2, 0, one_stays_away, NULL);
    run_apart(2, 0, one_stays_away, (void *)(uintptr_t)&one);
}

/* A machine may have one GPU only, and no NCCL. */
int main(void)
{
    const struct CMUnitTest on_one_gpu[] = {
        cmocka_unit_test_teardown(where_ranks_share_a_gpu_their_streams_hand_over, forget_settings),
        cmocka_unit_test_teardown(a_groups_end_ends_a_launch_that_waits_for_a_rank,
                                  forget_settings),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_programs_own_calls_of_nccl_run_at_each_launch, forget_settings),
        cmocka_unit_test_teardown(each_launch_makes_the_call_again_with_what_is_there_then,
                                  forget_settings),
        cmocka_unit_test_teardown(as_sends_and_receives, forget_settings),
        cmocka_unit_test_teardown(over_sockets, forget_settings),
        cmocka_unit_test_teardown(a_whole_step_with_its_calls_is_one_graph, forget_settings),
        cmocka_unit_test_teardown(and_where_they_share_two, forget_settings),
        cmocka_unit_test_teardown(which_context_is_current_does_not_matter, forget_settings),
    };

    return cmocka_run_group_tests(on_one_gpu, NULL, NULL)
           + (device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 0);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA or NCCL */
}

#endif
