/* SPDX-License-Identifier: Apache-2.0 */
/* test_share.c - GPU memory that several processes use. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/cuda.h"
#include "tests/cuda/device.h"

#define EXPECT_CUDA(call) EXPECT((call) == CUDA_SUCCESS)

/* A driver puts small allocations into one block of this size, which it shares as a whole: who has
 * mapped one of them has the others, too. */
enum { BLOCK = 2 << 20 };

static char user; /* of imports */

static struct device *open_gpu(size_t bytes, unsigned char byte, void **memory)
{
    struct device *gpu = NULL;

    if (EXPECT(device_open(0)) && EXPECT((*memory = device_alloc(bytes, byte)) != NULL))
        EXPECT_OK(cuda_gpu_of(*memory, &gpu));
    return gpu;
}

static int closed_gates(struct device *gpu, const void *memory, unsigned char byte, size_t bytes)
{
    unsigned char *back = malloc(bytes);
    size_t right = 0;

    if (cuda_to_host(gpu, back, memory, bytes) == CT_OK)
        while (right < bytes && back[right] == byte)
            right++;
    free(back);
    return right == bytes;
}

/* ---- Between two processes ------------------------------------------------------ */

/* Rank 0's memory: the others read what it wrote; rank 1 writes, and rank 0 reads that. */
static void one_memory(ct_group *group, void *arg)
{
    const int rank = ct_rank(group);
    struct device_handle handle;
    unsigned char mark = 77;
    void *memory, *there, *again;
    struct device *gpu = open_gpu(10000, (unsigned char)(rank + 1), &memory);

    (void)arg;
    if (!gpu)
        return;
    if (rank == 0)
        EXPECT_OK(cuda_export(gpu, (char *)memory + 5000, 5000, &handle));
    EXPECT_OK(ct_broadcast(group, &handle, sizeof handle, CT_U8, 0, NULL));
    if (!EXPECT_OK(cuda_import(gpu, &handle, &user, &there)))
        return;
    EXPECT((there == (char *)memory + 5000) == (rank == 0));
    EXPECT(closed_gates(gpu, there, 1, 5000));
    EXPECT_OK(cuda_import(gpu, &handle, &user, &again));
    EXPECT(again == there);
    EXPECT_OK(ct_barrier(group, NULL));
    if (rank == 1)
        EXPECT_OK(cuda_from_host(gpu, (char *)there + 4999, &mark, 1));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT(closed_gates(gpu, there, 1, 4999) && closed_gates(gpu, (char *)there + 4999, 77, 1));
    EXPECT_OK(ct_barrier(group, NULL));
    cuda_put(&user);
    EXPECT(closed_gates(gpu, memory, (unsigned char)(rank + 1), 5000));
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(memory);
}

static void processes_read_and_write_one_memory(void **state)
{
    (void)state;
    run_processes(2, one_memory, NULL);
    run_processes(4, one_memory, NULL);
}

/* Rank 0 frees and allocates again, of another size and content each time; in the fake driver, and
 * often on a GPU, at the same place.  Rank 1 keeps what it has mapped, as libct does. */
static void many_memories(ct_group *group, void *arg)
{
    static const size_t sizes[] = { 5000, 5000, 100, 20000, 4096 };
    const int rank = ct_rank(group);
    struct device_handle handle;
    void *first, *memory, *there;
    struct device *gpu = open_gpu(1, 0, &first);

    (void)arg;
    for (int i = 0; gpu && i < 40; i++) {
        const size_t bytes = sizes[i % 5];
        const unsigned char byte = (unsigned char)(i + 1);

        if (rank == 0) {
            memory = device_alloc(bytes, byte);
            EXPECT(memory != NULL);
            EXPECT_OK(cuda_export(gpu, memory, bytes, &handle));
        }
        EXPECT_OK(ct_broadcast(group, &handle, sizeof handle, CT_U8, 0, NULL));
        EXPECT_OK(cuda_import(gpu, &handle, &user, &there));
        EXPECT(closed_gates(gpu, there, byte, bytes));
        EXPECT_OK(ct_barrier(group, NULL));
        if (rank == 0)
            device_free(memory);
    }
    if (gpu)
        cuda_put(&user);
    device_free(first);
}

