/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl_comm.c - the communicator of a group: when the ranks make it, and that a program gets
 * it.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <dlfcn.h>
#include <nccl.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/collectives/device/nccl/nccl.h"

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

static void no_rank_joins_while_a_stream_waits(void **state)
{
    (void)state;
    run_all(2, 0, joins_late, &(struct run_of){ 0 });
}

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

/* Rank 0 has no context yet: no rank gets the communicator, and the group stays sound. */
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
        cmocka_unit_test_teardown(no_rank_joins_while_a_stream_waits, forget_settings),
        cmocka_unit_test_teardown(a_program_gets_the_groups_communicator, forget_settings),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without NCCL */
}

#endif
