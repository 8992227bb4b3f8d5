/* SPDX-License-Identifier: Apache-2.0 */
/* integers.c - arithmetic, comparisons, shifts and bit fields of integers. */
#include <stddef.h>

#include "tests/ptx/parts.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* type, C's, the widest with such a sign, the letter of its registers */
#define NUMBERS(X, ...)                          \
    X(s16, int16_t, int64_t, "h", __VA_ARGS__)   \
    X(u16, uint16_t, uint64_t, "h", __VA_ARGS__) \
    X(s32, int32_t, int64_t, "w", __VA_ARGS__)   \
    X(u32, uint32_t, uint64_t, "w", __VA_ARGS__) \
    X(s64, int64_t, int64_t, "d", __VA_ARGS__)   \
    X(u64, uint64_t, uint64_t, "d", __VA_ARGS__)
#define BITS(X, ...)                   \
    X(b16, uint16_t, "h", __VA_ARGS__) \
    X(b32, uint32_t, "w", __VA_ARGS__) \
    X(b64, uint64_t, "d", __VA_ARGS__)

/* ---- d = a op b ------------------------------------------------------------------- */

/* In 64 bits without a sign: the low ones are right whatever the type. */
#define ARITHMETIC(X)                          \
    X(add, "add", (uint64_t)a + (uint64_t)b)   \
    X(sub, "sub", (uint64_t)a - (uint64_t)b)   \
    X(mul, "mul.lo", (uint64_t)a *(uint64_t)b) \
    X(min, "min", a < b ? a : b)               \
    X(max, "max", a > b ? a : b)
#define COMPARISONS(X)       \
    X(eq, "setp.eq", a == b) \
    X(ne, "setp.ne", a != b) \
    X(lt, "setp.lt", a < b)  \
    X(le, "setp.le", a <= b) \
    X(gt, "setp.gt", a > b)  \
    X(ge, "setp.ge", a >= b)

#define DEFINE_BINARY(type, T, WIDE, L, op, expr)                               \
    static void op##_##type(struct thread *thread, const struct instruction *i) \
    {                                                                           \
        const T a = (T)IN(1), b = (T)IN(2);                                     \
                                                                                \
        OUT(expr);                                                              \
    }
#define DEFINE_ALL(op, name, expr) NUMBERS(DEFINE_BINARY, op, expr)
ARITHMETIC(DEFINE_ALL)
COMPARISONS(DEFINE_ALL)

#define BINARY_ROW(type, T, WIDE, L, op, name) { name "." #type, L L L, op##_##type },
#define BINARY_ROWS(op, name, expr) NUMBERS(BINARY_ROW, op, name)
#define COMPARISON_ROW(type, T, WIDE, L, op, name) { name "." #type, "p" L L, op##_##type },
#define COMPARISON_ROWS(op, name, expr) NUMBERS(COMPARISON_ROW, op, name)

/* ---- What PTX leaves open: a quotient by 0, or one that has no room ---------------- */

#define DEFINE_DIVISION(type, T, WIDE, L, ...)                                 \
    static void div_##type(struct thread *thread, const struct instruction *i) \
    {                                                                          \
        const T a = (T)IN(1), b = (T)IN(2);                                    \
        const T least = (T)(UINT64_C(1) << (8 * sizeof(T) - 1));               \
                                                                               \
        if (b == 0)                                                            \
            thread_fault(thread, i, "divides by zero");                        \
        else if ((T)-1 < (T)1 && b == (T)-1 && a == least)                     \
            thread_fault(thread, i, "divides the least number by -1");         \
        else                                                                   \
            OUT(a / b);                                                        \
    }
NUMBERS(DEFINE_DIVISION, )
#define DIVISION_ROW(type, T, WIDE, L, ...) { "div." #type, L L L, div_##type },

/* ---- Twice as wide ---------------------------------------------------------------- */

#define WIDENED(X)                    \
    X(s16, int16_t, int64_t, "whh")   \
    X(u16, uint16_t, uint64_t, "whh") \
    X(s32, int32_t, int64_t, "dww")   \
    X(u32, uint32_t, uint64_t, "dww")
#define DEFINE_WIDE(type, T, WIDE, shape)                                       \
    static void wide_##type(struct thread *thread, const struct instruction *i) \
    {                                                                           \
        OUT((WIDE)(T)IN(1) * (WIDE)(T)IN(2));                                   \
    }
