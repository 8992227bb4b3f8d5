/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernels.c - the kernels' bodies, compiled for the host, give the bits of combine_fold_to().
 *
 * They run one thread after the other.  What this can't show is what nvcc makes of the bodies
 * (test_ptx.c), and the few lines that are the GPU's own (__CUDA_ARCH__). */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <string.h>

#include "tests/cuda/kernels/folds.h"
#include "tests/fake/kernels.h"

const struct effort effort = { 1, 1 };

void execute(const struct launch *launch)
{
    host_kernel_fn *const kernel = host_kernel(kernel_name(launch->kernel));

    if (EXPECT(kernel))
        kernel(&launch->args, 0, launch->blocks, launch->threads);
}

static int visited, written;

static void count_pointer(uint64_t *pointer, int is_written)
{
    visited += *pointer == 77;
    written += *pointer == 77 && is_written;
}

static void the_host_kernels_know_their_arguments(void **state)
{
    const struct fold_span spans[] = { { .pointers = 100, .dsts = 2 },
                                       { .pointers = 200, .dsts = 240 } };
    struct fold_args args = { .spans = 2, .sources = 3, .words = { [99] = 77, [105] = 77 } };

    (void)state;
    EXPECT(!host_kernel("no such kernel") && host_kernel_bytes("no such kernel") == 0);
    for (int k = 0; k < KERNEL_COUNT; k++)
        EXPECT(host_kernel(kernel_name((enum kernel)k))
               && host_kernel_bytes(kernel_name((enum kernel)k)) == sizeof args);
    memcpy(args.words, spans, sizeof spans);
    host_kernel_pointers("sum_f32_3", &args, count_pointer);
    EXPECT(visited == 0);
    args.words[100] = args.words[104] = args.words[200] = args.words[442] = 77;
    host_kernel_pointers("fold_bool", &args, count_pointer);
    EXPECT(visited == 4 && written == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLD_CASES,
        cmocka_unit_test(the_host_kernels_know_their_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
