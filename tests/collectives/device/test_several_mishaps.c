/* SPDX-License-Identifier: Apache-2.0 */
/* test_several_mishaps.c - the GPUs of one host, and one of them can't do its part of a call: it
 * sees no other, can't map a buffer, fails, or is that of a rank which dies.
 *
 * Runs against tests/fake/ alone. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/marks.h"
#include "tests/cuda/deaths.h"
#include "tests/cuda/handover.h"
#include "tests/cuda/several.h"

enum { CALLS = 3, MOST_PHASES = 4, LIMIT_MS = 3000, IN_FLIGHT = 10 };

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

static void a_buffer_on_another_gpu_than_at_first_takes_another_path_once(void **state)
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

static void a_process_that_sees_one_gpu_has_no_peer_access(void **state)
{
    (void)state;
    with_settings(&(struct run){ 0 });
    run_processes(3, sees_its_own, (void *)(uintptr_t) "001");
    run_processes(3, sees_its_own, (void *)(uintptr_t) "222");
}

/* The GPU of rank 2 is ready to work, and that of rank 0 can't map a buffer once; in place, a part
 * would be too much. */
static void cant_map(ct_group *group, void *arg)
{
    const struct run *run = arg;
    const int me = ct_rank(group);
    float *here = malloc(LARGE * sizeof *here);
    const float sum = (float)ct_size(group);
    void *there;

    if (me == 0)
        setenv("FAKE_CUDA_FAIL", "cuIpcOpenMemHandle:3", 1); /* the first is the proof's */
    if (!EXPECT(here) || !open_own(run, me))
        return;
    there = device_alloc(LARGE * sizeof(float), 0);
    for (int i = 0; i < 3; i++) {
        for (size_t j = 0; j < LARGE; j++)
            here[j] = 1;
        put(there, here, LARGE);
        EXPECT_OK(ct_all_reduce(group, there, there, LARGE, CT_F32, CT_SUM, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), i == 0 ? "staged" : "fused"));
        for (size_t j = 0; j < LARGE; j++)
            here[j] = sum;
        EXPECT(is_there(there, here, LARGE));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
    free(here);
}

static void what_one_gpu_cant_map_none_begins_and_the_next_call_tries_again(void **state)
{
    (void)state;
    with_settings(&(struct run){ 0 });
    run_processes(4, cant_map, &(struct run){ .devices = "0011" });
}

/* Rank 3's stream stands still until the others' have gone on, with several calls in flight. */
static void stands_still(ct_group *group, void *arg)
{
    const struct run *run = arg;
    const int me = ct_rank(group);
    CUstream stream;
    struct gate gate;
    void *there;

    if (!open_own(run, me) || !CU(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
        return;
    there = device_alloc(LARGE * sizeof(float), 0);
    EXPECT_OK(ct_set_stream(group, stream));
    for (int i = 0; i < 2; i++)
        EXPECT_OK(ct_all_reduce(group, there, there, LARGE, CT_F32, CT_SUM, NULL));
    CU(device.cuStreamSynchronize(stream));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_set_timeout(group, LIMIT_MS));
    if (me == 3)
        EXPECT(gate_close(&gate, stream));
    for (int i = 0; i < IN_FLIGHT; i++)
        EXPECT_OK(ct_all_reduce(group, there, there, LARGE, CT_F32, CT_SUM, NULL));
    for (int rank = 0; me == 3 && rank < 3; rank++)
        await("goes on", rank);
    if (me == 3)
        gate_open(&gate);
    CU(device.cuStreamSynchronize(stream));
    mark("goes on", me);
    EXPECT(ct_barrier(group, NULL) != CT_OK);
    all_marked(group, "seen");
    CU(device.cuStreamDestroy(stream));
    device_free(there);
}

/* Were each call released alone, each would take the 10 s for which a leader waits for others. */
static void all_calls_of_two_leaders_end_together(void **state)
{
    (void)state;
    with_settings(&(struct run){ 0 });
    run_by("stream", 4, stands_still, &(struct run){ .devices = "0101" });
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
    all_marked(group, "seen"); /* before that others may still write to the buffer */
    device_free(there);
}

static void a_gpu_that_fails_at_its_part_breaks_the_group(void **state)
{
    (void)state;
    with_settings(&(struct run){ 0 });
    run_processes(4, fails_on_one, &(struct run){ .devices = "0011" });
}

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
        cmocka_unit_test_teardown(a_buffer_on_another_gpu_than_at_first_takes_another_path_once,
                                  forget_settings),
        cmocka_unit_test_teardown(a_process_that_sees_one_gpu_has_no_peer_access, forget_settings),
        cmocka_unit_test_teardown(all_calls_of_two_leaders_end_together, forget_settings),
        cmocka_unit_test_teardown(what_one_gpu_cant_map_none_begins_and_the_next_call_tries_again,
                                  forget_settings),
        cmocka_unit_test_teardown(a_gpu_that_fails_at_its_part_breaks_the_group, forget_settings),
        cmocka_unit_test_teardown(who_is_left_hears_of_a_death, forget_settings),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
