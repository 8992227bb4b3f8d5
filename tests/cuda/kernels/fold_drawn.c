/* SPDX-License-Identifier: Apache-2.0 */
/* fold_drawn.c - every dtype and op by kernels of one part: how many sources and destinations,
 * how many elements and where they lie is drawn around the edges. */
#include <string.h>
#include <sys/mman.h>

#include "tests/cuda/kernels/folds.h"

enum { MOST = 300 };

/* ---- One fold in all its forms ---------------------------------------------------- */

static char wanted[LONG * 16];

static void check(ct_dtype dtype, ct_op op, const struct way *way)
{
    const struct fold fold = { dtype, op, way->sources, 1, &way->sources };
    const size_t bytes = way->count * ct_dtype_size(dtype);
    char *src[SOURCES], *dst[COPIES];
    void *const to = wanted;

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
            expect_fails(__FILE__, __LINE__, "%s of %d x %zu %s, to %d, in place %d, shift %zu%s%s",
                         op_name(op), way->sources, way->count, dtype_name(dtype), way->copies,
                         way->in_place, way->shift, way->alike ? ", alike" : "",
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

    if (is_drawn())
        check(dtype, op, &way);
}

/* Counts around the edges of a piece, and the rest of each call is drawn. */
void all_sources_and_alignments_give_the_hosts_bits(void **state)
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

void all_small_counts_give_the_hosts_bits(void **state)
{
    (void)state;
    EVERY_ROW(dtype, op)
    for (size_t count = 0; count < 100; count++)
        check_drawn((ct_dtype)dtype, op, 1 + (int)any(SOURCES), count, any(16));
}

/* More than the threads of all blocks take at once. */
void long_folds_give_the_hosts_bits(void **state)
{
    (void)state;
    EVERY_ROW(dtype, op)
    for (int sources = 1; sources <= SOURCES; sources++)
        check_drawn((ct_dtype)dtype, op, sources, LONG - any(LONG / 2), any(2) * any(16));
}

/* Those that have kernels of their own, copies among them, with more than one piece at a time and
 * in several blocks. */
void long_common_sums_give_the_hosts_bits(void **state)
{
    static const ct_dtype dtypes[] = { CT_F32, CT_F16, CT_BF16 };
    static const int sources[] = { 1, 2, 3, 4, 8 };

    (void)state;
    for (int i = 0; i < 3 * 5 * 2; i++) {
        const struct way way = { .sources = sources[i / 2 % 5],
                                 .copies = 2,
                                 .in_place = i % 3 ? -1 : 0,
                                 .count = LONG - any(100),
                                 .shift = 4,
                                 .alike = 1,
                                 .processors = 1 };

        check(dtypes[i / 10], i % 2 ? CT_AVG : CT_SUM, &way);
    }
}

/* Four pages that can be touched, and one on either side that can't. */
enum { PAGE = 4096, PAGES = 4 * PAGE };

static char *map_guarded(void)
{
    char *const map = mmap(NULL, PAGES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    EXPECT(map != MAP_FAILED && mprotect(map + PAGE, PAGES, PROT_READ | PROT_WRITE) == 0);
    return map + PAGE;
}

void nothing_beyond_the_ends_is_touched(void **state)
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
            if (is_drawn())
                run(&fold, &dst, 1, src, count, 132);
        }
    for (int b = 0; b <= SOURCES; b++)
        munmap(pages[b] - PAGE, PAGES + 2 * PAGE);
}
