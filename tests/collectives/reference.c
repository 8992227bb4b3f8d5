/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c - the order of reductions that docs/algorithms.md describes.
 *
 * Hosts come in order of first appearance.  A host's ranks are folded in their order, then
 * the hosts' results as a balanced tree; in f32 for f32 and whatever is smaller, in f64 for f64,
 * each part of a complex number by itself; AVG divides the end result; one rounding to the dtype.
 *
 * Everything is a double here that is rounded to a float after each step where the
 * accumulator is one: of +, -, * and / of two floats that gives the float operation's bits. */
#include "tests/collectives/reference.h"

#include <stdlib.h>

#include "tests/elements.h"

struct number {
    double re, im;
};

static float *decoded[DTYPES]; /* of dtypes of up to 16 bits that are no integers */
static char values[DTYPES][REFERENCE_VALUES * 8]; /* parts of numbers, as they lie in memory */

static int is_small_float(ct_dtype dtype)
{
    return dtype == CT_F16 || dtype == CT_BF16 || dtype == CT_F8E4M3 || dtype == CT_F8E5M2;
}

/* What a number of this dtype has one or two of. */
static ct_dtype part_of(ct_dtype dtype)
{
    return dtype == CT_C64 ? CT_F32 : dtype == CT_C128 ? CT_F64 : dtype;
}

void reference_setup(void)
{
    for (int i = 0; i < DTYPES; i++) {
        const ct_dtype dtype = (ct_dtype)i;

        if (is_small_float(dtype)) {
            const struct small_float format = small_float_of(dtype);

            decoded[dtype] = malloc(sizeof(float) << format.bits);
            if (!decoded[dtype])
                abort();
            for (uint32_t bits = 0; bits < 1u << format.bits; bits++)
                decoded[dtype][bits] = (float)small_float_decode(format, bits);
        }
        for (int v = 0; v < REFERENCE_VALUES && !is_integer(dtype) && !is_complex(dtype); v++)
            element_put(dtype, values[dtype], (size_t)v, (v - REFERENCE_VALUES / 2) / 64.0);
    }
}

void reference_put(ct_dtype dtype, void *at, size_t i, unsigned re, unsigned im)
{
    const size_t whole = ct_dtype_size(dtype), part = ct_dtype_size(part_of(dtype));
    char *const to = (char *)at + i * whole;

    memcpy(to, values[part_of(dtype)] + re * part, part);
    if (whole > part)
        memcpy(to + part, values[part_of(dtype)] + im * part, part);
}

/* ---- One element ---------------------------------------------------------------- */

static double get_part(ct_dtype dtype, const char *at)
{
    uint16_t half;
    float single;
    double full;

    switch (dtype) {
    case CT_F32:
        memcpy(&single, at, sizeof single);
        return (double)single;
    case CT_F64:
        memcpy(&full, at, sizeof full);
        return full;
    case CT_F16:
    case CT_BF16:
        memcpy(&half, at, sizeof half);
        return (double)decoded[dtype][half];
    default:
        return (double)decoded[dtype][*(const unsigned char *)at];
    }
}

static struct number get(ct_dtype dtype, const void *at, size_t i)
{
    const size_t whole = ct_dtype_size(dtype), part = ct_dtype_size(part_of(dtype));
    const char *const from = (const char *)at + i * whole;
    struct number n = { get_part(part_of(dtype), from), 0 };

    if (whole > part)
        n.im = get_part(part_of(dtype), from + part);
    return n;
}

static void put(ct_dtype dtype, void *at, size_t i, struct number n)
{
    const size_t whole = ct_dtype_size(dtype), part = ct_dtype_size(part_of(dtype));
    char *const to = (char *)at + i * whole;

    element_put(part_of(dtype), to, 0, n.re);
    if (whole > part)
        element_put(part_of(dtype), to + part, 0, n.im);
}

static double rounded(ct_dtype dtype, double x)
{
    return part_of(dtype) == CT_F64 ? x : (double)(float)x;
}

static struct number multiplied(ct_dtype dtype, struct number a, struct number b)
{
    if (!is_complex(dtype))
        return (struct number){ rounded(dtype, a.re * b.re), 0 };
    return (struct number){
        rounded(dtype, rounded(dtype, a.re * b.re) - rounded(dtype, a.im * b.im)),
        rounded(dtype, rounded(dtype, a.re * b.im) + rounded(dtype, a.im * b.re)),
    };
}

