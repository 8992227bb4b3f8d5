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

static struct seen run_scaled(const struct fold *fold, const void *const *scalars,
                              const struct fold_part *parts, int count, int processors)
{
    struct seen seen = { 0, KERNEL_COUNT };

    EXPECT_OK(fold_plan(fold, scalars, parts, count, processors, 0, run_launch, &seen));
    return seen;
}

static struct seen run_parts(const struct fold *fold, const struct fold_part *parts, int count,
                             int processors)
{
    return run_scaled(fold, NULL, parts, count, processors);
}

static struct seen run(const struct fold *fold, void *const *dst, int dsts, const void *const *src,
                       size_t count, int processors)
{
    return run_parts(fold, &(struct fold_part){ dst, src, dsts, count }, 1, processors);
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
    EXPECT_ERROR(fold_plan(&fold, NULL, &(struct fold_part){ &dst, src, 1, COUNT }, 1, 1, 0,
                           run_launch, &seen),
                 CT_ERR_UNSUPPORTED, "241 buffers|240 are the most");
    EXPECT(seen.launches == 0);
}

/* By a kernel for few sources, and by one for any. */
static void what_is_called_off_does_nothing(void **state)
{
    static const ct_dtype dtypes[] = { CT_F32, CT_I16 };
    const void *src[] = { crowd[0], crowd[1] };
    const int two = 2;

    (void)state;
    for (int i = 0; i < 2; i++)
        for (uint32_t word = 2; word-- > 0;) {
            const struct fold fold = { dtypes[i], CT_SUM, 2, 1, &two };
            unsigned char to[64], before[64];
            void *dst = to;
            const struct fold_part part = { &dst, src, 1, 8 };
            struct seen seen = { 0, KERNEL_COUNT };

            memset(to, 0xEE, sizeof to);
            memcpy(before, to, sizeof to);
            EXPECT_OK(fold_plan(&fold, NULL, &part, 1, 1, (uintptr_t)&word, run_launch, &seen));
            EXPECT(seen.launches == 1 && (memcmp(to, before, sizeof to) == 0) == (word != 0));
        }
}

/* ---- Many parts
 * ------------------------------------------------------------------------------------ */

enum { PARTS = 150, EACH = 200 };

/* Parts of one fold with counts, places and destinations of their own, some with nothing to do. */
struct parts {
    char memory[PARTS][SOURCES + 3][EACH * 8 + 2 * 16];
    const void *src[PARTS][SOURCES];
    void *dst[PARTS][3];
    struct fold_part part[PARTS];
    char before[PARTS][SOURCES + 3][EACH * 8 + 2 * 16];
};

static void draw_parts(struct parts *p, ct_dtype dtype, int sources, int count)
{
    for (int i = 0; i < count; i++) {
        const size_t shift = any(16), n = any(4) ? any(EACH) : 0;
        const int alike = (int)any(2), dsts = (int)any(4);

        for (int s = 0; s < SOURCES + 3; s++) {
            char *const at = p->memory[i][s] + (alike ? shift : any(16));

            memset(p->memory[i][s], 0x55, sizeof p->memory[i][s]);
            if (s < sources)
                fill(dtype, at, n);
            if (s < SOURCES)
                p->src[i][s] = at;
            else
                p->dst[i][s - SOURCES] = at;
        }
        if (any(2)) /* in place */
            p->dst[i][0] = (void *)(uintptr_t)p->src[i][any((unsigned)sources)];
        p->part[i] = (struct fold_part){ p->dst[i], p->src[i], dsts, n };
    }
    memcpy(p->before, p->memory, sizeof p->memory);
}

/* The same by the host in `before`, whose addresses are as far from it as those of memory. */
static void fold_before(struct parts *p, const struct fold *fold, int count)
{
    const ptrdiff_t apart = (char *)p->before - (char *)p->memory;

    for (int i = 0; i < count; i++) {
        const void *src[SOURCES];
        void *dst[3];

        for (int s = 0; s < SOURCES; s++)
            src[s] = (const char *)p->src[i][s] + apart;
        for (int d = 0; d < 3; d++)
            dst[d] = (char *)p->dst[i][d] + apart;
        if (p->part[i].dsts > 0)
            combine_fold_to(fold, dst, p->part[i].dsts, src, p->part[i].count, 0);
    }
}

