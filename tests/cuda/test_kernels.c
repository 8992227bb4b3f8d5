/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernels.c - a fold on the GPU gives the bits of combine_fold_to().
 *
 * The launches are those of cuda/fold_plan.c; the kernels' bodies are compiled for
 * the host and run one thread after the other.  What this can't show is what nvcc
 * makes of the bodies, and the few lines that are the GPU's own (__CUDA_ARCH__). */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/fold_plan.h"
#include "runtime/combine_kernels.h"
#include "tests/cuda/elements.h"
#include "tests/fake/kernels.h"

enum { MOST = 300, LONG = 5000, SOURCES = 9, COPIES = 9, GUARD = 64 };
enum { ROOM = LONG * 16 + 16 + 2 * GUARD };

/* ---- Running a fold as the GPU would ---------------------------------------------- */

struct seen {
    int launches;
    enum kernel last;
};

static ct_status run_launch(const struct launch *launch, void *arg)
{
    host_kernel_fn *const kernel = host_kernel(kernel_name(launch->kernel));
    struct seen *const seen = arg;

    EXPECT(kernel && launch->blocks > 0 && launch->threads <= BLOCK_THREADS);
    seen->launches++;
    seen->last = launch->kernel;
    kernel(&launch->args, launch->blocks, launch->threads);
    return CT_OK;
}

static struct seen run(const struct fold *fold, void *const *dst, int dsts, const void *const *src,
                       size_t count, int processors)
{
    struct seen seen = { 0, KERNEL_COUNT };

    EXPECT_OK(fold_plan(fold, dst, dsts, src, count, processors, run_launch, &seen));
    return seen;
}

/* ---- One fold in all its forms ---------------------------------------------------- */

/* A way to call: what the plan and the kernels can tell apart. */
struct way {
    int sources, copies, in_place; /* in_place: the source that is the first destination, or -1 */
    size_t count, shift;
    int alike; /* all pointers share their misalignment */
    int processors;
};

static char area[SOURCES + COPIES][ROOM], wanted[LONG * 16];

static char *place_in(int row, const struct way *way)
{
    return area[row] + GUARD + (way->alike || row == 0 ? way->shift : way->shift + any(16)) % 16;
}

static void check(ct_dtype dtype, ct_op op, const struct way *way)
{
    struct fold fold = { dtype, op, way->sources, 0, NULL };
    const size_t bytes = way->count * ct_dtype_size(dtype);
    int node_end[2 * SOURCES];
    char *src[SOURCES], *dst[COPIES];
    void *const to = wanted;

    cut(&fold, node_end);
    for (int s = 0; s < way->sources; s++) {
        src[s] = place_in(s, way);
        fill(dtype, src[s], way->count);
    }
    for (int d = 0; d < way->copies; d++)
        dst[d] = place_in(SOURCES + d, way);
    if (way->in_place >= 0)
        dst[0] = src[way->in_place];
    combine_fold_to(&fold, &to, 1, (const void *const *)src, way->count, 0);
    for (int d = 0; d < way->copies; d++) {
        memset(dst[d] - 48, 0x55, 48);
        memset(dst[d] + bytes, 0x55, 48);
    }
    run(&fold, (void *const *)dst, way->copies, (const void *const *)src, way->count,
        way->processors);
    for (int d = 0; d < way->copies; d++) {
        int guarded = 1;

        for (size_t g = 1; g <= 48; g++)
            guarded &= dst[d][-(int)g] == 0x55 && dst[d][bytes + g - 1] == 0x55;
        if (!guarded || !same(dtype, op, dst[d], wanted, way->count))
            expect_fails(__FILE__, __LINE__,
                         "%s of %d x %zu %s, %d nodes, to %d, in place %d, shift %zu%s%s",
                         op_name(op), way->sources, way->count, dtype_name(dtype), fold.nodes,
                         way->copies, way->in_place, way->shift, way->alike ? ", alike" : "",
                         guarded ? "" : ": beyond its end");
    }
}

