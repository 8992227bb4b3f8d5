/* SPDX-License-Identifier: Apache-2.0 */
/* test_ptx.c - what nvcc made of the kernels gives the bits of combine_fold_to().
 *
 * Their PTX, of which ptxas and drivers make all machine code, is interpreted (tests/ptx): the same
 * cases as in test_kernels.c, fewer of them.  What ptxas makes of it only a GPU can show.
 * CT_TEST_PTX: another file, to see that what is wrong in it is found. */
#include "tests/cuda/kernels/folds.h"

#if defined(CT_WITH_CUDA) && !defined(CT_WITHOUT_KERNELS)

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/ptx/ptx.h"

const struct effort effort = { 30, 16 };

static struct ptx *ptx;

/* ---- What a launch may reach ---------------------------------------------------------- */

enum { MOST_RANGES = FOLD_WORDS + 1 };

static void add_range(struct ptx_ranges *ranges, uint64_t begin, uint64_t bytes)
{
    ranges->range[ranges->count++] = (struct ptx_range){ begin, begin + bytes };
}

#define FEW_SIZE(name, NAME, ...) [KERNEL_##name] = CT_##NAME,
#define FOLD_SIZE(NAME, ...) [KERNEL_FOLD_##NAME] = CT_##NAME,
static const ct_dtype dtypes[KERNEL_COUNT] = { FEW_KERNELS(FEW_SIZE) DTYPES(FOLD_SIZE) };

/* The sources, the destinations, and the word that calls it off; nothing beside them. */
static void add_ranges(const struct launch *launch, struct ptx_ranges *read,
                       struct ptx_ranges *written)
{
    const struct fold_args *const args = &launch->args;

    for (uint32_t k = 0; k < args->spans; k++) {
        struct fold_span span;
        uint64_t bytes;

        memcpy(&span, &args->words[k * SPAN_WORDS], sizeof span);
        bytes = span.count * ct_dtype_size(dtypes[launch->kernel]);
        for (uint32_t p = 0; p < args->sources + span.dsts; p++)
            add_range(p < args->sources ? read : written, args->words[span.pointers + p], bytes);
    }
    if (args->called_off)
        add_range(read, args->called_off, sizeof(uint32_t));
    ptx_sort(read);
    ptx_sort(written);
}

void execute(const struct launch *launch)
{
    static struct ptx_range read[MOST_RANGES], written[MOST_RANGES];
    struct ptx_launch of_ptx = { .kernel = kernel_name(launch->kernel),
                                 .blocks = launch->blocks,
                                 .threads = launch->threads,
                                 .parameter = &launch->args,
                                 .bytes = sizeof launch->args,
                                 .read = { read, 0 },
                                 .written = { written, 0 },
                                 .backwards = (int)any(2) };
    char words[PTX_WORDS];

    add_ranges(launch, &of_ptx.read, &of_ptx.written);
    if (!ptx_run(ptx, &of_ptx, words))
        expect_fails(__FILE__, __LINE__, "%s", words);
}

/* ---- All of it ------------------------------------------------------------------------ */

/* The kernels of few sources to their last instruction, but for loads and stores of copy and
 * exchange, by bytes what are bytes already.  Half of the others is for averages, and of that the
 * plan asks for sums only, so they can't run to more than some three fifths. */
static void the_cases_above_came_to_all_that_the_plan_asks_for(void **state)
{
    unsigned all, ran;

    (void)state;
    for (int k = 0; k < KERNEL_COUNT; k++) {
        const char *const name = kernel_name((enum kernel)k);
        const int is_few = k < KERNEL_FOLD_I8;

        ptx_instructions(ptx, name, &all, &ran);
        if (all == 0 || (is_few ? all - ran > (k == KERNEL_exchange ? 8u : 4u) : 5 * ran < 2 * all))
            expect_fails(__FILE__, __LINE__, "%s: %u of %u instructions have run", name, ran, all);
    }
    EXPECT(ptx_kernel(ptx, KERNEL_COUNT - 1) && !ptx_kernel(ptx, KERNEL_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLD_CASES,
        cmocka_unit_test(the_cases_above_came_to_all_that_the_plan_asks_for),
    };
    const char *const other = getenv("CT_TEST_PTX"), *const path = other ? other : KERNELS_PTX;
    char words[PTX_WORDS];
    int failed;

    if (access(path, R_OK) != 0) {
        printf("no PTX of the kernels: %s is not here\n", path); /* a packed folder */
        return 77;
    }
    ptx = ptx_read_file(path, words);
    if (!ptx) {
        fprintf(stderr, "%s\n", words);
        return 1;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    ptx_free(ptx);
    return failed;
}

#else

#include <stdio.h>

int main(void)
{
    puts("no PTX of the kernels: built without nvcc");
    return 77;
}

#endif
