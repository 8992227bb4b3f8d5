/* SPDX-License-Identifier: Apache-2.0 */
/* elements.c - see elements.h. */
#include "bench/ct_bench/elements.h"

#include <stdio.h>
#include <string.h>

enum kind { WHOLE, F8_F16, F32, F64 };

static const struct element {
    const char *name;
    int64_t most;
    enum kind kind;
    int mantissa, bias; /* of F8_F16 */
} elements[] = {
    [CT_I8] = { "i8", 127, WHOLE, 0, 0 },         [CT_U8] = { "u8", 255, WHOLE, 0, 0 },
    [CT_I16] = { "i16", 2048, WHOLE, 0, 0 },      [CT_U16] = { "u16", 2048, WHOLE, 0, 0 },
    [CT_I32] = { "i32", 2048, WHOLE, 0, 0 },      [CT_U32] = { "u32", 2048, WHOLE, 0, 0 },
    [CT_I64] = { "i64", 2048, WHOLE, 0, 0 },      [CT_U64] = { "u64", 2048, WHOLE, 0, 0 },
    [CT_F16] = { "f16", 2048, F8_F16, 10, 15 },   [CT_BF16] = { "bf16", 256, F8_F16, 7, 127 },
    [CT_F32] = { "f32", 2048, F32, 0, 0 },        [CT_F64] = { "f64", 2048, F64, 0, 0 },
    [CT_BOOL] = { "bool", 1, WHOLE, 0, 0 },       [CT_C64] = { "c64", 2048, F32, 0, 0 },
    [CT_C128] = { "c128", 2048, F64, 0, 0 },      [CT_F8E4M3] = { "f8e4m3", 16, F8_F16, 3, 7 },
    [CT_F8E5M2] = { "f8e5m2", 8, F8_F16, 2, 15 },
};
static const char *const ops[] = {
    [CT_SUM] = "sum", [CT_AVG] = "avg",   [CT_PRODUCT] = "product", [CT_MIN] = "min",
    [CT_MAX] = "max", [CT_BAND] = "band", [CT_BOR] = "bor",         [CT_BXOR] = "bxor",
};
enum { DTYPES = sizeof elements / sizeof *elements, OPS = sizeof ops / sizeof *ops };

int dtype_named(const char *name)
{
    for (int i = 0; i < DTYPES; i++)
        if (!strcmp(name, elements[i].name))
            return i;
    return -1;
}

int op_named(const char *name)
{
    for (int i = 0; i < OPS; i++)
        if (!strcmp(name, ops[i]))
            return i;
    return -1;
}

const char *name_of_dtype(ct_dtype dtype)
{
    return elements[dtype].name;
}

const char *name_of_op(ct_op op)
{
    return ops[op];
}

static void append(char *text, size_t room, const char *word)
{
    const size_t used = strlen(text);

    snprintf(text + used, room - used, "%s%s", used ? " " : "", word);
}

void dtype_names(char *text, size_t room)
{
    *text = 0;
    for (int i = 0; i < DTYPES; i++)
        append(text, room, elements[i].name);
}

void op_names(char *text, size_t room)
{
    *text = 0;
    for (int i = 0; i < OPS; i++)
        append(text, room, ops[i]);
}

int64_t element_most(ct_dtype dtype)
{
    return elements[dtype].most;
}

int element_is_whole(ct_dtype dtype)
{
    return elements[dtype].kind == WHOLE;
}

/* Exponent and mantissa of a whole number that needs no rounding. */
static uint32_t small_float(const struct element *element, int64_t value)
{
    int exponent = 0;

    if (value == 0)
        return 0;
    while (value >> (exponent + 1))
        exponent++;
    return ((uint32_t)(exponent + element->bias) << element->mantissa)
           + (uint32_t)(((uint64_t)value << element->mantissa >> exponent)
                        - (1u << element->mantissa));
}

void element_write(ct_dtype dtype, void *at, int64_t value, int64_t imaginary)
{
    const struct element *element = &elements[dtype];
    const float floats[2] = { (float)value, (float)imaginary };
    const double doubles[2] = { (double)value, (double)imaginary };
    uint64_t bits = (uint64_t)value; /* its low bytes: libct's machines are little-endian */

    if (element->kind == F32) {
        memcpy(at, floats, ct_dtype_size(dtype));
    } else if (element->kind == F64) {
        memcpy(at, doubles, ct_dtype_size(dtype));
    } else {
        if (element->kind == F8_F16)
            bits = small_float(element, value);
        memcpy(at, &bits, ct_dtype_size(dtype));
    }
}