static void check_drawn(ct_dtype dtype, ct_op op, int sources, size_t count, size_t shift)
{
    static const int processors[] = { 1, 2, 132 };
    const struct way way = { .sources = sources,
                             .copies = 1 + (int)any(any(4) ? 2 : COPIES),
                             .in_place = any(2) ? (int)any((unsigned)sources) : -1,
                             .count = count,
                             .shift = shift,
                             .alike = any(3) > 0,
                             .processors = processors[any(3)] };

    check(dtype, op, &way);
}

/* Counts around the edges of a piece, and the rest of each call is drawn. */
static void all_sources_and_alignments_give_the_hosts_bits(void **state)
{
    (void)state;
    EVERY_ROW(dtype, op)
    for (int sources = 1; sources <= SOURCES; sources++)
        for (size_t shift = 0; shift < 16; shift++) {
            const size_t lanes = 16 / ct_dtype_size((ct_dtype)dtype), edge = any(5) * lanes;

            check_drawn((ct_dtype)dtype, op, sources, edge + any(3), shift);
            check_drawn((ct_dtype)dtype, op, sources, edge > 0 ? edge - 1 : 0, shift);
            check_drawn((ct_dtype)dtype, op, sources, any(MOST), shift);
        }
}

static void all_small_counts_give_the_hosts_bits(void **state)
{
    (void)state;
    EVERY_ROW(dtype, op)
    for (size_t count = 0; count < 100; count++)
        check_drawn((ct_dtype)dtype, op, 1 + (int)any(SOURCES), count, any(16));
}

/* More than the threads of all blocks take at once. */
static void long_folds_give_the_hosts_bits(void **state)
{
    (void)state;
    EVERY_ROW(dtype, op)
    for (int sources = 1; sources <= SOURCES; sources++)
        check_drawn((ct_dtype)dtype, op, sources, LONG - any(LONG / 2), any(2) * any(16));
}

/* Four pages that can be touched, and one on either side that can't. */
enum { PAGE = 4096, PAGES = 4 * PAGE };

