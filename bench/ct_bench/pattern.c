/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - see pattern.h. */
#include "bench/ct_bench/pattern.h"

#include <stdio.h>
#include <string.h>

/* ---- Elements ---------------------------------------------------------------------------- */

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

/* ---- Patterns ---------------------------------------------------------------------------- */

#define MOST_TWOS 5 /* of the factors of a product */

static uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xd1b54a32d192ed03u + 0x2545f4914f6cdd1du;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Pairs of ranks differ by one up and one down from a mean that all share. */
static int64_t averaged(const struct inputs *in, int rank, uint64_t place, int64_t most)
{
    const int64_t room = element_is_whole(in->dtype) ? most / in->ranks : most - 1;
    const int64_t mean = room > 0 ? 1 + (int64_t)(place % (uint64_t)room) : 0;
    const int paired = (rank | 1) < in->ranks && mean > 0;

    return !paired ? mean : ((rank ^ (int)(place >> 40)) & 1) ? mean + 1 : mean - 1;
}

/* Random bits of several ranks would nearly always fold to the same: so one rank decides. */
static int64_t truth(ct_op op, int decides, uint64_t own)
{
    if (op == MOVED || op == CT_BXOR || decides)
        return (int64_t)(own & 1);
    return op == CT_PRODUCT || op == CT_MIN || op == CT_BAND;
}

static int64_t value_of(const struct inputs *in, int rank, size_t i)
{
    const uint64_t place = mixed(in->round, i), own = mixed(place, (uint64_t)rank + 1);
    const int64_t most = element_most(in->dtype), share = most / in->ranks;
    /* Where not all ranks can give something: whose turn it is changes with the element. */
    const int64_t turn = (int64_t)((place + (uint64_t)rank) % (uint64_t)in->ranks);

    if (in->dtype == CT_BOOL)
        return truth(in->op, turn == 0, own);
    switch (in->op) {
    case CT_SUM:
        if (share > 0)
            return (int64_t)(own % (uint64_t)(share + 1));
        return turn < most ? (int64_t)(own & 1) : 0;
    case CT_AVG:
        return averaged(in, rank, place, most);
    case CT_PRODUCT:
        return turn < MOST_TWOS ? 1 + (int64_t)(own & 1) : 1;
    default:
        return (int64_t)(own % (uint64_t)(most + 1));
    }
}

static int64_t folded(const struct inputs *in, size_t i)
{
    int64_t a = value_of(in, 0, i);

    for (int rank = 1; rank < in->ranks; rank++) {
        const int64_t b = value_of(in, rank, i);

        switch (in->op) {
        case CT_PRODUCT:
            a *= b;
            break;
        case CT_MIN:
            a = b < a ? b : a;
            break;
        case CT_MAX:
            a = b > a ? b : a;
            break;
        case CT_BAND:
            a &= b;
            break;
        case CT_BOR:
            a |= b;
            break;
        case CT_BXOR:
            a ^= b;
            break;
        default:
            a += b;
        }
    }
    if (in->op == CT_AVG)
        a /= in->ranks;
    return in->dtype == CT_BOOL ? a != 0 : a;
}

void pattern_make(struct pattern *pattern, const struct inputs *inputs, int source)
{
    pattern->element = ct_dtype_size(inputs->dtype);
    for (size_t i = 0; i < PERIOD; i++) {
        const int64_t value = source == FOLDED ? folded(inputs, i) : value_of(inputs, source, i);

        element_write(inputs->dtype, pattern->bytes + i * pattern->element, value,
                      inputs->op == CT_PRODUCT ? 0 : 2 * value);
    }
}

/* Elements from `start` on until the pattern begins again, at most `count`. */
static size_t run_from(size_t start, size_t count)
{
    const size_t left = PERIOD - start % PERIOD;

    return count < left ? count : left;
}

void pattern_fill(const struct pattern *pattern, size_t start, void *buf, size_t count)
{
    char *to = buf;

    while (count > 0) {
        const size_t run = run_from(start, count), bytes = run * pattern->element;

        memcpy(to, pattern->bytes + start % PERIOD * pattern->element, bytes);
        to += bytes;
        start += run;
        count -= run;
    }
}

static size_t differences(const unsigned char *a, const unsigned char *b, size_t element,
                          size_t count)
{
    size_t wrong = 0;

    for (size_t i = 0; i < count; i++)
        wrong += memcmp(a + i * element, b + i * element, element) != 0;
    return wrong;
}

size_t pattern_wrong(const struct pattern *pattern, size_t start, const void *buf, size_t count)
{
    const unsigned char *got = buf;
    size_t wrong = 0;

    while (count > 0) {
        const size_t run = run_from(start, count), bytes = run * pattern->element;
        const unsigned char *wanted = pattern->bytes + start % PERIOD * pattern->element;

        if (memcmp(got, wanted, bytes) != 0)
            wrong += differences(got, wanted, pattern->element, run);
        got += bytes;
        start += run;
        count -= run;
    }
    return wrong;
}
