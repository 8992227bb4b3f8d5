/* SPDX-License-Identifier: Apache-2.0 */
/* test_combine_values.c - every dtype and op against a fold written the slow way.
 *
 * The reference computes one element at a time, integers in 64 bits and cut to
 * size, floats in f64 on inputs small enough that every step is exact. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/reduction/combine.h"
#include "runtime/types/dtype.h"
#include "runtime/types/dtype_list.h"
#include "runtime/types/narrow_float.h"
#include "runtime/types/premul.h"
#include "tests/harness.h"

enum { MOST = 1100, SOURCES = 5, ROOM = MOST * 16 + 64 };

static int is_integer(int dtype)
{
    return dtype <= CT_U64;
}

static int parts_of(int dtype) /* numbers in one element */
{
    return dtype == CT_C64 || dtype == CT_C128 ? 2 : 1;
}

static double get(int dtype, const void *at, size_t i)
{
    const char *p = (const char *)at + i * ct_dtype_size((ct_dtype)dtype) / (size_t)parts_of(dtype);
    uint16_t h;
    float f;
    double d;

    memcpy(&h, p, dtype == CT_F16 || dtype == CT_BF16 ? 2 : 1);
    memcpy(&f, p, dtype == CT_F32 || dtype == CT_C64 ? 4 : 1);
    memcpy(&d, p, dtype == CT_F64 || dtype == CT_C128 ? 8 : 1);
    switch (dtype) {
    case CT_F16:
        return f16_to_f32(h);
    case CT_BF16:
        return bf16_to_f32(h);
    case CT_F8E4M3:
        return f8e4m3_to_f32((uint8_t)*p);
    case CT_F8E5M2:
        return f8e5m2_to_f32((uint8_t)*p);
    case CT_BOOL:
        return *p != 0;
    case CT_F32:
    case CT_C64:
        return f;
    default:
        return d;
    }
}

static void put(int dtype, void *at, size_t i, double value)
{
    char *p = (char *)at + i * ct_dtype_size((ct_dtype)dtype) / (size_t)parts_of(dtype);
    const float f = (float)value;
    const uint16_t h = dtype == CT_F16 ? f32_to_f16(f) : f32_to_bf16(f);

    if (dtype == CT_F16 || dtype == CT_BF16)
        memcpy(p, &h, 2);
    else if (dtype == CT_F8E4M3 || dtype == CT_F8E5M2)
        *p = (char)(dtype == CT_F8E4M3 ? f32_to_f8e4m3(f) : f32_to_f8e5m2(f));
    else if (dtype == CT_BOOL)
        *p = value != 0;
    else if (dtype == CT_F32 || dtype == CT_C64)
        memcpy(p, &f, 4);
    else
        memcpy(p, &value, 8);
}

/* Sign-extended where the dtype is signed. */
static uint64_t get_integer(int dtype, const void *at, size_t i)
{
    const size_t size = ct_dtype_size((ct_dtype)dtype);
    const unsigned unused = 64 - 8 * (unsigned)size;
    uint64_t value = 0;

    memcpy(&value, (const char *)at + i * size, size);
    if (dtype % 2 == CT_I8 && unused && value >> (63 - unused))
        value |= UINT64_MAX << (64 - unused);
    return value;
}

static uint64_t slow_integer(int dtype, int op, uint64_t a, uint64_t b)
{
    const int less = dtype % 2 == CT_I8 ? (int64_t)a < (int64_t)b : a < b;

    switch (op) {
    case CT_SUM:
    case CT_AVG:
        return a + b;
    case CT_PRODUCT:
        return a * b;
    case CT_MIN:
        return less ? a : b;
    case CT_MAX:
        return less ? b : a;
    case CT_BAND:
        return a & b;
    case CT_BOR:
        return a | b;
    default:
        return a ^ b;
    }
}

static double slow_real(int dtype, int op, double a, double b)
{
    const int truth = dtype == CT_BOOL;

    switch (op) {
    case CT_SUM:
    case CT_AVG:
        return truth ? a || b : a + b;
    case CT_PRODUCT:
        return truth ? a && b : a * b;
    case CT_MIN:
        return a < b ? a : b;
    case CT_MAX:
        return a > b ? a : b;
    case CT_BAND:
        return a && b;
    case CT_BOR:
        return a || b;
    default:
        return (a != 0) != (b != 0);
    }
}