static char *map_guarded(void)
{
    char *const map = mmap(NULL, PAGES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    EXPECT(map != MAP_FAILED && mprotect(map + PAGE, PAGES, PROT_READ | PROT_WRITE) == 0);
    return map + PAGE;
}

static void nothing_beyond_the_ends_is_touched(void **state)
{
    char *pages[SOURCES + 1];
    const void *src[SOURCES];

    (void)state;
    for (int b = 0; b <= SOURCES; b++)
        pages[b] = map_guarded();
    EVERY_ROW(dtype, op)
    for (int sources = 1; sources <= SOURCES; sources++)
        for (int at_end = 0; at_end < 2; at_end++) {
            const struct fold fold = { (ct_dtype)dtype, op, sources, 1, &sources };
            const size_t size = ct_dtype_size((ct_dtype)dtype), count = 1 + any(PAGES / 16);
            const size_t offset = at_end ? PAGES - count * size : 0;
            void *const dst = pages[SOURCES] + offset;

            for (int s = 0; s < sources; s++)
                src[s] = pages[s] + offset;
            run(&fold, &dst, 1, src, count, 132);
        }
    for (int b = 0; b <= SOURCES; b++)
        munmap(pages[b] - PAGE, PAGES + 2 * PAGE);
}

/* ---- Many sources, many destinations
 * --------------------------------------------------------------- */

enum { COUNT = 40, CROWD = 600 };
static double crowd[CROWD][COUNT], crowd_wanted[COUNT];

/* Sums of f32 whose order shows, cut into nodes of `each` sources. */
static void check_crowd(ct_dtype dtype, int sources, int dsts, int each)
{
    const void *src[CROWD];
    void *dst[CROWD], *const to = crowd_wanted;
    int node_end[CROWD], nodes = 0;
    struct fold fold = { dtype, CT_AVG, sources, 0, node_end };

    for (int s = 0; s < sources; s++) {
        src[s] = crowd[s];
        for (int i = 0; i < COUNT; i++)
            ((float *)crowd[s])[i] = ldexpf((float)any(1000) - 500, (int)any(40));
        if ((s + 1) % each == 0 || s + 1 == sources)
            node_end[nodes++] = s + 1;
    }
    fold.nodes = nodes;
    combine_fold_to(&fold, &to, 1, src, COUNT, 0);
    for (int d = 0; d < dsts; d++)
        dst[d] = crowd[(d + 3) % CROWD]; /* in place of sources, and where there are none */
    run(&fold, dst, dsts, src, COUNT, 4);
    for (int d = 0; d < dsts; d++)
        if (!same(dtype, CT_AVG, dst[d], to, COUNT))
            expect_fails(__FILE__, __LINE__, "%d sources to %d, nodes of %d", sources, dsts, each);
}

static void many_sources_are_folded_node_by_node(void **state)
{
    static const int nodes_of[] = { 1, 2, 7, 32, 33, FOLD_MANY };

    (void)state;
    for (size_t e = 0; e < sizeof nodes_of / sizeof *nodes_of; e++)
        for (int sources = 10; sources <= FOLD_MANY; sources += 23)
            check_crowd(CT_F32, sources, 1 + (int)any(20), nodes_of[e]);
    check_crowd(CT_F32, FOLD_MANY, FOLD_MANY, 5);
    check_crowd(CT_BF16, FOLD_MANY, FOLD_MANY, FOLD_MANY);
    check_crowd(CT_I8, FOLD_MANY, 3, FOLD_MANY);
}

static void more_destinations_than_fit_a_launch_are_copies_of_the_first(void **state)
{
    (void)state;
    check_crowd(CT_F32, 5, FOLD_MANY + 1, 2);
    check_crowd(CT_F64, 1, 2 * FOLD_MANY + 17, 1);
    check_crowd(CT_I32, 12, CROWD, 12);
}

static void more_sources_than_fit_a_launch_are_refused_with_a_sentence(void **state)
{
    const int sources = FOLD_MANY + 1;
    const struct fold fold = { CT_F32, CT_SUM, sources, 1, &sources };
    const void *src[FOLD_MANY + 1];
    void *dst = crowd[0];
    struct seen seen = { 0, KERNEL_COUNT };

    (void)state;
    for (int s = 0; s < sources; s++)
        src[s] = crowd[s];
    EXPECT_ERROR(fold_plan(&fold, &dst, 1, src, COUNT, 1, run_launch, &seen), CT_ERR_UNSUPPORTED,
                 "241 buffers|240 are the most");
    EXPECT(seen.launches == 0);
}

/* ---- All values
 * -------------------------------------------------------------------------------------- */

static void check_pairs(ct_dtype dtype, const void *left, const void *right, size_t count)
{
    static char got[65536 * 16], host[65536 * 16];
    const void *const src[] = { left, right };
    void *const to_got = got, *const to_host = host;
    const int both = 2;

    for (int op = 0; op < OP_COUNT; op++) {
        const struct fold fold = { dtype, op, 2, 1, &both };

        if (!combine_defined(dtype, op))
            continue;
        run(&fold, &to_got, 1, src, count, 132);
        combine_fold_to(&fold, &to_host, 1, src, count, 0);
        if (!same(dtype, op, got, host, count))
            expect_fails(__FILE__, __LINE__, "%s of two %s", op_name(op), dtype_name(dtype));
    }
}

static void all_pairs_of_bytes_give_the_hosts_bits(void **state)
{
    static const ct_dtype dtypes[] = { CT_F8E4M3, CT_F8E5M2, CT_I8, CT_U8, CT_BOOL };
    static uint8_t left[65536], right[65536];

    (void)state;
    for (unsigned i = 0; i < 65536; i++)
        left[i] = (uint8_t)(i >> 8), right[i] = (uint8_t)i;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        check_pairs(dtypes[d], left, right, 65536);
}

/* Each f16 and bf16 with zeros, infinities, NaNs, the least and greatest numbers, and others. */
static void all_halves_with_some_give_the_hosts_bits(void **state)
{
    static const uint16_t some[] = {
        0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x007f, 0x0080, 0x7c00, 0xfc00, 0x7f80,
        0xff80, 0x7c01, 0x7e00, 0xfe55, 0x7bff, 0xfbff, 0x7f7f, 0x3c00, 0xbc00, 0x3f80, 0xbf80,
        0x3555, 0xb555, 0x1234, 0x9abc, 0x5640, 0x6bff, 0x2e66, 0x477f, 0xc0de, 0x4248
    };
    static uint16_t left[65536], right[65536];

    (void)state;
    for (size_t s = 0; s < sizeof some / sizeof *some; s++) {
        for (unsigned i = 0; i < 65536; i++)
            left[i] = (uint16_t)i, right[i] = some[s];
        check_pairs(CT_F16, left, right, 65536);
        check_pairs(CT_BF16, left, right, 65536);
        check_pairs(CT_F16, right, left, 65536);
        check_pairs(CT_BF16, right, left, 65536);
    }
}

/* Of f32 and f64: zeros, denormals, what overflows, infinities, NaNs, and ties, in all pairs. */
static void all_pairs_of_special_numbers_give_the_hosts_bits(void **state)
{
    static const double some[] = { 0.0,       -0.0,    1,        -1,       3,        1.0 / 3,
                                   1e-45,     -1e-45,  1e-38,    1.2e-38,  -1.1e-38, 3.4e38,
                                   -3.4e38,   1e30,    1e-30,    5e-324,   -5e-324,  1e-308,
                                   2.3e-308,  1.7e308, -1.7e308, 1e200,    1e-200,   INFINITY,
                                   -INFINITY, NAN,     -NAN,     16777217, 0.1,      1 << 24,
                                   7,         49 };
    enum { SOME = sizeof some / sizeof *some, PAIRS = SOME * SOME };
    static double left[PAIRS * 2], right[PAIRS * 2];
    static float left_single[PAIRS * 2], right_single[PAIRS * 2];

    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        left[i] = some[i / SOME], right[i] = some[i % SOME];
        left_single[i] = (float)left[i], right_single[i] = (float)right[i];
    }
    check_pairs(CT_F64, left, right, PAIRS);
    check_pairs(CT_F32, left_single, right_single, PAIRS);
    check_pairs(CT_C128, left, right, PAIRS / 2);
    check_pairs(CT_C64, left_single, right_single, PAIRS / 2);
}

