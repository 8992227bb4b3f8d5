/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/kernels/elements.h"

#include <math.h>
#include <string.h>

static uint64_t random_state = 11;

unsigned any(unsigned below)
{
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return (unsigned)(random_state >> 33) % below;
}

size_t any_shift(ct_dtype dtype)
{
    const size_t shift = any(16);

    return any(2) ? shift : shift / ct_dtype_size(dtype) * ct_dtype_size(dtype);
}

static int is_nan(ct_dtype dtype, const char *at)
{
    uint16_t half;
    double wide;
    float single;

    memcpy(&half, at, ct_dtype_size(dtype) > 1 ? 2 : 1);
    memcpy(&single, at, ct_dtype_size(dtype) >= 4 ? 4 : 1);
    memcpy(&wide, at, ct_dtype_size(dtype) >= 8 ? 8 : 1);
    switch (dtype) {
    case CT_F16:
        return isnan(f16_to_f32(half));
    case CT_BF16:
        return isnan(bf16_to_f32(half));
    case CT_F8E4M3:
        return isnan(f8e4m3_to_f32((uint8_t)*at));
    case CT_F8E5M2:
        return isnan(f8e5m2_to_f32((uint8_t)*at));
    case CT_F32:
    case CT_C64:
        return isnan(single);
    case CT_F64:
    case CT_C128:
        return isnan(wide);
    default:
        return 0;
    }
}

int same(ct_dtype dtype, ct_op op, const char *got, const char *wanted, size_t count)
{
    const int parts = dtype == CT_C64 || dtype == CT_C128 ? 2 : 1;
    const size_t size = ct_dtype_size(dtype) / (size_t)parts;

    if (memcmp(got, wanted, count * ct_dtype_size(dtype)) == 0)
        return 1;
    for (size_t i = 0; i < count * (size_t)parts * size; i += size)
        if (memcmp(got + i, wanted + i, size) != 0
            && (op == CT_MIN || op == CT_MAX || !is_nan(dtype, got + i)
                || !is_nan(dtype, wanted + i)))
            return 0;
    return 1;
}

void fill(ct_dtype dtype, char *at, size_t count)
{
    const size_t size = ct_dtype_size(dtype);

    for (size_t i = 0; i < count * size; i++)
        at[i] = (char)any(256);
    for (size_t i = 0; i < count; i++) {
        const float small = (float)any(17) / 4 - 2;
        const double wide = (double)small;
        const uint16_t half = dtype == CT_F16 ? f32_to_f16(small) : f32_to_bf16(small);
        const uint8_t least = dtype == CT_F8E4M3 ? f32_to_f8e4m3(small) : f32_to_f8e5m2(small);

        if (any(3) > 0)
            continue;
        if (size >= 8 && dtype != CT_C64)
            memcpy(at + i * size, &wide, 8);
        else if (size >= 4)
            memcpy(at + i * size, &small, 4);
        else if (size == 2)
            memcpy(at + i * size, &half, 2);
        else
            memcpy(at + i * size, &least, 1);
    }
}
