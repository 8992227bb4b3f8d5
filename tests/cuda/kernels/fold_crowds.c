/* SPDX-License-Identifier: Apache-2.0 */
/* fold_crowds.c - many sources, many destinations, many parts of one fold. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/kernels/folds.h"

/* ---- Many sources, many destinations ----------------------------------------------- */

enum { COUNT = 40, CROWD = 600 };
static double crowd[CROWD][COUNT], crowd_wanted[COUNT];

/* Sums of f32 whose order shows. */
static void check_crowd(ct_dtype dtype, int sources, int dsts)
{
    const void *src[CROWD];
    void *dst[CROWD], *const to = crowd_wanted;
    const struct fold fold = { dtype, CT_AVG, sources, 1, &sources };

    for (int s = 0; s < sources; s++) {
        src[s] = crowd[s];
        for (int i = 0; i < COUNT; i++)
            ((float *)crowd[s])[i] = ldexpf((float)any(1000) - 500, (int)any(40));
    }
    combine_fold_to(&fold, &to, 1, src, COUNT, 0);
    for (int d = 0; d < dsts; d++)
        dst[d] = crowd[(d + 3) % CROWD]; /* in place of sources, and where there are none */
    run(&fold, dst, dsts, src, COUNT, 4);
    for (int d = 0; d < dsts; d++)
        if (!same(dtype, CT_AVG, dst[d], to, COUNT))
            expect_fails(__FILE__, __LINE__, "%d sources to %d", sources, dsts);
}

void many_sources_are_folded_from_left_to_right(void **state)
{
    (void)state;
    for (int sources = 10; sources <= FOLD_MANY; sources += 23)
        check_crowd(CT_F32, sources, 1 + (int)any(20));
    check_crowd(CT_F32, FOLD_MANY, FOLD_MANY);
    check_crowd(CT_BF16, FOLD_MANY, FOLD_MANY);
    check_crowd(CT_I8, FOLD_MANY, 3);
}

void more_destinations_than_fit_a_launch_are_copies_of_the_first(void **state)
{
    (void)state;
    check_crowd(CT_F32, 5, FOLD_MANY + 1);
    check_crowd(CT_F64, 1, 2 * FOLD_MANY + 17);
    check_crowd(CT_I32, 12, CROWD);
}

/* By a kernel for few sources, and by one for any. */
void what_is_called_off_does_nothing(void **state)
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
            const struct fold_part part = { .dst = &dst, .src = src, .dsts = 1, .count = 8 };

            memset(to, 0xEE, sizeof to);
            memcpy(before, to, sizeof to);
            run_parts(&fold, NULL, &part, 1, 1, (uintptr_t)&word);
            EXPECT((memcmp(to, before, sizeof to) == 0) == (word != 0));
        }
}

/* ---- Exchanges -------------------------------------------------------------------- */

enum { EXCHANGED = 3008, AROUND = 32 }; /* whole pieces, so that all buffers are aligned alike */

static void number_bytes(unsigned char *bytes, unsigned first)
{
    for (unsigned i = 0; i < EXCHANGED + 2 * AROUND; i++)
        bytes[i] = (unsigned char)(first + i * 7);
}

/* A copy, two buffers of which one is in place, or both are, and two more. */
static void exchange(size_t count, size_t shift, size_t other_shift, int both, uint32_t word)
{
    static _Alignas(16) unsigned char here[7][EXCHANGED + 2 * AROUND],
        wanted[7][EXCHANGED + 2 * AROUND];
    const int one = 1;
    const struct fold copy = { CT_U8, CT_MAX, 1, 1, &one };
    unsigned char *const a = here[0] + AROUND + shift, *const b = here[1] + AROUND + other_shift;
    unsigned char *const c = here[2] + AROUND + shift;
    const void *src[] = { a, b }, *copied = here[3] + AROUND;
    void *dst[] = { both ? b : c, a }, *to = here[4] + AROUND;
    void *more[] = { here[5], here[6], here[5] };
    const struct fold_part parts[] = {
        { .dst = &to, .src = &copied, .dsts = 1, .count = 20 },
        { .dst = dst, .src = src, .dsts = 2, .count = count, .exchanges = 1 },
        { .dst = more + 1,
          .src = (const void *const *)more,
          .dsts = 2,
          .count = EXCHANGED,
          .exchanges = 1 }
    };

    for (unsigned i = 0; i < 7; i++)
        number_bytes(here[i], i * 50);
    memcpy(wanted, here, sizeof here);
    if (!word) {
        memcpy(wanted[4] + AROUND, here[3] + AROUND, 20);
        memcpy(both ? wanted[1] + AROUND + other_shift : wanted[2] + AROUND + shift, a, count);
        memcpy(wanted[0] + AROUND + shift, b, count);
        memcpy(wanted[5], here[6], EXCHANGED);
        memcpy(wanted[6], here[5], EXCHANGED);
    }
    run_parts(&copy, NULL, parts, 3, 1, (uintptr_t)&word);
    if (memcmp(here, wanted, sizeof here) != 0)
        expect_fails(__FILE__, __LINE__, "exchange of %zu bytes, shifts %zu and %zu, both %d",
                     count, shift, other_shift, both);
}