/* ---- Which kernel
 * --------------------------------------------------------------------------------------- */

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
        { CT_F32, CT_SUM, 2, 9, 0, KERNEL_FOLD_F32 },
        { CT_C128, CT_SUM, 1, 8, 0, KERNEL_copy },
        { CT_C128, CT_SUM, 1, 9, 0, KERNEL_FOLD_U64 },
        { CT_F32, CT_SUM, 1, 1, 4, KERNEL_FOLD_U32 },
        { CT_BOOL, CT_SUM, 1, 1, 0, KERNEL_FOLD_BOOL },
    };

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const struct fold fold = { rows[r].dtype, rows[r].op, rows[r].sources, 1,
                                   &rows[r].sources };
        const void *src[SOURCES];
        void *dst[COPIES];

        for (int s = 0; s < rows[r].sources; s++)
            src[s] = area[s] + (-(uintptr_t)area[s] % 16);
        for (int d = 0; d < rows[r].dsts; d++)
            dst[d] = area[SOURCES + d] + (-(uintptr_t)area[SOURCES + d] % 16);
        src[rows[r].sources - 1] = (const char *)src[rows[r].sources - 1] + rows[r].shift;
        EXPECT(run(&fold, dst, rows[r].dsts, src, 64, 132).last == rows[r].kernel);
    }
}

