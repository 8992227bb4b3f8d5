/* SPDX-License-Identifier: Apache-2.0 */
/* combine_loops.h - defines the loops of reductions, and a table of them with the name KERNELS.
 *
 * There is a plain loop for each dtype and op, which reads up to MOST_AT_ONCE sources.  A reduction
 * of four sources reads four streams and writes one stream, and keeps the accumulator in a
 * register.  The compiler vectorizes the loops for the machine that the including file is compiled
 * for.  For narrow floats the compiler's code is slow; it reached a fifteenth of the speed of the
 * conversion instructions.  So combine_narrow_avx2.h and combine_f16_neon.h define loops over
 * blocks of narrow floats. */
#include <string.h>

#include "runtime/reduction/combine_kernels.h"

/* Lets the compiler vectorize the loop that follows.  No element depends on another element, since
 * dst is the same array as a source or does not overlap it. */
#ifdef __clang__
#define ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* clang may leave a loop as it is */
#else
#define ELEMENTWISE _Pragma("GCC ivdep")
#endif

/* Defines a form of a dtype: its type in memory (T, at any address) and in registers (A). */
#define DEFINE_FORM(FORM, T, A)                         \
    typedef struct __attribute__((packed, may_alias)) { \
        T value;                                        \
    } FORM##_stored;                                    \
    typedef A FORM##_acc;

#define SOURCE(j) src[sources > (j) ? (j) : 0]
#define TAKE(j, expr, FORM, LOAD)                      \
    if (sources > (j)) {                               \
        const FORM##_acc b = LOAD(source##j[i].value); \
                                                       \
        a = expr;                                      \
    }

/* Defines the kernel of an op.  The loop is inlined for each number of sources, as a constant. */
#define DEFINE_FOLD(OP, expr, FORM, LOAD, STORE)                                             \
    static inline __attribute__((always_inline)) void FORM##_##OP##_loop(                    \
        FORM##_stored *dst, const void *const *src, const int sources, size_t n)             \
    {                                                                                        \
        const FORM##_stored *const source0 = src[0], *const source1 = SOURCE(1);             \
        const FORM##_stored *const source2 = SOURCE(2), *const source3 = SOURCE(3);          \
        const FORM##_stored *const source4 = SOURCE(4), *const source5 = SOURCE(5);          \
        const FORM##_stored *const source6 = SOURCE(6), *const source7 = SOURCE(7);          \
                                                                                             \
        ELEMENTWISE                                                                          \
        for (size_t i = 0; i < n; i++) {                                                     \
            FORM##_acc a = LOAD(source0[i].value);                                           \
                                                                                             \
            TAKE(1, expr, FORM, LOAD)                                                        \
            TAKE(2, expr, FORM, LOAD)                                                        \
            TAKE(3, expr, FORM, LOAD)                                                        \
            TAKE(4, expr, FORM, LOAD)                                                        \
            TAKE(5, expr, FORM, LOAD)                                                        \
            TAKE(6, expr, FORM, LOAD)                                                        \
            TAKE(7, expr, FORM, LOAD)                                                        \
            dst[i].value = STORE(a);                                                         \
        }                                                                                    \
    }                                                                                        \
    static void FORM##_##OP##_fold(void *dst, const void *const *src, int sources, size_t n) \
    {                                                                                        \
        switch (sources) {                                                                   \
        case 1:                                                                              \
            FORM##_##OP##_loop(dst, src, 1, n);                                              \
            break;                                                                           \
        case 2:                                                                              \
            FORM##_##OP##_loop(dst, src, 2, n);                                              \
            break;                                                                           \
        case 3:                                                                              \
            FORM##_##OP##_loop(dst, src, 3, n);                                              \
            break;                                                                           \
        case 4:                                                                              \
            FORM##_##OP##_loop(dst, src, 4, n);                                              \
            break;                                                                           \
        default:                                                                             \
            FORM##_##OP##_loop(dst, src, MOST_AT_ONCE, n);                                   \
        }                                                                                    \
    }

#define DEFINE_CONVERSION(FUNCTION, FROM, TO, CONVERT)         \
    static void FUNCTION(void *dst, const void *src, size_t n) \
    {                                                          \
        TO##_stored *const to = dst;                           \
        const FROM##_stored *const from = src;                 \
                                                               \
        ELEMENTWISE                                            \
        for (size_t i = 0; i < n; i++)                         \
            to[i].value = CONVERT(from[i].value);              \
    }

#define DEFINE_DIVIDE(FORM, N, quotient)                          \
    static void FORM##_divide(void *values, size_t count, int by) \
    {                                                             \
        FORM##_stored *const value = values;                      \
        const N n = (N)by;                                        \
                                                                  \
        ELEMENTWISE                                               \
        for (size_t i = 0; i < count; i++) {                      \
            const FORM##_acc a = value[i].value;                  \
                                                                  \
            value[i].value = quotient;                            \
        }                                                         \
    }

#define DEFINE_SCALE(FORM, product)                                                    \
    static void FORM##_scale(void *to, const void *from, size_t n, const void *factor) \
    {                                                                                  \
        FORM##_stored *const dst = to;                                                 \
        const FORM##_stored *const src = from;                                         \
        const FORM##_acc b = ((const FORM##_stored *)factor)->value;                   \
                                                                                       \
        ELEMENTWISE                                                                    \
        for (size_t i = 0; i < n; i++) {                                               \
            const FORM##_acc a = src[i].value;                                         \
                                                                                       \
            dst[i].value = product;                                                    \
        }                                                                              \
    }