void an_exchange_gives_each_buffer_the_bytes_of_the_other(void **state)
{
    static const size_t counts[] = { 0, 1, 15, 16, 17, 100, 2048, EXCHANGED };

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t shift = 0; shift < 16; shift += 5) {
            exchange(counts[i], shift, shift, 0, 0);
            exchange(counts[i], shift, shift, 1, 0);
            exchange(counts[i], shift, 16 - shift, 1, 0);
            exchange(counts[i], shift, shift, 1, 1);
        }
}

/* ---- Many parts ------------------------------------------------------------------- */

enum { PARTS = 150, FEW_PARTS = 6, EACH = 200 };

/* Parts of one fold with counts, places and destinations of their own, some with nothing to do. */
struct parts {
    char memory[PARTS][SOURCES + 3][EACH * 16 + 2 * 16];
    const void *src[PARTS][SOURCES];
    void *dst[PARTS][3];
    struct fold_part part[PARTS];
    char before[PARTS][SOURCES + 3][EACH * 16 + 2 * 16];
};

static void draw_parts(struct parts *p, ct_dtype dtype, int sources, int count)
{
    for (int i = 0; i < count; i++) {
        const size_t shift = any_shift(dtype), n = any(4) ? any(EACH) : 0;
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
        p->part[i] =
            (struct fold_part){ .dst = p->dst[i], .src = p->src[i], .dsts = dsts, .count = n };
    }
    memcpy(p->before, p->memory, (size_t)count * sizeof *p->memory);
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
static void check_parts(struct parts *p, const struct fold *fold, int count)
{
    static const int processors[] = { 1, 2, 132 };
    static const uint32_t goes_on = 0; /* it is not called off */
    const ptrdiff_t apart = (char *)p->before - (char *)p->memory;

    draw_parts(p, fold->dtype, fold->sources, count);
    fold_before(p, fold, count);
    run_parts(fold, NULL, p->part, count, processors[any(3)], (uintptr_t)&goes_on);
    for (int i = 0; i < count; i++)
        for (int d = 0; d < p->part[i].dsts; d++) {
            char *const got = p->dst[i][d], *const host = got + apart;

            if (!same(fold->dtype, fold->op, got, host, p->part[i].count))
                expect_fails(__FILE__, __LINE__, "%s of %d %s, part %d of %d, to %d of %d",
                             op_name(fold->op), fold->sources, dtype_name(fold->dtype), i, count, d,
                             p->part[i].dsts);
            memcpy(host, got, p->part[i].count * ct_dtype_size(fold->dtype));
        }
    EXPECT(!memcmp(p->memory, p->before, (size_t)count * sizeof *p->memory)); /* nothing else has */
}

void many_parts_are_folded_as_if_each_were_alone(void **state)
{
    struct parts *const p = calloc(1, sizeof *p);

    (void)state;
    EVERY_ROW(dtype, op)
    for (int sources = 1; sources <= SOURCES; sources++) {
        const struct fold fold = { (ct_dtype)dtype, op, sources, 1, &sources };

        check_parts(p, &fold, is_drawn() ? 1 + (int)any(any(3) ? 20 : PARTS) : FEW_PARTS);
    }
    free(p);
}

/* Those that have kernels of their own. */
void many_parts_of_the_common_sums_are_folded_so_too(void **state)
{
    static const ct_dtype dtypes[] = { CT_F32, CT_F16, CT_BF16 };
    static const int sources[] = { 2, 3, 4, 8 };
    struct parts *const p = calloc(1, sizeof *p);

    (void)state;
    for (int i = 0; i < 3 * 4 * 2; i++) {
        const struct fold fold = { dtypes[i / 8], i % 2 ? CT_AVG : CT_SUM, sources[i / 2 % 4], 1,
                                   &sources[i / 2 % 4] };

        check_parts(p, &fold, FEW_PARTS);
        check_parts(p, &fold, 4 * FEW_PARTS);
    }
    free(p);
}