static void slow_fold(int dtype, int op, int sources, void *dst, const void *const *src, size_t n)
{
    const size_t size = ct_dtype_size((ct_dtype)dtype);

    for (size_t i = 0; is_integer(dtype) && i < n; i++) {
        uint64_t all = get_integer(dtype, src[0], i);

        for (int s = 1; s < sources; s++)
            all = slow_integer(dtype, op, all, get_integer(dtype, src[s], i));
        if (op == CT_AVG && dtype % 2 == CT_I8)
            all = (uint64_t)((int64_t)all / sources);
        else if (op == CT_AVG)
            all /= (uint64_t)sources;
        memcpy((char *)dst + i * size, &all, size);
    }
    for (size_t i = 0; !is_integer(dtype) && i < n * (size_t)parts_of(dtype); i += 1) {
        const int complex_product = parts_of(dtype) == 2 && op == CT_PRODUCT;
        double re = get(dtype, src[0], i), im = complex_product ? get(dtype, src[0], i + 1) : 0;

        for (int s = 1; s < sources; s++) {
            const double a = re, b = get(dtype, src[s], i);

            re = slow_real(dtype, op, a, b);
            if (complex_product) {
                const double c = get(dtype, src[s], i + 1);

                re = a * b - im * c;
                im = a * c + im * b;
            }
        }
        if (op == CT_AVG)
            re /= sources;
        put(dtype, dst, i, re);
        if (complex_product)
            put(dtype, dst, ++i, im);
    }
}

/* -1, 0, 1 and 2: their sums and products are exact in every float.  Integers: any bits. */
static void fill(int dtype, void *at, size_t n, unsigned seed)
{
    const size_t bytes = n * ct_dtype_size((ct_dtype)dtype);

    for (size_t i = 0; is_integer(dtype) && i < bytes; i++)
        ((unsigned char *)at)[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; !is_integer(dtype) && i < n * (size_t)parts_of(dtype); i++)
        put(dtype, at, i, (double)((seed = seed * 1664525 + 1013904223) >> 30) - 1);
}

static void fold_into(const struct fold *fold, void *dst, const void *const *src, size_t count)
{
    combine_fold_to(fold, &dst, 1, src, count, 0);
}

static char memory[SOURCES + 2][ROOM];

/* Each source at an address of its own alignment; dst: -1 apart, else that source. */
static void check_fold(int dtype, int op, int sources, size_t n, int dst, int shift)
{
    const struct fold fold = { (ct_dtype)dtype, op, sources, 1, &sources };
    const size_t bytes = n * ct_dtype_size((ct_dtype)dtype);
    char *src[SOURCES], *out = dst < 0 ? memory[SOURCES] + shift : memory[dst] + shift * (dst + 1);
    char *wanted = memory[SOURCES + 1];

    for (int s = 0; s < sources; s++) {
        src[s] = memory[s] + shift * (s + 1);
        fill(dtype, src[s], n, (unsigned)(s * 77 + op));
    }
    slow_fold(dtype, op, sources, wanted, (const void *const *)src, n);
    out[bytes] = 0x55; /* the byte behind stays */
    fold_into(&fold, out, (const void *const *)src, n);
    if (memcmp(out, wanted, bytes) != 0 || out[bytes] != 0x55)
        expect_fails(__FILE__, __LINE__, "%s of %d x %zu %s into %d, shift %d", op_name(op),
                     sources, n, dtype_name((ct_dtype)dtype), dst, shift);
}

