/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl_streams.c - calls by NCCL that fail while a stream stands still for them: NCCL is
 * aborted, which frees memory, and that waits for the stream; but the stream goes on.  And calls
 * that NCCL can't make.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL: a stream that stands still for 30 s ends
 * the program there, and so does freeing what is in use. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <nccl.h>
#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/cuda/device.h"

enum { COUNT = 777 };

/* Rank 1's NCCL fails in the second call, which rank 0's has begun by then, or will. */
static void one_fails(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    CUstream stream;
    ct_group *part;
    void *there;

    (void)arg;
    if (!EXPECT(device_open(me))
        || !EXPECT(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)
        || !EXPECT_OK(ct_split_group(group, 0, me, &part)))
        return;
    there = device_alloc(COUNT * sizeof(int32_t), 1);
    EXPECT_OK(ct_all_reduce(part, there, there, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT(!strcmp(ct_last_algorithm(part), "nccl"));
    EXPECT_OK(ct_set_stream(part, stream));
    EXPECT_OK(ct_all_reduce(part, there, there, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    device_free(there); /* nothing is at it any more */
    EXPECT_ERROR(ct_barrier(part, NULL), me == 1 ? CT_ERR_NCCL : CT_ERR_PEER,
                 "all_reduce|as it was told to");
    EXPECT_OK(ct_destroy_process_group(part));
    EXPECT(device.cuStreamDestroy(stream) == CUDA_SUCCESS);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_stream_goes_on_before_the_nccl_that_failed_has_given_back_its_memory(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("CT_LIBNCCL", FAKE_NCCL, 1);
    setenv("FAKE_NCCL_FAIL", "ncclAllReduce:2:1", 1);
    run_processes(2, one_fails, NULL);
    run_processes(3, one_fails, NULL);
    if (!getenv("FAKE_CUDA_LOCK")) /* NCCL frees memory in one of them */
        run_threads(3, one_fails, NULL);
}

/* What NCCL can't make the GPUs do together, once it is proved that they reach each other.  For
 * that memory is got, which here waits for whatever stands still. */
static void fused_behind_nccl(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    CUstream stream;
    void *there;

    (void)arg;
    if (!EXPECT(device_open(me))
        || !EXPECT(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS))
        return;
    there = device_alloc(COUNT * sizeof(int32_t), 1);
    EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT(!strcmp(ct_last_algorithm(group), "nccl"));
    EXPECT_OK(ct_set_stream(group, stream));
    EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_F32, CT_MAX, NULL));
    EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    EXPECT(!strcmp(ct_last_algorithm(group), "fused"));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT(device.cuStreamDestroy(stream) == CUDA_SUCCESS);
    device_free(there);
}

static void peer_access_is_checked_in_no_stream(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("CT_LIBNCCL", FAKE_NCCL, 1);
    setenv("FAKE_CUDA_ALLOC", "waits", 1);
    unsetenv("FAKE_NCCL_FAIL");
    run_processes(3, fused_behind_nccl, NULL);
    unsetenv("FAKE_CUDA_ALLOC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_goes_on_before_the_nccl_that_failed_has_given_back_its_memory),
        cmocka_unit_test(peer_access_is_checked_in_no_stream),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA or NCCL */
}

#endif
