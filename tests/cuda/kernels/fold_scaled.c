/* SPDX-License-Identifier: Apache-2.0 */
/* fold_scaled.c - a sum of scaled sources gives the bits of combine_scale() and a sum. */
#include "tests/cuda/kernels/folds.h"

enum { EACH = 200 };

static char wanted[EACH * 16];

/* Some of the sources have a scalar, and are on the host scaled first. */
static void check_scaled(ct_dtype dtype, ct_op op, int sources, size_t count)
{
    static char scaled[SOURCES][EACH * 16];
    const struct fold fold = { dtype, op, sources, 1, &sources };
    const struct way way = { .shift = any_shift(dtype), .alike = (int)any(2) };
    char scalar[SOURCES][16], *src[SOURCES], *dst[2];
    const void *scalars[SOURCES], *host[SOURCES];
    void *const to = wanted;

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
    run_parts(
        &fold, scalars,
        &(struct fold_part){
            .dst = (void *const *)dst, .src = (const void *const *)src, .dsts = 2, .count = count },
        1, 2, 0);
    for (int d = 0; d < 2; d++)
        if (!same(dtype, CT_SUM, dst[d], wanted, count))
            expect_fails(__FILE__, __LINE__, "%s of %d x %zu scaled %s", op_name(op), sources,
                         count, dtype_name(dtype));
}

void scaled_sources_give_the_bits_of_combine_scale(void **state)
{
    static const char has_scalars[DTYPE_COUNT] = {
        [CT_F16] = 1, [CT_BF16] = 1, [CT_F32] = 1,    [CT_F64] = 1,
        [CT_C64] = 1, [CT_C128] = 1, [CT_F8E4M3] = 1, [CT_F8E5M2] = 1
    };

    (void)state;
    EVERY_ROW(dtype, op)
    for (int sources = 1; has_scalars[dtype] && sources <= SOURCES; sources++)
        for (int i = 0; i < 10; i++)
            if (i < 4 || is_drawn())
                check_scaled((ct_dtype)dtype, op, sources, any(EACH));
}

/* With as many destinations as fit as well. */
void as_many_scaled_sources_as_fit_are_folded(void **state)
{
    static double source[FOLD_SCALED][2], to[FOLD_MANY][2];
    static const double three[] = { 3, 0 };
    const int most = FOLD_SCALED;
    const struct fold fold = { CT_C128, CT_SUM, most, 1, &most };
    const void *src[FOLD_SCALED], *scalars[FOLD_SCALED];
    void *dst[FOLD_MANY];

    (void)state;
    for (int s = 0; s < FOLD_SCALED; s++) {
        source[s][0] = source[s][1] = 1;
        src[s] = source[s];
        scalars[s] = three;
    }
    for (int d = 0; d < FOLD_MANY; d++)
        dst[d] = to[d];
    run_parts(&fold, scalars,
              &(struct fold_part){ .dst = dst, .src = src, .dsts = FOLD_MANY, .count = 1 }, 1, 1,
              0);
    for (int d = 0; d < FOLD_MANY; d++)
        EXPECT(to[d][0] == 3 * FOLD_SCALED && to[d][1] == 3 * FOLD_SCALED);
}