static void every_dtype_and_op_folds_as_the_slow_way(void **state)
{
    static const size_t counts[] = { 0, 1, 3, 15, 16, 17, 63, 65, 511, 512, 513, 1024, 1099 };

    (void)state;
    for (int dtype = 0; dtype <= CT_F8E5M2; dtype++)
        for (int op = 0; op <= CT_BXOR; op++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
                for (int sources = 1; sources <= SOURCES && combine_defined((ct_dtype)dtype, op);
                     sources++)
                    for (int dst = -1; dst < sources; dst++)
                        check_fold(dtype, op, sources, counts[c], dst, (int)(c % 2));
}

static void ops_without_meaning_are_not_defined(void **state)
{
    int defined = 0;

    (void)state;
    for (int dtype = 0; dtype <= CT_F8E5M2; dtype++)
        for (int op = 0; op <= CT_BXOR; op++)
            defined += combine_defined((ct_dtype)dtype, op);
    EXPECT(defined == 8 * 8 + 6 * 5 + 7 + 2 * 3);
    EXPECT(!combine_defined(CT_F32, CT_BXOR) && !combine_defined(CT_BOOL, CT_AVG));
    EXPECT(!combine_defined(CT_C64, CT_MIN) && !combine_defined(CT_F32, 256));
    EXPECT(!combine_defined((ct_dtype)17, CT_SUM) && !combine_defined(CT_F32, -1));
}

static void a_node_is_folded_before_its_partial_joins_the_total(void **state)
{
    const float a = 1e8f, b = -1e8f, c = 1, d = 1;
    const void *src[] = { &c, &a, &b, &d };
    const int flat[] = { 4 }, pairs[] = { 2, 4 }, split[] = { 1, 3, 4 };
    struct fold fold = { CT_F32, CT_SUM, 4, 1, flat };
    float dst;

    (void)state;
    fold_into(&fold, &dst, src, 1); /* ((1 + 1e8) - 1e8) + 1: the first 1 is lost */
    EXPECT(dst == 1);
    fold.nodes = 2, fold.node_end = pairs;
    fold_into(&fold, &dst, src, 1); /* (1 + 1e8) + (-1e8 + 1): -1e8 + 1 is -1e8, both are lost */
    EXPECT(dst == 0);
    fold.nodes = 3, fold.node_end = split;
    fold_into(&fold, &dst, src, 1); /* 1 + (1e8 - 1e8) + 1: none is lost */
    EXPECT(dst == 2);
}

static void narrow_floats_are_rounded_once(void **state)
{
    /* 256 has a last place of 2 in bf16: 1 + 1 would vanish if rounded at each step. */
    const uint16_t big = f32_to_bf16(256), one = f32_to_bf16(1);
    const uint16_t big16 = f32_to_f16(2048), one16 = f32_to_f16(1);
    const void *src[] = { &big, &one, &one }, *src16[] = { &big16, &one16, &one16 };
    const int end = 3;
    struct fold fold = { CT_BF16, CT_SUM, 3, 1, &end };
    uint16_t dst;

    (void)state;
    fold_into(&fold, &dst, src, 1);
    EXPECT(bf16_to_f32(dst) == 258);
    fold.dtype = CT_F16;
    fold_into(&fold, &dst, src16, 1);
    EXPECT(f16_to_f32(dst) == 2050);
}

static void nan_wins_min_and_max_from_either_side(void **state)
{
    static const int dtypes[] = { CT_F16, CT_BF16, CT_F32, CT_F64, CT_F8E4M3, CT_F8E5M2 };
    const int end = 2;

    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int op = CT_MIN; op <= CT_MAX; op++)
            for (int side = 0; side < 2; side++) {
                const struct fold fold = { (ct_dtype)dtypes[d], op, 2, 1, &end };
                double values[2], dst;
                const void *src[] = { &values[side], &values[!side] };

                put(dtypes[d], &values[0], 0, NAN);
                put(dtypes[d], &values[1], 0, 1);
                fold_into(&fold, &dst, src, 1);
                EXPECT(isnan(get(dtypes[d], &dst, 0)));
            }
}