static void memory_that_was_freed_and_got_again_is_never_a_stale_mapping(void **state)
{
    (void)state;
    run_processes(2, many_memories, NULL);
}

enum { WHOLE = 3 << 20 }; /* it shares its block with no other */

/* To close what is stale might be to wait for a stream that stands still. */
static void beside_a_held_stream(ct_group *group, void *arg)
{
    const int rank = ct_rank(group);
    struct device_handle handle;
    void *first, *memory, *there, *hold;
    struct device *gpu = open_gpu(1, 0, &first);

    (void)arg;
    for (int i = 0; gpu && i < 2; i++) {
        if (rank == 0) {
            memory = device_alloc(WHOLE, (unsigned char)(i + 1));
            EXPECT_OK(cuda_export(gpu, memory, WHOLE, &handle));
        } else if (i == 1) {
            EXPECT_OK(cuda_close_gate(gpu, NULL, gpu, &hold));
        }
        EXPECT_OK(ct_broadcast(group, &handle, sizeof handle, CT_U8, 0, NULL));
        if (rank == 1 && i == 1) {
            EXPECT_ERROR(cuda_import(gpu, &handle, &user, &there), CT_ERR_INVALID, "mapped");
            cuda_open_gate(hold);
            EXPECT(device.cuStreamSynchronize(NULL) == CUDA_SUCCESS);
        }
        EXPECT_OK(cuda_import(gpu, &handle, &user, &there));
        EXPECT(closed_gates(gpu, there, (unsigned char)(i + 1), WHOLE));
        EXPECT_OK(ct_barrier(group, NULL));
        if (rank == 0)
            device_free(memory);
    }
    cuda_put(&user);
    device_free(first);
}

static void what_is_stale_is_not_closed_while_a_stream_is_held(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip(); /* where memory is got again at the same place */
    run_processes(2, beside_a_held_stream, NULL);
}

/* Rank 0 frees two allocations that lie in one block of the driver's, and gets them again, in
 * another block at the same place.  Rank 1 still has both of the old ones mapped. */
static void neighbours(ct_group *group, void *arg)
{
    void *first, *memory[2], *there;
    struct device *gpu = open_gpu(WHOLE, 0, &first);
    struct device_handle handles[2];

    (void)arg;
    for (int round = 1; gpu && round <= 2; round++) {
        for (int i = 0; i < 2 && ct_rank(group) == 0; i++) {
            memory[i] = device_alloc(5000, (unsigned char)(10 * round + i));
            EXPECT_OK(cuda_export(gpu, memory[i], 5000, &handles[i]));
        }
        EXPECT_OK(ct_broadcast(group, handles, sizeof handles, CT_U8, 0, NULL));
        for (int i = 0; i < 2; i++) {
            EXPECT_OK(cuda_import(gpu, &handles[i], &user, &there));
            EXPECT(closed_gates(gpu, there, (unsigned char)(10 * round + i), 5000));
        }
        EXPECT_OK(ct_barrier(group, NULL));
        for (int i = 0; i < 2 && ct_rank(group) == 0; i++)
            device_free(memory[i]);
    }
    cuda_put(&user);
    device_free(first);
}

static void a_block_that_was_freed_with_two_allocations_is_mapped_no_more(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_BLOCKS", "shared", 1);
    run_processes(2, neighbours, NULL);
    unsetenv("FAKE_CUDA_BLOCKS");
}

/* Two users of one memory of rank 0's, which may free it when both need it no more. */
static void two_users(ct_group *group, void *arg)
{
    static char other;
    struct device_handle handle;
    void *memory, *there;
    struct device *gpu = open_gpu(1000, 1, &memory);

    (void)arg;
    if (!gpu)
        return;
    if (ct_rank(group) == 0)
        EXPECT_OK(cuda_export(gpu, memory, 1000, &handle));
    EXPECT_OK(ct_broadcast(group, &handle, sizeof handle, CT_U8, 0, NULL));
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(cuda_import(gpu, &handle, &user, &there));
        EXPECT_OK(cuda_import(gpu, &handle, &other, &there));
    }
    cuda_put(&user);
    cuda_put(&user);
    EXPECT(closed_gates(gpu, there, 1, 1000));
    cuda_put(&other);
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(memory);
}