WIDENED(DEFINE_WIDE)
#define WIDE_ROW(type, T, WIDE, shape) { "mul.wide." #type, shape, wide_##type },

/* ---- Bits -------------------------------------------------------------------------- */

static void and_bits(struct thread *thread, const struct instruction *i)
{
    OUT(IN(1) & IN(2));
}

static void or_bits(struct thread *thread, const struct instruction *i)
{
    OUT(IN(1) | IN(2));
}

static void xor_bits(struct thread *thread, const struct instruction *i)
{
    OUT(IN(1) ^ IN(2));
}

/* As far as there are bits: a shift by more is one by all. */
#define DEFINE_LEFT(type, T, L, ...)                                           \
    static void shl_##type(struct thread *thread, const struct instruction *i) \
    {                                                                          \
        const uint32_t by = (uint32_t)IN(2);                                   \
                                                                               \
        OUT(by < 8 * sizeof(T) ? (uint64_t)(T)IN(1) << by : 0);                \
    }
BITS(DEFINE_LEFT, )
#define DEFINE_RIGHT(type, T, WIDE, L, ...)                                        \
    static void shr_##type(struct thread *thread, const struct instruction *i)     \
    {                                                                              \
        const uint32_t by = (uint32_t)IN(2) < 64 ? (uint32_t)IN(2) : 64;           \
                                                                                   \
        OUT((WIDE)(T)IN(1) >> by / 2 >> (by - by / 2)); /* C has no shift by 64 */ \
    }
NUMBERS(DEFINE_RIGHT, )

/* d = b with the low at[4] bits of a from bit at[3] on; what has no room there is dropped. */
static uint64_t insert(uint64_t a, uint64_t b, uint64_t from, uint64_t bits, unsigned width)
{
    for (unsigned k = 0; k < (bits & 0xff) && (from & 0xff) + k < width; k++) {
        const uint64_t bit = UINT64_C(1) << ((from & 0xff) + k);

        b = a >> k & 1 ? b | bit : b & ~bit;
    }
    return b;
}

static void bfi_b32(struct thread *thread, const struct instruction *i)
{
    OUT(insert(IN(1), IN(2), IN(3), IN(4), 32));
}

static void bfi_b64(struct thread *thread, const struct instruction *i)
{
    OUT(insert(IN(1), IN(2), IN(3), IN(4), 64));
}

/* Byte k is the one of b:a that the k-th four bits name, or eight of its sign. */
static void prmt_b32(struct thread *thread, const struct instruction *i)
{
    const uint64_t bytes = IN(2) << 32 | (uint32_t)IN(1);
    uint32_t made = 0;

    for (int k = 0; k < 4; k++) {
        const unsigned which = IN(3) >> (4 * k) & 15;
        const uint8_t byte = (uint8_t)(bytes >> (8 * (which & 7)));

        made |= (uint32_t)(which < 8 ? byte : byte >> 7 ? 0xff : 0) << (8 * k);
    }
    OUT(made);
}

#define LOGIC_ROW(type, T, L, op) { #op "." #type, L L L, op##_bits },
#define LEFT_ROW(type, T, L, ...) { "shl." #type, L L "w", shl_##type },
#define RIGHT_ROW(type, T, WIDE, L, ...) { "shr." #type, L L "w", shr_##type },

/* clang-format off */
static const struct row rows[] = {
    ARITHMETIC(BINARY_ROWS)
    COMPARISONS(COMPARISON_ROWS)
    NUMBERS(DIVISION_ROW, )
    WIDENED(WIDE_ROW)
    BITS(LOGIC_ROW, and)
    BITS(LOGIC_ROW, or)
    BITS(LOGIC_ROW, xor)
    BITS(LEFT_ROW, )
    NUMBERS(RIGHT_ROW, )
    { "and.pred", "ppp", and_bits },
    { "or.pred", "ppp", or_bits },
    { "xor.pred", "ppp", xor_bits },
    { "bfi.b32", "wwwww", bfi_b32 },
    { "bfi.b64", "dddww", bfi_b64 },
    { "prmt.b32", "wwww", prmt_b32 },
};
/* clang-format on */
const struct rows integer_rows = { rows, COUNT(rows) };