/* ---- The forms of each family, and their loops -------------------------------- */

#define AS_IS(x) (x)

/* The accumulators of other dtypes. */
DEFINE_FORM(I64_sum, int64_t, int64_t)
DEFINE_FORM(U64_sum, uint64_t, uint64_t)
DEFINE_FORM(F32_sum, float, float)
DEFINE_DIVIDE(I64_sum, int64_t, a / n)
DEFINE_DIVIDE(U64_sum, uint64_t, a / n)

#define DEFINE_INTEGER(NAME, name, T, U, SUM)                          \
    DEFINE_FORM(NAME##_wrapping, U, U)                                 \
    DEFINE_FORM(NAME##_ordering, T, T)                                 \
    WRAPPING_OPS(DEFINE_FOLD, NAME##_wrapping, AS_IS, AS_IS)           \
    ORDERING_OPS(DEFINE_FOLD, NAME##_ordering, AS_IS, AS_IS)           \
    DEFINE_CONVERSION(NAME##_widen, NAME##_ordering, SUM##_sum, AS_IS) \
    DEFINE_CONVERSION(NAME##_narrow, SUM##_sum, NAME##_wrapping, (U))

#define DEFINE_REAL(NAME, name, T, ...)              \
    DEFINE_FORM(NAME##_real, T, T)                   \
    REAL_OPS(DEFINE_FOLD, NAME##_real, AS_IS, AS_IS) \
    DEFINE_DIVIDE(NAME##_real, T, a / n)             \
    DEFINE_SCALE(NAME##_real, a *b)

#if defined(WITHOUT_COMPLEX)
#define DEFINE_COMPLEX(...)
#else
#define DEFINE_COMPLEX(NAME, name, T, PART, ...)                 \
    DEFINE_FORM(NAME##_complex, T, T)                            \
    COMPLEX_OPS(DEFINE_FOLD, name, NAME##_complex, AS_IS, AS_IS) \
    DEFINE_DIVIDE(NAME##_complex, PART, name##_divide(a, n))     \
    DEFINE_SCALE(NAME##_complex, name##_multiply(a, b))
#endif

#define TRUTH(x) ((x) != 0)
#define DEFINE_BOOL(NAME, ...)                  \
    DEFINE_FORM(NAME##_truth, uint8_t, uint8_t) \
    BOOL_OPS(DEFINE_FOLD, NAME##_truth, TRUTH, AS_IS)

#define DEFINE_NARROW_ELEMENTS(NAME, name, T, ...)                        \
    DEFINE_FORM(NAME##_small, T, float)                                   \
    REAL_OPS(DEFINE_FOLD, NAME##_small, name##_to_f32, f32_to_##name)     \
    DEFINE_CONVERSION(NAME##_widen, NAME##_small, F32_sum, name##_to_f32) \
    DEFINE_CONVERSION(NAME##_narrow, F32_sum, NAME##_small, f32_to_##name)

#if defined(WITHOUT_NARROW)
#define DEFINE_NARROW(...)
#elif defined(__AVX2__) && defined(__F16C__)
#include "runtime/reduction/combine_narrow_avx2.h"
#elif defined(__aarch64__)
#include "runtime/reduction/combine_f16_neon.h"
#else
#define DEFINE_NARROW DEFINE_NARROW_ELEMENTS
#endif

#define DEFINE_DTYPE(NAME, name, FAMILY, ...) DEFINE_##FAMILY(NAME, name, __VA_ARGS__)
DTYPES(DEFINE_DTYPE)

/* ---- The table ------------------------------------------------------------------ */

#define FOLD(OP, expr, FORM) [CT_##OP] = FORM##_##OP##_fold,

#define INTEGER_KERNELS(NAME, name, T, U, SUM)                           \
    [CT_##NAME] = { .fold = { WRAPPING_OPS(FOLD, NAME##_wrapping)        \
                                  ORDERING_OPS(FOLD, NAME##_ordering) }, \
                    .widen = NAME##_widen,                               \
                    .narrow = NAME##_narrow,                             \
                    .divide = SUM##_sum_divide },
#define REAL_KERNELS(NAME, ...)                              \
    [CT_##NAME] = { .fold = { REAL_OPS(FOLD, NAME##_real) }, \
                    .divide = NAME##_real_divide,            \
                    .scale = NAME##_real_scale },
#define BOOL_KERNELS(NAME, ...) [CT_##NAME] = { .fold = { BOOL_OPS(FOLD, NAME##_truth) } },
#if defined(WITHOUT_COMPLEX)
#define COMPLEX_KERNELS(...)
#else
#define COMPLEX_KERNELS(NAME, name, ...)                                 \
    [CT_##NAME] = { .fold = { COMPLEX_OPS(FOLD, name, NAME##_complex) }, \
                    .divide = NAME##_complex_divide,                     \
                    .scale = NAME##_complex_scale },
#endif
#if defined(WITHOUT_NARROW)
#define NARROW_KERNELS(...)
#else
#define NARROW_KERNELS(NAME, ...)                             \
    [CT_##NAME] = { .fold = { REAL_OPS(FOLD, NAME##_small) }, \
                    .widen = NAME##_widen,                    \
                    .narrow = NAME##_narrow },
#endif
#define DTYPE_KERNELS(NAME, name, FAMILY, ...) FAMILY##_KERNELS(NAME, name, __VA_ARGS__)

const struct kernels KERNELS[DTYPE_COUNT] = { DTYPES(DTYPE_KERNELS) };