static struct number step(ct_dtype dtype, ct_op op, struct number a, struct number b)
{
    switch (op) {
    case CT_PRODUCT:
        return multiplied(dtype, a, b);
    case CT_MIN:
        return isnan(a.re) || a.re < b.re ? a : b;
    case CT_MAX:
        return isnan(a.re) || a.re > b.re ? a : b;
    default:
        return (struct number){ rounded(dtype, a.re + b.re), rounded(dtype, a.im + b.im) };
    }
}

/* ---- All -------------------------------------------------------------------------- */

/* Of `count` hosts: with 2^k the largest power of two up to that, the first count - 2^k pairs are
 * folded, and then the 2^k results in k rounds, neighbour with neighbour. */
static struct number fold_hosts(ct_dtype dtype, ct_op op, struct number *partial, int count)
{
    int left = 1;

    while (left <= count / 2)
        left *= 2;
    for (int pair = 0; pair < count - left; pair++)
        partial[pair] = step(dtype, op, partial[2 * pair], partial[2 * pair + 1]);
    for (int rest = count - left; rest < left; rest++)
        partial[rest] = partial[rest + count - left];
    for (; left > 1; left /= 2)
        for (int pair = 0; pair < left / 2; pair++)
            partial[pair] = step(dtype, op, partial[2 * pair], partial[2 * pair + 1]);
    return partial[0];
}

static struct number fold_one(ct_dtype dtype, ct_op op, const void *const *src, const int *host,
                              int p, size_t i)
{
    struct number partial[REFERENCE_RANKS], total;
    int hosts = 0;

    for (int first = 0; first < p; first++) {
        int is_first = 1;

        for (int r = 0; r < first; r++)
            is_first &= host[r] != host[first];
        if (!is_first)
            continue;
        partial[hosts] = get(dtype, src[first], i);
        for (int r = first + 1; r < p; r++)
            if (host[r] == host[first])
                partial[hosts] = step(dtype, op, partial[hosts], get(dtype, src[r], i));
        hosts++;
    }
    total = fold_hosts(dtype, op, partial, hosts);
    if (op == CT_AVG)
        total = (struct number){ rounded(dtype, total.re / p), rounded(dtype, total.im / p) };
    return total;
}

void reference_reduce(ct_dtype dtype, ct_op op, void *dst, const void *const *src, const int *host,
                      int p, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_integer(dtype))
            element_put_integer(dtype, dst, i, fold_integers(dtype, op, src, p, i));
        else if (dtype == CT_BOOL)
            ((char *)dst)[i] = (char)fold_bools(op, src, p, i);
        else
            put(dtype, dst, i, fold_one(dtype, op, src, host, p, i));
}

void reference_scale(ct_dtype dtype, void *at, size_t count, const void *scalar)
{
    const struct number factor = get(dtype, scalar, 0);

    for (size_t i = 0; i < count; i++)
        put(dtype, at, i, multiplied(dtype, get(dtype, at, i), factor));
}

int reference_equal(ct_dtype dtype, const void *a, const void *b)
{
    const size_t whole = ct_dtype_size(dtype), part = ct_dtype_size(part_of(dtype));

    for (size_t at = 0; at < whole; at += part)
        if (memcmp((const char *)a + at, (const char *)b + at, part) != 0
            && (is_integer(dtype) || dtype == CT_BOOL
                || !isnan(get_part(part_of(dtype), (const char *)a + at))
                || !isnan(get_part(part_of(dtype), (const char *)b + at))))
            return 0;
    return 1;
}

int reference_same_number(ct_dtype dtype, const void *a, const void *b)
{
    const int is_whole = is_integer(dtype) || dtype == CT_BOOL;
    const struct number x = is_whole ? (struct number){ 0, 0 } : get(dtype, a, 0);
    const struct number y = is_whole ? (struct number){ 0, 0 } : get(dtype, b, 0);

    return reference_equal(dtype, a, b) || (!is_whole && x.re == y.re && x.im == y.im);
}

void reference_unify_nan(ct_dtype dtype, void *at, size_t count)
{
    const size_t part = ct_dtype_size(part_of(dtype));
    char *const end = (char *)at + count * ct_dtype_size(dtype);

    if (is_integer(dtype) || dtype == CT_BOOL)
        return;
    for (char *to = at; to < end; to += part)
        if (isnan(get_part(part_of(dtype), to)))
            memset(to, 0xff, part);
}