/* value: what the format says the pattern is. */
static double meaning(unsigned pattern, int exponent_bits, int mantissa_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (int)(pattern >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const int mantissa = (int)pattern & ((1 << mantissa_bits) - 1);
    const int sign = pattern >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;

    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

static void every_narrow_pattern_means_what_its_format_says(void **state)
{
    (void)state;
    for (unsigned p = 0; p < 65536; p++) {
        const float f = f16_to_f32((uint16_t)p), b = bf16_to_f32((uint16_t)p);

        EXPECT((p & 0x7c00) == 0x7c00 ? (p & 0x3ff ? isnan(f) : isinf(f))
                                      : (double)f == meaning(p, 5, 10));
        EXPECT((p & 0x7f80) == 0x7f80 ? (p & 0x7f ? isnan(b) : isinf(b))
                                      : (double)b == meaning(p, 8, 7));
        EXPECT(isnan(f) ? isnan(f16_to_f32(f32_to_f16(f))) : f32_to_f16(f) == p);
        EXPECT(isnan(b) ? isnan(bf16_to_f32(f32_to_bf16(b))) : f32_to_bf16(b) == p);
    }
    for (unsigned p = 0; p < 256; p++) {
        const float e4 = f8e4m3_to_f32((uint8_t)p), e5 = f8e5m2_to_f32((uint8_t)p);

        EXPECT((p & 0x7f) == 0x7f ? isnan(e4) : (double)e4 == meaning(p, 4, 3));
        EXPECT((p & 0x7c) == 0x7c ? (p & 3 ? isnan(e5) : isinf(e5))
                                  : (double)e5 == meaning(p, 5, 2));
        EXPECT(isnan(e4) ? (f32_to_f8e4m3(e4) & 0x7f) == 0x7f : f32_to_f8e4m3(e4) == p);
        EXPECT(isnan(e5) ? (f32_to_f8e5m2(e5) & 0x7f) == 0x7f : f32_to_f8e5m2(e5) == p);
    }
}

/* Between neighbours p and p+1: below the middle p, above it p+1, on it the even one. */
#define EXPECT_NEAREST(T, to, from, p)                                                           \
    do {                                                                                         \
        const float low = from((T)(p)), high = from((T)((p) + 1)), mid = low + (high - low) / 2; \
        EXPECT(to(mid) == (p) + ((p)&1));                                                        \
        EXPECT(to(nextafterf(mid, 0)) == (p));                                                   \
        EXPECT(to(nextafterf(mid, INFINITY)) == (p) + 1);                                        \
    } while (0)

static void narrow_rounding_is_to_nearest_ties_to_even(void **state)
{
    (void)state;
    for (unsigned p = 0; p < 0x7bff; p++)
        EXPECT_NEAREST(uint16_t, f32_to_f16, f16_to_f32, p);
    for (unsigned p = 0x80; p < 0x7f7e; p++)
        EXPECT_NEAREST(uint16_t, f32_to_bf16, bf16_to_f32, p);
    for (unsigned p = 0; p < 0x7e; p++)
        EXPECT_NEAREST(uint8_t, f32_to_f8e4m3, f8e4m3_to_f32, p);
    for (unsigned p = 0; p < 0x7b; p++)
        EXPECT_NEAREST(uint8_t, f32_to_f8e5m2, f8e5m2_to_f32, p);
}

static void too_large_becomes_infinity_or_in_f8e4m3_nan(void **state)
{
    (void)state;
    EXPECT(f32_to_f16(65519.996f) == 0x7bff && f32_to_f16(65520) == 0x7c00);
    EXPECT(f32_to_f16(-1e30f) == 0xfc00 && f32_to_f16(-INFINITY) == 0xfc00);
    EXPECT(f32_to_bf16(3.4e38f) == 0x7f80 && f32_to_bf16(-0.f) == 0x8000);
    EXPECT(f32_to_f8e4m3(464) == 0x7e && f32_to_f8e4m3(465) == 0x7f);
    EXPECT(f32_to_f8e4m3(-INFINITY) == 0xff && f32_to_f8e4m3(-0.f) == 0x80);
    EXPECT(f32_to_f8e5m2(61439) == 0x7b && f32_to_f8e5m2(61440) == 0x7c);
    EXPECT(f32_to_f8e5m2(INFINITY) == 0x7c && f32_to_f8e5m2(-NAN) != 0xfc);
}

static void an_integer_average_does_not_wrap_on_its_way(void **state)
{
    const int8_t low = -128, high = 127, minus = -1;
    const void *lows[] = { &low, &low }, *highs[] = { &high, &high }, *odd[] = { &minus, &low };
    const int end = 2;
    const struct fold fold = { CT_I8, CT_AVG, 2, 1, &end };
    int8_t dst;

    (void)state;
    fold_into(&fold, &dst, lows, 1);
    EXPECT(dst == -128);
    fold_into(&fold, &dst, highs, 1);
    EXPECT(dst == 127);
    fold_into(&fold, &dst, odd, 1); /* -129 / 2 towards zero */
    EXPECT(dst == -64);
}

static void any_non_zero_bool_is_true_and_the_result_is_one(void **state)
{
    const uint8_t two = 2, four = 4;
    const void *src[] = { &two, &four };
    const int one = 1, both = 2;
    struct fold fold = { CT_BOOL, CT_BAND, 2, 1, &both };
    uint8_t dst;

    (void)state;
    fold_into(&fold, &dst, src, 1);
    EXPECT(dst == 1);
    fold = (struct fold){ CT_BOOL, CT_SUM, 1, 1, &one };
    fold_into(&fold, &dst, src, 1);
    EXPECT(dst == 1);
}

static void pairs_then_a_division_make_an_average(void **state)
{
    float sum[3] = { 1, 2, 3 }, more[3] = { 3, 3, 4 };
    int32_t whole = -7;

    (void)state;
    combine_pair(CT_F32, CT_AVG, sum, more, 3);
    combine_divide(CT_F32, sum, 3, 2);
    EXPECT(sum[0] == 2 && sum[1] == 2.5f && sum[2] == 3.5f);
    combine_divide(CT_I32, &whole, 1, 2);
    EXPECT(whole == -3);
}

static void premul_keeps_its_scalar_until_it_is_freed(void **state)
{
    const float half = 0.5f, values[2] = { 4, -6 };
    const struct c64 i = { 0, 1 };
    const int32_t whole = 2;
    struct c64 z = { 1, 2 };
    float dst[2], scalar[4];
    ct_op op, other;

    (void)state;
    EXPECT_OK(ct_op_premul(&half, CT_F32, &op));
    EXPECT(op >= 256);
    EXPECT_OK(premul_find(op, CT_F32, scalar));
    combine_scale(CT_F32, dst, values, 2, scalar);
    EXPECT(dst[0] == 2 && dst[1] == -3);
    combine_scale(CT_C64, &z, &z, 1, &i);
    EXPECT(z.re == -2 && z.im == 1);
    EXPECT_ERROR(premul_find(op, CT_F64, scalar), CT_ERR_INVALID, "multiplies f32|dtype is f64");
    EXPECT_OK(ct_op_free(op));
    EXPECT_ERROR(ct_op_free(op), CT_ERR_INVALID, "was freed");
    EXPECT_OK(ct_op_premul(&half, CT_F32, &other));
    EXPECT(other != op);
    EXPECT_ERROR(premul_find(op, CT_F32, scalar), CT_ERR_INVALID, "freed");
    EXPECT_OK(ct_op_free(other));
    EXPECT_ERROR(ct_op_premul(&whole, CT_I32, &op), CT_ERR_INVALID, "i32|floating or complex");
    EXPECT_ERROR(ct_op_premul(NULL, CT_F32, &op), CT_ERR_INVALID, "scalar is NULL");
}

static void sizes_and_names_are_those_of_the_header(void **state)
{
    (void)state;
    EXPECT(ct_dtype_size(CT_BOOL) == 1 && ct_dtype_size(CT_BF16) == 2);
    EXPECT(ct_dtype_size(CT_C128) == 16 && ct_dtype_size((ct_dtype)99) == 0);
    EXPECT(!strcmp(dtype_name(CT_F8E5M2), "f8e5m2") && !strcmp(dtype_name((ct_dtype)-1), "?"));
    EXPECT(!strcmp(op_name(CT_BXOR), "bxor") && !strcmp(op_name(300), "premul_sum"));
}

static void every_dtype_is_of_one_family_and_what_is_no_dtype_of_none(void **state)
{
    static const char integer[DTYPE_COUNT] = {
        [CT_I8] = 1,  [CT_U8] = 1,  [CT_I16] = 1, [CT_U16] = 1,
        [CT_I32] = 1, [CT_U32] = 1, [CT_I64] = 1, [CT_U64] = 1
    };
    static const char narrow[DTYPE_COUNT] = {
        [CT_F16] = 1, [CT_BF16] = 1, [CT_F8E4M3] = 1, [CT_F8E5M2] = 1
    };
    static const int none[] = { -1, DTYPE_COUNT, INT_MAX };

    (void)state;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        EXPECT(dtype_is_integer((ct_dtype)dtype) == integer[dtype]);
        EXPECT(dtype_is_narrow((ct_dtype)dtype) == narrow[dtype]);
        EXPECT(dtype_is_inexact((ct_dtype)dtype) == (!integer[dtype] && dtype != CT_BOOL));
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        EXPECT(!dtype_is_integer((ct_dtype)none[i]) && !dtype_is_narrow((ct_dtype)none[i])
               && !dtype_is_inexact((ct_dtype)none[i]));
    EXPECT(op_is_builtin(CT_SUM) && op_is_builtin(CT_BXOR));
    EXPECT(!op_is_builtin(-1) && !op_is_builtin(OP_COUNT) && !op_is_builtin(PREMUL_FIRST));
}

/* Exact values, ties, an overflow and NaN, as bits. */
static void arrays_are_converted_to_narrow_floats_and_back(void **state)
{
    static const float in[] = {
        1.0f,   -2.5f,  65504.0f, 65520.0f, 1.0f + 1.0f / 256, 1.0f + 3.0f / 256,
        448.0f, 500.0f, 0x1p-9f
    };
    static const uint16_t f16[] = { 0x3c00, 0xc100, 0x7bff, 0x7c00, 0x3c04,
                                    0x3c0c, 0x5f00, 0x5fd0, 0x1800 };
    static const uint16_t bf16[] = { 0x3f80, 0xc020, 0x4780, 0x4780, 0x3f80,
                                     0x3f82, 0x43e0, 0x43fa, 0x3b00 };
    static const uint8_t e4m3[] = { 0x38, 0xc2, 0x7f, 0x7f, 0x38, 0x38, 0x7e, 0x7f, 0x01 };
    enum { N = sizeof in / sizeof *in };
    uint16_t halves[N];
    uint8_t bytes[N];
    float back[N];

    (void)state;
    EXPECT_OK(ct_convert(in, CT_F32, halves, CT_F16, N));
    EXPECT(!memcmp(halves, f16, sizeof f16));
    EXPECT_OK(ct_convert(halves, CT_F16, back, CT_F32, N));
    EXPECT(back[0] == 1.0f && back[1] == -2.5f && back[2] == 65504.0f && isinf(back[3])
           && back[8] == 0x1p-9f);
    EXPECT_OK(ct_convert(in, CT_F32, halves, CT_BF16, N));
    EXPECT(!memcmp(halves, bf16, sizeof bf16));
    EXPECT_OK(ct_convert(in, CT_F32, bytes, CT_F8E4M3, N));
    EXPECT(!memcmp(bytes, e4m3, sizeof e4m3));
    EXPECT_OK(ct_convert(bytes, CT_F8E4M3, back, CT_F32, N));
    EXPECT(back[6] == 448.0f && isnan(back[7]));
    EXPECT_OK(ct_convert(in, CT_F32, bytes, CT_F8E5M2, 2));
    EXPECT(bytes[0] == 0x3c && bytes[1] == 0xc1);
    EXPECT_OK(ct_convert(NULL, CT_F32, NULL, CT_F16, 0));
    EXPECT_ERROR(ct_convert(in, CT_F32, back, CT_F64, 1), CT_ERR_INVALID, "f32 to f64");
    EXPECT_ERROR(ct_convert(in, CT_F16, halves, CT_BF16, 1), CT_ERR_INVALID, "f16 to bf16");
    EXPECT_ERROR(ct_convert(in, (ct_dtype)77, back, CT_F32, 1), CT_ERR_INVALID, "? to f32");
    EXPECT_ERROR(ct_convert(NULL, CT_F32, halves, CT_F16, 1), CT_ERR_INVALID, "an array is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_and_op_folds_as_the_slow_way),
        cmocka_unit_test(ops_without_meaning_are_not_defined),
        cmocka_unit_test(a_node_is_folded_before_its_partial_joins_the_total),
        cmocka_unit_test(narrow_floats_are_rounded_once),
        cmocka_unit_test(nan_wins_min_and_max_from_either_side),
        cmocka_unit_test(every_narrow_pattern_means_what_its_format_says),
        cmocka_unit_test(narrow_rounding_is_to_nearest_ties_to_even),
        cmocka_unit_test(too_large_becomes_infinity_or_in_f8e4m3_nan),
        cmocka_unit_test(an_integer_average_does_not_wrap_on_its_way),
        cmocka_unit_test(any_non_zero_bool_is_true_and_the_result_is_one),
        cmocka_unit_test(pairs_then_a_division_make_an_average),
        cmocka_unit_test(arrays_are_converted_to_narrow_floats_and_back),
        cmocka_unit_test(premul_keeps_its_scalar_until_it_is_freed),
        cmocka_unit_test(sizes_and_names_are_those_of_the_header),
        cmocka_unit_test(every_dtype_is_of_one_family_and_what_is_no_dtype_of_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