/* By ranges of elements where the bits of NaN may differ, and all other bytes. */
static void check_parts(struct parts *p, ct_dtype dtype, ct_op op, int sources, int count)
{
    static const int processors[] = { 1, 2, 132 };
    const ptrdiff_t apart = (char *)p->before - (char *)p->memory;
    struct fold fold = { dtype, op, sources, 0, NULL };
    int node_end[2 * SOURCES];

    cut(&fold, node_end);
    draw_parts(p, dtype, sources, count);
    fold_before(p, &fold, count);
    run_parts(&fold, p->part, count, processors[any(3)]);
    for (int i = 0; i < count; i++)
        for (int d = 0; d < p->part[i].dsts; d++) {
            char *const got = p->dst[i][d], *const host = got + apart;

            if (!same(dtype, op, got, host, p->part[i].count))
                expect_fails(__FILE__, __LINE__, "%s of %d %s, part %d of %d, to %d of %d",
                             op_name(op), sources, dtype_name(dtype), i, count, d, p->part[i].dsts);
            memcpy(host, got, p->part[i].count * ct_dtype_size(dtype));
        }
    EXPECT(!memcmp(p->memory, p->before, sizeof p->memory)); /* nothing else has changed */
}

static void many_parts_are_folded_as_if_each_were_alone(void **state)
{
    struct parts *const p = calloc(1, sizeof *p);

    (void)state;
    EVERY_ROW(dtype, op)
    if (ct_dtype_size((ct_dtype)dtype) <= 8)
        for (int sources = 1; sources <= SOURCES; sources++)
            check_parts(p, (ct_dtype)dtype, op, sources, 1 + (int)any(any(3) ? 20 : PARTS));
    free(p);
}

/* Eight ranks' reduce_scatter, eleven ranks' all_to_all: as much as the parameters hold. */
static void parts_share_a_launch_as_long_as_they_fit(void **state)
{
    static _Alignas(16) char memory[32];
    const int eight = 8, one = 1;
    const struct fold sum = { CT_F32, CT_SUM, 8, 1, &eight }, copy = { CT_U8, CT_MAX, 1, 1, &one };
    const void *src[8];
    void *dst = memory + 16;
    struct fold_part parts[PARTS];

    (void)state;
    for (int s = 0; s < 8; s++)
        src[s] = memory;
    for (int i = 0; i < PARTS; i++)
        parts[i] = (struct fold_part){ &dst, src, 1, 4 };
    EXPECT(run_parts(&sum, parts, 45, 1).launches == 1);
    EXPECT(run_parts(&sum, parts, 46, 1).launches == 2);
    EXPECT(run_parts(&copy, parts, MOST_SPANS, 1).launches == 1);
    EXPECT(run_parts(&copy, parts, MOST_SPANS + 1, 1).launches == 2);
    EXPECT(MOST_SPANS >= 11 * 11);
    for (int i = 0; i < PARTS; i++)
        parts[i].count = i % 2 ? 0 : 4; /* what has nothing to do takes no place */
    EXPECT(run_parts(&copy, parts, PARTS, 1).launches == 1);
    parts[0].count = 0;
    EXPECT(run_parts(&copy, parts, 1, 1).launches == 0);
}

/* ---- Scaled sources
 * ----------------------------------------------------------------------------------- */

