/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan.c - which launches a fold is: kernels, blocks, and what fits one.  Nothing runs them.
 */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <string.h>

#include "cuda/launch_plan.h"

enum { PARTS = 150 };

static _Alignas(16) char memory[32];

struct seen {
    int launches;
    struct launch last;
};

static ct_status note_launch(const struct launch *launch, void *arg)
{
    struct seen *const seen = arg;

    seen->launches++;
    seen->last = *launch;
    return CT_OK;
}

static struct seen plan(const struct fold *fold, const struct fold_part *parts, int count,
                        int processors)
{
    struct seen seen = { 0 };

    EXPECT_OK(fold_plan(fold, NULL, parts, count, processors, 0, note_launch, &seen));
    return seen;
}

/* ---- What fits a launch ------------------------------------------------------------- */

static void more_sources_than_fit_a_launch_are_refused_with_a_sentence(void **state)
{
    const int sources = FOLD_MANY + 1;
    const struct fold fold = { CT_F32, CT_SUM, sources, 1, &sources };
    const void *src[FOLD_MANY + 1];
    void *dst = memory;
    struct seen seen = { 0 };

    (void)state;
    for (int s = 0; s < sources; s++)
        src[s] = memory;
    EXPECT_ERROR(fold_plan(&fold, NULL,
                           &(struct fold_part){ .dst = &dst, .src = src, .dsts = 1, .count = 4 }, 1,
                           1, 0, note_launch, &seen),
                 CT_ERR_UNSUPPORTED, "241 buffers|240 are the most");
    EXPECT(seen.launches == 0);
}

static void more_scaled_sources_than_fit_are_refused(void **state)
{
    const int sources = FOLD_SCALED + 1;
    const struct fold fold = { CT_C128, CT_SUM, sources, 1, &sources };
    const void *src[FOLD_SCALED + 1], *scalars[FOLD_SCALED + 1];
    void *dst = memory;
    struct seen seen = { 0 };

    (void)state;
    for (int s = 0; s < sources; s++)
        src[s] = scalars[s] = memory;
    EXPECT_ERROR(fold_plan(&fold, scalars,
                           &(struct fold_part){ .dst = &dst, .src = src, .dsts = 1, .count = 1 }, 1,
                           1, 0, note_launch, &seen),
                 CT_ERR_UNSUPPORTED, "81 buffers|scaled|80 are the most");
    EXPECT(seen.launches == 0);
}

/* Eight ranks' reduce_scatter, eleven ranks' all_to_all: as much as the parameters hold. */
static void parts_share_a_launch_as_long_as_they_fit(void **state)
{
    const int eight = 8, one = 1;
    const struct fold sum = { CT_F32, CT_SUM, 8, 1, &eight }, copy = { CT_U8, CT_MAX, 1, 1, &one };
    const void *src[8];
    void *dst = memory + 16;
    struct fold_part parts[PARTS];

    (void)state;
    for (int s = 0; s < 8; s++)
        src[s] = memory;
    for (int i = 0; i < PARTS; i++)
        parts[i] = (struct fold_part){ .dst = &dst, .src = src, .dsts = 1, .count = 4 };
    EXPECT(plan(&sum, parts, 45, 1).launches == 1);
    EXPECT(plan(&sum, parts, 46, 1).launches == 2);
    EXPECT(plan(&copy, parts, MOST_SPANS, 1).launches == 1);
    EXPECT(plan(&copy, parts, MOST_SPANS + 1, 1).launches == 2);
    EXPECT(MOST_SPANS >= 11 * 11);
    for (int i = 0; i < PARTS; i++)
        parts[i].count = i % 2 ? 0 : 4; /* what has nothing to do takes no place */
    EXPECT(plan(&copy, parts, PARTS, 1).launches == 1);
    parts[0].count = 0;
    EXPECT(plan(&copy, parts, 1, 1).launches == 0);
}

/* ---- Which kernel ------------------------------------------------------------------- */