static void a_mapping_ends_with_its_last_user(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_MAPPED", "stays", 1);
    run_processes(3, two_users, NULL);
    unsetenv("FAKE_CUDA_MAPPED");
}

/* ---- What can't be shared --------------------------------------------------------- */

static void refusals(ct_group *group, void *arg)
{
    CUdeviceptr pooled, managed;
    struct device_handle handle;
    void *memory;
    struct device *gpu = open_gpu(BLOCK, 1, &memory);
    char *const last = gpu ? (char *)memory + BLOCK - 50 : NULL;

    (void)group;
    (void)arg;
    if (!gpu)
        return;
    EXPECT_CUDA(device.cuMemAllocAsync(&pooled, 64, NULL));
    EXPECT_CUDA(device.cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    EXPECT_CUDA(device.cuStreamSynchronize(NULL));
    EXPECT_ERROR(cuda_export(gpu, (void *)(uintptr_t)pooled, 64, &handle), CT_ERR_UNSUPPORTED,
                 "memory pool|cudaMalloc()");
    EXPECT_ERROR(cuda_export(gpu, (void *)(uintptr_t)managed, 64, &handle), CT_ERR_UNSUPPORTED,
                 "managed|cudaMalloc()");
    EXPECT_ERROR(cuda_export(gpu, last, 51, &handle), CT_ERR_INVALID, "51 bytes|: 50");
    EXPECT_OK(cuda_export(gpu, last, 50, &handle));
    EXPECT_CUDA(device.cuMemFree(pooled));
    EXPECT_CUDA(device.cuMemFree(managed));
    device_free(memory);
}

static void memory_that_can_not_be_mapped_elsewhere_is_refused_with_a_sentence(void **state)
{
    (void)state;
    run_processes(1, refusals, NULL);
}

static void no_ipc(ct_group *group, void *arg)
{
    struct device_handle handle;
    void *memory, *there;
    struct device *gpu;

    (void)arg;
    if (ct_rank(group) == 1)
        setenv("FAKE_CUDA_IPC", "0", 1);
    gpu = open_gpu(100, 1, &memory);
    if (!gpu)
        return;
    if (ct_rank(group) == 0)
        EXPECT_OK(cuda_export(gpu, memory, 100, &handle));
    EXPECT_OK(ct_broadcast(group, &handle, sizeof handle, CT_U8, 0, NULL));
    if (ct_rank(group) == 1) {
        EXPECT_ERROR(cuda_import(gpu, &handle, &user, &there), CT_ERR_UNSUPPORTED,
                     "mapping GPU memory of process|not supported");
        EXPECT_ERROR(cuda_export(gpu, memory, 100, &handle), CT_ERR_UNSUPPORTED,
                     "other processes|not supported");
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(memory);
}

static void a_machine_where_nothing_can_be_mapped_says_so(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, no_ipc, NULL);
}

/* ---- An owner that dies, or frees too early ---------------------------------------- */

/* A child with two allocations, whose handles it writes; then it waits for a byte, frees the
 * first and ends. */
static pid_t start_owner(int *to_read, int *to_write)
{
    int handles[2], words[2];
    pid_t child;

    if (pipe(handles) < 0 || pipe(words) < 0)
        return -1;
    child = fork();
    if (child == 0) {
        struct device_handle made[2];
        struct device *gpu;
        void *memory[2];
        char word;

        if (!device_open(0))
            _exit(1);
        for (int i = 0; i < 2; i++) {
            memory[i] = device_alloc(BLOCK, (unsigned char)(i + 1));
            if (!memory[i] || cuda_gpu_of(memory[i], &gpu) != CT_OK
                || cuda_export(gpu, memory[i], 1000, &made[i]) != CT_OK)
                _exit(1);
        }
        if (write(handles[1], made, sizeof made) != (ssize_t)sizeof made)
            _exit(1);
        if (read(words[0], &word, 1) == 1) {
            close(STDERR_FILENO); /* what it says as it ends is for no reader */
            device_free(memory[0]);
        }
        _exit(0);
    }
    close(handles[1]);
    close(words[0]);
    *to_read = handles[0];
    *to_write = words[1];
    return child;
}

/* A driver may take the handle for one of a device that is not there. */
static int is_of_no_owner(ct_status status)
{
    return (status == CT_ERR_CUDA || status == CT_ERR_UNSUPPORTED)
           && strstr(ct_last_error(), "mapping GPU memory of process");
}

static void owner_killed(ct_group *group, void *arg)
{
    struct device_handle handles[2];
    void *memory, *there, *never;
    struct device *gpu;
    int from_owner, to_owner, status;
    const pid_t owner = start_owner(&from_owner, &to_owner);

    (void)group;
    (void)arg;
    if (!EXPECT(owner > 0)
        || !EXPECT(read(from_owner, handles, sizeof handles) == (ssize_t)sizeof handles)
        || !(gpu = open_gpu(1, 1, &memory)))
        return;
    EXPECT_OK(cuda_import(gpu, &handles[0], &user, &there));
    EXPECT(kill(owner, SIGKILL) == 0);
    EXPECT(waitpid(owner, &status, 0) == owner);
    if (device_is_fake()) /* what a GPU does then is not known */
        EXPECT(closed_gates(gpu, there, 1, 1000));
    EXPECT(is_of_no_owner(cuda_import(gpu, &handles[1], &user, &never)));
    cuda_put(&user);
    EXPECT(is_of_no_owner(cuda_import(gpu, &handles[0], &user, &never)));
    device_free(memory);
    close(from_owner);
    close(to_owner);
}

static void an_owner_that_was_killed_is_an_error_and_no_hang(void **state)
{
    (void)state;
    run_processes(1, owner_killed, NULL);
}

static void owner_frees(ct_group *group, void *arg)
{
    struct device_handle handles[2];
    void *memory, *there;
    struct device *gpu;
    struct gate gate;
    CUstream stream;
    int from_owner, to_owner, status = 0;
    const pid_t owner = start_owner(&from_owner, &to_owner);

    (void)group;
    (void)arg;
    if (!EXPECT(owner > 0)
        || !EXPECT(read(from_owner, handles, sizeof handles) == (ssize_t)sizeof handles)
        || !(gpu = open_gpu(1, 1, &memory)))
        return;
    EXPECT_OK(cuda_import(gpu, &handles[0], &user, &there));
    EXPECT_CUDA(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT(gate_close(&gate, stream));
    EXPECT_CUDA(device.cuMemsetD8Async((CUdeviceptr)(uintptr_t)there, 3, 1000, stream));
    EXPECT(write(to_owner, "", 1) == 1);
    EXPECT(waitpid(owner, &status, 0) == owner);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    gate_open(&gate);
    EXPECT_CUDA(device.cuStreamSynchronize(stream));
    cuda_put(&user);
    EXPECT_CUDA(device.cuStreamDestroy(stream));
    device_free(memory);
    close(from_owner);
    close(to_owner);
}

static void an_owner_that_frees_what_another_process_still_uses_is_caught(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(1, owner_frees, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_read_and_write_one_memory),
        cmocka_unit_test(memory_that_was_freed_and_got_again_is_never_a_stale_mapping),
        cmocka_unit_test(what_is_stale_is_not_closed_while_a_stream_is_held),
        cmocka_unit_test(a_block_that_was_freed_with_two_allocations_is_mapped_no_more),
        cmocka_unit_test(a_mapping_ends_with_its_last_user),
        cmocka_unit_test(memory_that_can_not_be_mapped_elsewhere_is_refused_with_a_sentence),
        cmocka_unit_test(a_machine_where_nothing_can_be_mapped_says_so),
        cmocka_unit_test(an_owner_that_was_killed_is_an_error_and_no_hang),
        cmocka_unit_test(an_owner_that_frees_what_another_process_still_uses_is_caught),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