/* Some of the sources have a scalar, and are on the host scaled first. */
static void check_scaled(ct_dtype dtype, int sources, size_t count)
{
    static char scaled[SOURCES][EACH * 16];
    struct fold fold = { dtype, CT_SUM, sources, 0, NULL };
    const struct way way = { .shift = any(16), .alike = (int)any(2) };
    char scalar[SOURCES][16], *src[SOURCES], *dst[2];
    const void *scalars[SOURCES], *host[SOURCES];
    int node_end[2 * SOURCES];
    void *const to = wanted;

    cut(&fold, node_end);
    for (int s = 0; s < sources; s++) {
        src[s] = place_in(s, &way);
        fill(dtype, src[s], count);
        fill(dtype, scalar[s], 1);
        scalars[s] = any(4) ? scalar[s] : NULL;
        host[s] = scalars[s] ? scaled[s] : src[s];
        if (scalars[s])
            combine_scale(dtype, scaled[s], src[s], count, scalars[s]);
    }
    dst[0] = any(2) ? src[any((unsigned)sources)] : place_in(SOURCES, &way);
    dst[1] = place_in(SOURCES + 1, &way);
    combine_fold_to(&fold, &to, 1, host, count, 0);
    run_scaled(&fold, scalars,
               &(struct fold_part){ (void *const *)dst, (const void *const *)src, 2, count }, 1, 2);
    for (int d = 0; d < 2; d++)
        if (!same(dtype, CT_SUM, dst[d], wanted, count))
            expect_fails(__FILE__, __LINE__, "sum of %d x %zu scaled %s", sources, count,
                         dtype_name(dtype));
}

static void scaled_sources_give_the_bits_of_combine_scale(void **state)
{
    static const ct_dtype dtypes[] = { CT_F16, CT_BF16, CT_F32,    CT_F64,
                                       CT_C64, CT_C128, CT_F8E4M3, CT_F8E5M2 };

    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int sources = 1; sources <= SOURCES; sources++)
            for (int i = 0; i < 40; i++)
                check_scaled(dtypes[d], sources, any(EACH));
}

