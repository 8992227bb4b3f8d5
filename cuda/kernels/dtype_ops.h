/* SPDX-License-Identifier: Apache-2.0 */
/* dtype_ops.h - every dtype's arithmetic, from the rows of runtime/types/dtype_list.h.
 *
 * This is C++, for nvcc and for the host's compiler.  A form has the type of a dtype in memory
 * (stored) and the type in which it is folded (folded).  A form folds LANES elements at once, with
 * one switch over the op for all of them.  HAS_SCALARS: premul_sum accepts the dtype. */
#ifndef CUDA_KERNELS_DTYPE_OPS_H
#define CUDA_KERNELS_DTYPE_OPS_H

#include <stddef.h>

#include "cuda/kernels/kernel_args.h"
#include "include/ct.h"

#define FOR_LANES(lane) for (int lane = 0; lane < LANES; lane++)

/* One op's row of the switch in step().  AS: the type in which the op's expression is computed. */
#define STEP(OP, expr, AS)                                    \
    case CT_##OP:                                             \
        FOR_LANES(lane)                                       \
        {                                                     \
            const AS a = (AS)total[lane], b = (AS)next[lane]; \
                                                              \
            total[lane] = (folded)(expr);                     \
        }                                                     \
        break;

/* total[i] = total[i] op next[i] */
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

/* Folds in WIDTH bytes without a sign, so that integers wrap, and cuts the result when it is
 * stored. */
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

/* NAME_average is the form in which an average is folded.  The host uses 64 bits.  For integers of
 * 8 or 16 bits 32 are enough: they hold the sum of FOLD_MANY. */
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

/* These forms do SUM and AVG only.  There a NaN is the adder's own, so the GPU's conversions give
 * the same bits as runtime/types/narrow_float.h, in a tenth of the instructions. */
typedef U8_form U8_sum; /* it has one source: nothing is added */
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