static void the_kernels_of_the_common_sums_are_used(void **state)
{
    static const struct {
        ct_dtype dtype;
        ct_op op;
        int sources, dsts, shift; /* of the last source */
        enum kernel kernel;
    } rows[] = {
        { CT_F32, CT_SUM, 4, 4, 0, KERNEL_sum_f32_4 },
        { CT_F32, CT_AVG, 8, 8, 0, KERNEL_sum_f32_8 },
        { CT_F16, CT_SUM, 3, 1, 0, KERNEL_sum_f16_3 },
        { CT_BF16, CT_AVG, 2, 1, 4, KERNEL_sum_bf16_2 },
        { CT_F32, CT_SUM, 5, 1, 0, KERNEL_FOLD_F32 },
        { CT_F32, CT_MAX, 4, 1, 0, KERNEL_FOLD_F32 },
        { CT_F32, CT_SUM, 2, 9, 0, KERNEL_sum_f32_2 },
        { CT_C128, CT_SUM, 1, 8, 0, KERNEL_copy },
        { CT_C128, CT_SUM, 1, 9, 0, KERNEL_copy },
        { CT_C128, CT_SUM, 1, 1, 8, KERNEL_FOLD_U64 },
        { CT_U8, CT_SUM, 1, 1, 4, KERNEL_FOLD_U32 },
        { CT_F32, CT_SUM, 1, 1, 2, KERNEL_FOLD_U16 },
        { CT_F64, CT_SUM, 1, 1, 3, KERNEL_copy },
        { CT_F32, CT_SUM, 1, 1, 4, KERNEL_FOLD_U32 },
        { CT_BOOL, CT_SUM, 1, 1, 0, KERNEL_FOLD_BOOL },
    };

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const struct fold fold = { rows[r].dtype, rows[r].op, rows[r].sources, 1,
                                   &rows[r].sources };
        const void *src[9];
        void *dst[9];
        struct seen seen;

        for (int s = 0; s < rows[r].sources; s++)
            src[s] = memory;
        for (int d = 0; d < rows[r].dsts; d++)
            dst[d] = memory;
        src[rows[r].sources - 1] = (const char *)src[rows[r].sources - 1] + rows[r].shift;
        seen = plan(
            &fold, &(struct fold_part){ .dst = dst, .src = src, .dsts = rows[r].dsts, .count = 64 },
            1, 132);
        EXPECT(seen.launches == 1 && seen.last.kernel == rows[r].kernel);
    }
}

/* ---- Blocks ------------------------------------------------------------------------- */

static struct fold_span span_in(const struct launch *launch, int i)
{
    struct fold_span span;

    memcpy(&span, &launch->args.words[i * SPAN_WORDS], sizeof span);
    return span;
}

static const int both = 2;
static const struct fold sum_of_two = { CT_F32, CT_SUM, 2, 1, &both };
static const void *const far_src[] = { (void *)0x10000, (void *)0x20000 };
static void *const far_dst = (void *)0x30000;

static struct launch launch_of(size_t count)
{
    const struct seen seen = plan(
        &sum_of_two,
        &(struct fold_part){ .dst = &far_dst, .src = far_src, .dsts = 1, .count = count }, 1, 132);

    EXPECT(seen.launches == 1);
    return seen.last;
}

/* The most that the processors hold, and all of them before any has much. */
static void a_grid_fills_the_processors_and_is_no_larger(void **state)
{
    struct launch launch = launch_of(1);

    (void)state;
    EXPECT(launch.blocks == 1 && launch.threads == 128);
    launch = launch_of(1 << 16);
    EXPECT(launch.blocks == 64 && launch.threads == 128); /* 16384 pieces, two each */
    launch = launch_of(1 << 26);
    EXPECT(launch.blocks == 2 * 132 && launch.threads == BLOCK_THREADS);
    launch = launch_of((size_t)1 << 40);
    EXPECT(launch.blocks == 2 * 132);
    EXPECT(span_in(&launch, 0).count == (uint64_t)1 << 40 && span_in(&launch, 0).head == 0);
}

/* One part with 3/4 of the bytes has 3/4 of a full grid, and the smallest has a block. */
static void blocks_are_dealt_out_by_bytes(void **state)
{
    const struct fold_part parts[] = {
        { .dst = &far_dst, .src = far_src, .dsts = 1, .count = 3 << 26 },
        { .dst = &far_dst, .src = far_src, .dsts = 1, .count = 0 },
        { .dst = &far_dst, .src = far_src, .dsts = 1, .count = 1 << 26 },
        { .dst = &far_dst, .src = far_src, .dsts = 1, .count = 4 }
    };
    const struct launch launch = plan(&sum_of_two, parts, 4, 132).last;

    (void)state;
    EXPECT(launch.args.spans == 3 && launch.threads == BLOCK_THREADS);
    EXPECT(span_in(&launch, 0).first_block == 0);
    EXPECT(span_in(&launch, 1).first_block == 3 * 66 - 1); /* its share, rounded down */
    EXPECT(span_in(&launch, 2).first_block == 2 * 132 - 2);
    EXPECT(launch.blocks == 2 * 132 - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_sources_than_fit_a_launch_are_refused_with_a_sentence),
        cmocka_unit_test(more_scaled_sources_than_fit_are_refused),
        cmocka_unit_test(parts_share_a_launch_as_long_as_they_fit),
        cmocka_unit_test(the_kernels_of_the_common_sums_are_used),
        cmocka_unit_test(a_grid_fills_the_processors_and_is_no_larger),
        cmocka_unit_test(blocks_are_dealt_out_by_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
