/* SPDX-License-Identifier: Apache-2.0 */
/* dtype_ops.h - the arithmetic of every dtype, from the rows of runtime/types/dtype_list.h.
 *
 * This file is C++, for nvcc and for the host's compiler.  Each dtype has a struct, its form.  In a
 * form, `stored` is the dtype's type in memory, and `folded` is the type in which elements are
 * folded.  step() folds LANES elements at once, with one switch over the op for all of them.
 * HAS_SCALARS is 1 if premul_sum accepts the dtype. */
#ifndef CUDA_KERNELS_DTYPE_OPS_H
#define CUDA_KERNELS_DTYPE_OPS_H

#include <stddef.h>

#include "cuda/kernels/kernel_args.h"
#include "include/ct.h"

#define FOR_LANES(lane) for (int lane = 0; lane < LANES; lane++)

/* The case of one op in the switch of step().  AS is the type in which the op's expression is
 * computed. */
#define STEP(OP, expr, AS)                                    \
    case CT_##OP:                                             \
        FOR_LANES(lane)                                       \
        {                                                     \
            const AS a = (AS)total[lane], b = (AS)next[lane]; \
                                                              \
            total[lane] = (folded)(expr);                     \
        }                                                     \
        break;

/* Defines step(), which computes total[i] = total[i] op next[i] for each lane i.  The arguments are
 * the cases of the switch. */
#define DEFINE_STEP(...)                                                                 \
    template <int LANES>                                                                 \
    CT_ELEMENT void step(uint32_t op, folded(&total)[LANES], const folded(&next)[LANES]) \
    {                                                                                    \
        switch (op) {                                                                    \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }

/* ---- Integers --------------------------------------------------------------------- */

template <size_t SIZE> struct whole {
    typedef int32_t with_sign;
    typedef uint32_t without;
};
template <> struct whole<8> {
    typedef int64_t with_sign;
    typedef uint64_t without;
};

/* The form of an integer dtype.  Elements are folded as unsigned integers of WIDTH bytes, so that
 * they wrap around.  The result is truncated to T when it is stored. */
template <class T, size_t WIDTH> struct integer {
    typedef T stored;
    typedef typename whole<WIDTH>::without folded;
    enum { HAS_SCALARS = 0 };

    CT_ELEMENT folded load(T x)
    {
        return (folded)x;
    }

    CT_ELEMENT T store(folded x)
    {
        return (T)x;
    }

    CT_ELEMENT folded divide(folded x, uint32_t n)
    {
        typedef typename whole<WIDTH>::with_sign with_sign;

        return (T)-1 < (T)0 ? (folded)((with_sign)x / (with_sign)n) : x / n;
    }

    DEFINE_STEP(WRAPPING_OPS(STEP, folded) ORDERING_OPS(STEP, T))
};

/* NAME_average is the form in which an average is folded.  The host folds averages of integers in
 * 64 bits.  For integers of 8 or 16 bits, 32 bits are enough, since they can hold the sum of
 * FOLD_MANY sources. */
#define DEFINE_INTEGER(NAME, name, T, ...)                  \
    typedef integer<T, sizeof(T) == 8 ? 8 : 4> NAME##_form; \
    typedef integer<T, sizeof(T) >= 4 ? 8 : 4> NAME##_average;

/* ---- Everything else -------------------------------------------------------------- */

#define AS_IS(x) (x)
#define TRUTH(x) ((x) != 0)
#define UNDIVIDED(x, n) (x)
#define QUOTIENT(x, n) ((x) / (folded)(n))
#define c64_QUOTIENT(x, n) c64_divide(x, (float)(n))
#define c128_QUOTIENT(x, n) c128_divide(x, (double)(n))

#define DEFINE_FORM(NAME, T, FOLDED, SCALARS, LOAD, STORE, DIVIDE, ...) \
    struct NAME##_form {                                                \
        typedef T stored;                                               \
        typedef FOLDED folded;                                          \
        enum { HAS_SCALARS = SCALARS };                                 \
                                                                        \
        CT_ELEMENT folded load(T x)                                     \
        {                                                               \
            return LOAD(x);                                             \
        }                                                               \
                                                                        \
        CT_ELEMENT T store(folded x)                                    \
        {                                                               \
            return STORE(x);                                            \
        }                                                               \
                                                                        \
        CT_ELEMENT folded divide(folded x, uint32_t n)                  \
        {                                                               \
            (void)n;                                                    \
            return DIVIDE(x, n);                                        \
        }                                                               \
                                                                        \
        DEFINE_STEP(__VA_ARGS__)                                        \
    };                                                                  \
    typedef NAME##_form NAME##_average;

#define DEFINE_REAL(NAME, name, T, ...) \
    DEFINE_FORM(NAME, T, T, 1, AS_IS, AS_IS, QUOTIENT, REAL_OPS(STEP, T))
#define DEFINE_NARROW(NAME, name, T, ...) \
    DEFINE_FORM(NAME, T, float, 1, name##_to_f32, f32_to_##name, QUOTIENT, REAL_OPS(STEP, float))
#define DEFINE_COMPLEX(NAME, name, T, ...) \
    DEFINE_FORM(NAME, T, T, 1, AS_IS, AS_IS, name##_QUOTIENT, COMPLEX_OPS(STEP, name, T))
#define DEFINE_BOOL(NAME, name, T, ...) \
    DEFINE_FORM(NAME, T, uint32_t, 0, TRUTH, (T), UNDIVIDED, BOOL_OPS(STEP, uint32_t))

#define DEFINE_DTYPE(NAME, name, FAMILY, ...) DEFINE_##FAMILY(NAME, name, __VA_ARGS__)
DTYPES(DEFINE_DTYPE)

/* ---- The forms of the hot kernels ------------------------------------------------- */

/* These forms support only SUM and AVG.  A NaN in their results comes from the adder.  So the GPU's
 * conversions produce the same bits as runtime/types/narrow_float.h, with a tenth of the
 * instructions. */
typedef U8_form U8_sum; /* used only for copies and exchanges, which add nothing */
typedef F32_form F32_sum;

struct F16_sum : F16_form {
#ifdef __CUDA_ARCH__
    CT_ELEMENT float load(uint16_t x)
    {
        float wide;

        asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x));
        return wide;
    }

    CT_ELEMENT uint16_t store(float x)
    {
        uint16_t narrow;

        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow) : "f"(x));
        return narrow;
    }
#endif
};

struct BF16_sum : BF16_form {
#ifdef __CUDA_ARCH__
    CT_ELEMENT uint16_t store(float x)
    {
        uint16_t narrow;

        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow) : "f"(x));
        return narrow;
    }
#endif
};

#endif
