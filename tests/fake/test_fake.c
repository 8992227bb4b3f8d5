/* SPDX-License-Identifier: Apache-2.0 */
/* test_fake.c - what tests on the fake driver rely on: that it is stricter than a GPU. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>
#include <string.h>

#include "tests/cuda/device.h"

/* Each test is a process of its own: none of them inherits a driver. */
static void in_a_process(rank_body *body)
{
    run_processes(1, body, NULL);
}

/* ---- Forbidden accesses kill the process ------------------------------------- */

static void read_device_memory(void)
{
    const volatile char *memory = device_open(0) ? device_alloc(64, 1) : NULL;

    if (memory)
        (void)*memory;
}

static void free_what_is_in_use(void)
{
    struct gate gate;
    CUstream stream;
    char *memory;

    if (!device_open(0) || device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return;
    memory = device_alloc(64, 1);
    if (memory && gate_close(&gate, stream)
        && device.cuMemsetD8Async(at(memory), 2, 64, stream) == CUDA_SUCCESS)
        device_free(memory);
}

static void deaths(ct_group *group, void *arg)
{
    (void)group;
    (void)arg;
    EXPECT(device_ends(read_device_memory, ""));
    EXPECT(device_ends(free_what_is_in_use, "64 bytes at 0x"));
}

static void a_host_that_touches_device_memory_and_a_free_too_early_end_the_program(void **state)
{
    (void)state;
    in_a_process(deaths);
}

/* ---- Memory ------------------------------------------------------------------- */

static void fresh_memory(ct_group *group, void *arg)
{
    unsigned char bytes[100];
    CUdeviceptr first, second;

    (void)group;
    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    CU(device.cuMemAlloc(&first, sizeof bytes));
    CU(device.cuMemcpyDtoH(bytes, first, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++)
        EXPECT(bytes[i] == 0xA5);
    EXPECT(device.cuMemcpyDtoH(bytes, first + 1, sizeof bytes) == CUDA_ERROR_INVALID_VALUE);
    CU(device.cuMemFree(first));
    CU(device.cuMemAlloc(&second, sizeof bytes));
    EXPECT(second == first);
    CU(device.cuMemFree(second));
    EXPECT(device.cuMemFree(second) == CUDA_ERROR_INVALID_VALUE);
}

static void memory_is_poisoned_has_an_end_and_comes_back_at_the_same_place(void **state)
{
    (void)state;
    in_a_process(fresh_memory);
}

static void own_handle(ct_group *group, void *arg)
{
    CUipcMemHandle handle;
    CUdeviceptr there;
    void *memory;

    (void)group;
    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    memory = device_alloc(64, 1);
    CU(device.cuIpcGetMemHandle(&handle, at(memory)));
    EXPECT(device.cuIpcOpenMemHandle(&there, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
           == CUDA_ERROR_INVALID_CONTEXT);
    device_free(memory);
}

static void ones_own_handle_can_not_be_opened(void **state)
{
    (void)state;
    in_a_process(own_handle);
}

/* ---- Order --------------------------------------------------------------------- */

static void host_memory_at_its_turn(ct_group *group, void *arg)
{
    unsigned char *from, back[32];
    struct gate gate;
    CUstream stream;
    void *memory;

    (void)group;
    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    memory = device_alloc(sizeof back, 0);
    CU(device.cuMemAllocHost((void **)&from, sizeof back));
    CU(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT(gate_close(&gate, stream));
    memset(from, 1, sizeof back);
    CU(device.cuMemcpyHtoDAsync(at(memory), from, sizeof back, stream));
    memset(from, 2, sizeof back);
    EXPECT(device.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    CU(device.cuStreamSynchronize(stream));
    CU(device.cuMemcpyDtoH(back, at(memory), sizeof back));
    EXPECT(back[0] == 2 && back[31] == 2);
    CU(device.cuStreamDestroy(stream));
    CU(device.cuMemFreeHost(from));
    device_free(memory);
}

static void a_copy_reads_the_host_when_its_turn_comes(void **state)
{
    (void)state;
    in_a_process(host_memory_at_its_turn);
}

static void events_between_streams(ct_group *group, void *arg)
{
    CUstream first, second;
    unsigned char byte;
    struct gate gate;
    CUevent event;
    void *memory;

    (void)group;
    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    memory = device_alloc(1, 0);
    CU(device.cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    CU(device.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    CU(device.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT(gate_close(&gate, first));
    CU(device.cuMemsetD8Async(at(memory), 1, 1, first));
    CU(device.cuEventRecord(event, first));
    CU(device.cuStreamWaitEvent(second, event, 0));
    CU(device.cuMemsetD8Async(at(memory), 2, 1, second));
    EXPECT(device.cuStreamQuery(second) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    CU(device.cuCtxSynchronize());
    CU(device.cuMemcpyDtoH(&byte, at(memory), 1));
    EXPECT(byte == 2);
    CU(device.cuEventDestroy(event));
    CU(device.cuStreamDestroy(first));
    CU(device.cuStreamDestroy(second));
    device_free(memory);
}

static void a_stream_waits_for_the_event_of_another(void **state)
{
    (void)state;
    in_a_process(events_between_streams);
}

static void default_stream(ct_group *group, void *arg)
{
    CUstream blocking, other;
    unsigned char byte;
    struct gate gate;
    void *memory;

    (void)group;
    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    memory = device_alloc(1, 0);
    CU(device.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CU(device.cuStreamCreate(&other, CU_STREAM_DEFAULT));
    EXPECT(gate_close(&gate, blocking));
    CU(device.cuMemsetD8Async(at(memory), 1, 1, NULL));
    CU(device.cuMemsetD8Async(at(memory), 2, 1, other));
    EXPECT(device.cuStreamQuery(other) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    CU(device.cuMemcpyDtoH(&byte, at(memory), 1));
    EXPECT(byte == 2);
    CU(device.cuStreamDestroy(blocking));
    CU(device.cuStreamDestroy(other));
    device_free(memory);
}

static void the_default_stream_and_the_blocking_ones_take_turns(void **state)
{
    (void)state;
    in_a_process(default_stream);
}

/* ---- Faults -------------------------------------------------------------------- */

static void faults(ct_group *group, void *arg)
{
    CUdeviceptr first, second;

    (void)group;
    (void)arg;
    setenv("FAKE_CUDA_FAIL_ALLOC", "2", 1);
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    if (!EXPECT(device_open(1)))
        return;
    EXPECT(!device_open(2));
    CU(device.cuMemAlloc(&first, 64));
    EXPECT(device.cuMemAlloc(&second, 64) == CUDA_ERROR_OUT_OF_MEMORY);
    CU(device.cuMemAlloc(&second, 64));
    unsetenv("FAKE_CUDA_FAIL_ALLOC");
    setenv("FAKE_CUDA_FAIL", "cuMemFree:1", 1);
    CU(device.cuInit(0));
    EXPECT(device.cuMemFree(first) == CUDA_ERROR_UNKNOWN);
    CU(device.cuMemFree(first));
    CU(device.cuMemFree(second));
}

static void faults_come_when_they_were_asked_for(void **state)
{
    (void)state;
    in_a_process(faults);
}

static void lag(ct_group *group, void *arg)
{
    unsigned char byte = 1;
    double begun;
    void *memory;

    (void)group;
    (void)arg;
    setenv("RANK", "3", 1);
    setenv("FAKE_CUDA_LAG_RANK", "3", 1);
    setenv("FAKE_CUDA_LAG_US", "50000", 1);
    if (!EXPECT(device_open(0)))
        return;
    memory = device_alloc(1, 1);
    begun = now_ms();
    CU(device.cuMemcpyDtoH(&byte, at(memory), 1));
    EXPECT(now_ms() - begun >= 50);
    device_free(memory);
}

static void one_rank_is_late_if_that_was_asked_for(void **state)
{
    (void)state;
    in_a_process(lag);
}

static void modules(ct_group *group, void *arg)
{
    static const unsigned char fatbin[4] = { 0x50, 0xed, 0x55, 0xba }, other[4] = "\177ELF";
    CUfunction function;
    CUmodule module;

    (void)group;
    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    EXPECT(device.cuModuleLoadData(&module, other) == CUDA_ERROR_INVALID_IMAGE);
    CU(device.cuModuleLoadData(&module, fatbin));
    EXPECT(device.cuModuleGetFunction(&function, module, "nobody's") == CUDA_ERROR_NOT_FOUND);
    CU(device.cuModuleUnload(module));
}

static void an_image_that_is_none_and_a_kernel_that_nobody_has_are_refused(void **state)
{
    (void)state;
    in_a_process(modules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_touches_device_memory_and_a_free_too_early_end_the_program),
        cmocka_unit_test(memory_is_poisoned_has_an_end_and_comes_back_at_the_same_place),
        cmocka_unit_test(ones_own_handle_can_not_be_opened),
        cmocka_unit_test(a_copy_reads_the_host_when_its_turn_comes),
        cmocka_unit_test(a_stream_waits_for_the_event_of_another),
        cmocka_unit_test(the_default_stream_and_the_blocking_ones_take_turns),
        cmocka_unit_test(faults_come_when_they_were_asked_for),
        cmocka_unit_test(one_rank_is_late_if_that_was_asked_for),
        cmocka_unit_test(an_image_that_is_none_and_a_kernel_that_nobody_has_are_refused),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