/* The most that the processors hold, and all of them before any has much. */
static ct_status note_launch(const struct launch *launch, void *arg)
{
    *(struct launch *)arg = *launch;
    return CT_OK;
}

static void a_grid_fills_the_processors_and_is_no_larger(void **state)
{
    const int both = 2;
    const struct fold fold = { CT_F32, CT_SUM, 2, 1, &both };
    const void *const src[] = { (void *)0x10000, (void *)0x20000 };
    void *const dst = (void *)0x30000;
    struct launch launch;

    (void)state;
    EXPECT_OK(fold_plan(&fold, &dst, 1, src, 0, 132, note_launch, NULL)); /* nothing to launch */
    EXPECT_OK(fold_plan(&fold, &dst, 1, src, 1, 132, note_launch, &launch));
    EXPECT(launch.blocks == 1 && launch.threads == 128);
    EXPECT_OK(fold_plan(&fold, &dst, 1, src, 1 << 16, 132, note_launch, &launch));
    EXPECT(launch.blocks == 64 && launch.threads == 128); /* 16384 pieces, two each */
    EXPECT_OK(fold_plan(&fold, &dst, 1, src, 1 << 26, 132, note_launch, &launch));
    EXPECT(launch.blocks == 4 * 132 && launch.threads == BLOCK_THREADS);
    EXPECT_OK(fold_plan(&fold, &dst, 1, src, (size_t)1 << 40, 132, note_launch, &launch));
    EXPECT(launch.blocks == 4 * 132 && launch.args.few.span.pieces == (uint64_t)1 << 38);
}

static int visited;

static void count_pointer(uint64_t *pointer)
{
    visited += *pointer == 77;
}

static void the_host_kernels_know_their_arguments(void **state)
{
    struct fold_few few = { .span = { .sources = 3, .dsts = 2 }, .src = { 77, 77, 77, 1 } };
    struct fold_many many = { .span = { .sources = 1, .dsts = FOLD_MANY }, .src = { 77 } };

    (void)state;
    EXPECT(!host_kernel("no such kernel") && host_kernel_bytes("no such kernel") == 0);
    for (int k = 0; k < KERNEL_COUNT; k++)
        EXPECT(host_kernel(kernel_name((enum kernel)k)));
    EXPECT(host_kernel_bytes("copy") == sizeof few && host_kernel_bytes("fold_i8") == sizeof many);
    few.dst[1] = 77;
    host_kernel_pointers("sum_f32_3", &few, count_pointer);
    EXPECT(visited == 4);
    many.dst[FOLD_MANY - 1] = 77;
    host_kernel_pointers("fold_bool", &many, count_pointer);
    EXPECT(visited == 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sources_and_alignments_give_the_hosts_bits),
        cmocka_unit_test(all_small_counts_give_the_hosts_bits),
        cmocka_unit_test(long_folds_give_the_hosts_bits),
        cmocka_unit_test(nothing_beyond_the_ends_is_touched),
        cmocka_unit_test(many_sources_are_folded_node_by_node),
        cmocka_unit_test(more_destinations_than_fit_a_launch_are_copies_of_the_first),
        cmocka_unit_test(more_sources_than_fit_a_launch_are_refused_with_a_sentence),
        cmocka_unit_test(all_pairs_of_bytes_give_the_hosts_bits),
        cmocka_unit_test(all_halves_with_some_give_the_hosts_bits),
        cmocka_unit_test(all_pairs_of_special_numbers_give_the_hosts_bits),
        cmocka_unit_test(the_kernels_of_the_common_sums_are_used),
        cmocka_unit_test(a_grid_fills_the_processors_and_is_no_larger),
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