static void more_scaled_sources_than_fit_are_refused(void **state)
{
    const int most = FOLD_SCALED, more = FOLD_SCALED + 1;
    const struct fold fits = { CT_C128, CT_SUM, most, 1, &most };
    const struct fold too_many = { CT_C128, CT_SUM, more, 1, &more };
    static const double three[] = { 3, 0 };
    const void *src[FOLD_SCALED + 1], *scalars[FOLD_SCALED + 1];
    void *dst[FOLD_MANY];
    double *const first = crowd[CROWD - 1], *const last = crowd[FOLD_MANY - 1 + FOLD_SCALED];
    struct fold_part part = { dst, src, FOLD_MANY, 1 };
    struct seen seen = { 0, KERNEL_COUNT };

    (void)state;
    for (int s = 0; s < more; s++) {
        crowd[s][0] = crowd[s][1] = 1;
        src[s] = crowd[s];
        scalars[s] = three;
    }
    for (int d = 0; d < FOLD_MANY; d++)
        dst[d] = d == 0 ? first : crowd[FOLD_SCALED + d];
    EXPECT(run_scaled(&fits, scalars, &part, 1, 1).launches == 1);
    EXPECT(first[0] == 3 * FOLD_SCALED && last[1] == 3 * FOLD_SCALED);
    EXPECT_ERROR(fold_plan(&too_many, scalars, &part, 1, 1, 0, run_launch, &seen),
                 CT_ERR_UNSUPPORTED, "81 buffers|scaled|80 are the most");
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

static void plan_one(const struct fold *fold, void *const *dst, const void *const *src,
                     size_t count, struct launch *launch)
{
    const struct fold_part part = { dst, src, 1, count };

    EXPECT_OK(fold_plan(fold, NULL, &part, 1, 132, 0, note_launch, launch));
}

static struct span span_in(const struct launch *launch, int i)
{
    struct span span;

    memcpy(&span, &launch->args.words[i * SPAN_WORDS], sizeof span);
    return span;
}

static void a_grid_fills_the_processors_and_is_no_larger(void **state)
{
    const int both = 2;
    const struct fold fold = { CT_F32, CT_SUM, 2, 1, &both };
    const void *const src[] = { (void *)0x10000, (void *)0x20000 };
    void *const dst = (void *)0x30000;
    struct launch launch;

    (void)state;
    plan_one(&fold, &dst, src, 0, NULL); /* nothing to launch */
    plan_one(&fold, &dst, src, 1, &launch);
    EXPECT(launch.blocks == 1 && launch.threads == 128);
    plan_one(&fold, &dst, src, 1 << 16, &launch);
    EXPECT(launch.blocks == 64 && launch.threads == 128); /* 16384 pieces, two each */
    plan_one(&fold, &dst, src, 1 << 26, &launch);
    EXPECT(launch.blocks == 4 * 132 && launch.threads == BLOCK_THREADS);
    plan_one(&fold, &dst, src, (size_t)1 << 40, &launch);
    EXPECT(launch.blocks == 4 * 132);
    EXPECT(span_in(&launch, 0).count == (uint64_t)1 << 40 && span_in(&launch, 0).head == 0);
}

/* One part with 3/4 of the bytes has 3/4 of a full grid, and the smallest has a block. */
static void blocks_are_dealt_out_by_bytes(void **state)
{
    const int both = 2;
    const struct fold fold = { CT_F32, CT_SUM, 2, 1, &both };
    const void *const src[] = { (void *)0x10000, (void *)0x20000 };
    void *const dst = (void *)0x30000;
    const struct fold_part parts[] = { { &dst, src, 1, 3 << 26 },
                                       { &dst, src, 1, 0 },
                                       { &dst, src, 1, 1 << 26 },
                                       { &dst, src, 1, 4 } };
    struct launch launch;

    (void)state;
    EXPECT_OK(fold_plan(&fold, NULL, parts, 4, 132, 0, note_launch, &launch));
    EXPECT(launch.args.spans == 3 && launch.threads == BLOCK_THREADS);
    EXPECT(span_in(&launch, 0).first_block == 0);
    EXPECT(span_in(&launch, 1).first_block == 3 * 132 - 1); /* its share, rounded down */
    EXPECT(span_in(&launch, 2).first_block == 4 * 132 - 2);
    EXPECT(launch.blocks == 4 * 132 - 1);
}

static int visited, written;

static void count_pointer(uint64_t *pointer, int is_written)
{
    visited += *pointer == 77;
    written += *pointer == 77 && is_written;
}

static void the_host_kernels_know_their_arguments(void **state)
{
    const struct span spans[] = { { .pointers = 100, .dsts = 2 },
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
        cmocka_unit_test(all_sources_and_alignments_give_the_hosts_bits),
        cmocka_unit_test(all_small_counts_give_the_hosts_bits),
        cmocka_unit_test(long_folds_give_the_hosts_bits),
        cmocka_unit_test(nothing_beyond_the_ends_is_touched),
        cmocka_unit_test(what_is_called_off_does_nothing),
        cmocka_unit_test(many_sources_are_folded_node_by_node),
        cmocka_unit_test(more_destinations_than_fit_a_launch_are_copies_of_the_first),
        cmocka_unit_test(more_sources_than_fit_a_launch_are_refused_with_a_sentence),
        cmocka_unit_test(many_parts_are_folded_as_if_each_were_alone),
        cmocka_unit_test(parts_share_a_launch_as_long_as_they_fit),
        cmocka_unit_test(scaled_sources_give_the_bits_of_combine_scale),
        cmocka_unit_test(more_scaled_sources_than_fit_are_refused),
        cmocka_unit_test(all_pairs_of_bytes_give_the_hosts_bits),
        cmocka_unit_test(all_halves_with_some_give_the_hosts_bits),
        cmocka_unit_test(all_pairs_of_special_numbers_give_the_hosts_bits),
        cmocka_unit_test(the_kernels_of_the_common_sums_are_used),
        cmocka_unit_test(a_grid_fills_the_processors_and_is_no_larger),
        cmocka_unit_test(blocks_are_dealt_out_by_bytes),
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
