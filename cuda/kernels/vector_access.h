/* SPDX-License-Identifier: Apache-2.0 */
/* vector_access.h - how a kernel accesses memory: in pieces of 16 bytes, or by elements. */
#ifndef CUDA_KERNELS_VECTOR_ACCESS_H
#define CUDA_KERNELS_VECTOR_ACCESS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cuda/kernels/kernel_args.h"
#include "runtime/types/narrow_float.h"

#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#else
#define UNROLL
#define ROLLED
#endif

enum { PIECE = 16 };

struct piece {
    uint32_t word[PIECE / 4];
};

/* Loads a piece.  The kernel reads the piece only once, so the L1 cache does not store it.  The asm
 * is volatile because a destination may be a source: the compiler must not move a store before an
 * earlier load. */
CT_ELEMENT struct piece load_piece(uint64_t address)
{
    struct piece p;

#ifdef __CUDA_ARCH__
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(p.word[0]), "=r"(p.word[1]), "=r"(p.word[2]), "=r"(p.word[3])
                 : "l"(address)
                 : "memory");
#else
    memcpy(&p, __builtin_assume_aligned((const void *)(uintptr_t)address, PIECE), sizeof p);
#endif
    return p;
}

/* Stores a piece.  The kernel does not read the piece again, so the caches may evict it first. */
CT_ELEMENT void store_piece(uint64_t address, struct piece p)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(p.word[0]),
                 "r"(p.word[1]), "r"(p.word[2]), "r"(p.word[3])
                 : "memory");
#else
    memcpy(__builtin_assume_aligned((void *)(uintptr_t)address, PIECE), &p, sizeof p);
#endif
}

/* ---- Numbers --------------------------------------------------------------------- */

/* A number of BYTES bytes at an address that is a multiple of BYTES.  On the GPU, asm accesses the
 * number.  Without asm the compiler (nvcc 13.0) would use this access also in place of a nearby
 * access to the same number by single bytes, and a GPU faults at an unaligned address. */
template <size_t BYTES> struct number;
#ifdef __CUDA_ARCH__
#define LOAD_NUMBER(BITS, HOW, REGISTER, CONSTRAINT)                                           \
    REGISTER x;                                                                                \
                                                                                               \
    asm volatile("ld.global." HOW " %0, [%1];" : "=" CONSTRAINT(x) : "l"(address) : "memory"); \
    return (BITS)x
#define STORE_NUMBER(BITS, HOW, REGISTER, CONSTRAINT) \
    const REGISTER wide = x;                          \
                                                      \
    asm volatile("st.global." HOW " [%0], %1;" ::"l"(address), CONSTRAINT(wide) : "memory")
#else
#define LOAD_NUMBER(BITS, ...)                            \
    typedef BITS __attribute__((may_alias)) number_there; \
                                                          \
    return *(const number_there *)(uintptr_t)address
#define STORE_NUMBER(BITS, ...)                           \
    typedef BITS __attribute__((may_alias)) number_there; \
                                                          \
    *(number_there *)(uintptr_t)address = x
#endif
#define DEFINE_NUMBER(BITS, ...)                        \
    template <> struct number<sizeof(BITS)> {           \
        typedef BITS bits;                              \
        CT_ELEMENT BITS load(uint64_t address)          \
        {                                               \
            LOAD_NUMBER(BITS, __VA_ARGS__);             \
        }                                               \
                                                        \
        CT_ELEMENT void store(uint64_t address, BITS x) \
        {                                               \
            STORE_NUMBER(BITS, __VA_ARGS__);            \
        }                                               \
    };
DEFINE_NUMBER(uint8_t, "u8", uint16_t, "h")
DEFINE_NUMBER(uint16_t, "u16", uint16_t, "h")
DEFINE_NUMBER(uint32_t, "u32", uint32_t, "r")
DEFINE_NUMBER(uint64_t, "u64", uint64_t, "l")

/* ---- Elements of a piece ---------------------------------------------------------- */

/* Returns element `lane` of a piece.  Shifts extract the element, so that the piece stays in
 * registers.  All supported machines are little-endian. */
template <class T> CT_ELEMENT T element_of(const struct piece &p, int lane)
{
    const size_t at = (size_t)lane * sizeof(T);
    const uint32_t bits = p.word[at / 4] >> at % 4 * 8;
    T x;

    if (sizeof(T) < 4)
        memcpy(&x, &bits, sizeof(T) < 4 ? sizeof(T) : 4);
    else
        memcpy(&x, &p.word[at / 4], sizeof(T));
    return x;
}

/* Writes element `lane` of a piece.  The piece must be zero before the first element is written. */
template <class T> CT_ELEMENT void put_element(struct piece &p, int lane, T x)
{
    const size_t at = (size_t)lane * sizeof(T);
    uint32_t bits = 0;

    if (sizeof(T) < 4) {
        memcpy(&bits, &x, sizeof(T) < 4 ? sizeof(T) : 4);
        p.word[at / 4] |= bits << at % 4 * 8;
    } else {
        memcpy(&p.word[at / 4], &x, sizeof(T));
    }
}

/* ---- Two ways to go through memory ------------------------------------------------ */

/* by_pieces accesses memory in pieces, and by_elements accesses single elements.  Both have the
 * same functions.  The caller adds the same offset to the addresses of all sources and
 * destinations. */
template <class F> struct by_pieces {
    enum {
        LANES = PIECE / sizeof(typename F::stored),
        HAS_SCALARS = F::HAS_SCALARS && PIECE / sizeof(typename F::stored) <= MOST_SCALED
    };
    typedef struct piece raw;

    CT_ELEMENT raw load(uint64_t address, uint32_t)
    {
        return load_piece(address);
    }

    CT_ELEMENT void store(uint64_t address, raw x, uint32_t)
    {
        store_piece(address, x);
    }

    CT_ELEMENT void unpack(typename F::folded (&to)[LANES], raw from)
    {
        UNROLL
        for (int lane = 0; lane < LANES; lane++)
            to[lane] = F::load(element_of<typename F::stored>(from, lane));
    }

    CT_ELEMENT raw pack(const typename F::folded (&from)[LANES])
    {
        raw to = { { 0, 0, 0, 0 } };

        UNROLL
        for (int lane = 0; lane < LANES; lane++)
            put_element<typename F::stored>(to, lane, F::store(from[lane]));
        return to;
    }
};

/* `by_bytes` is 1 if a pointer of the user is not aligned for the element. */
template <class F> struct by_elements {
    enum { LANES = 1, HAS_SCALARS = F::HAS_SCALARS };
    typedef typename F::stored raw;
    typedef number<alignof(raw)> part; /* a complex number has two parts */

    CT_ELEMENT raw load(uint64_t address, uint32_t by_bytes)
    {
        typename part::bits bits[sizeof(raw) / alignof(raw)];
        raw x;

        if (by_bytes) {
            memcpy(&x, (const unsigned char *)(uintptr_t)address, sizeof x);
            return x;
        }
        UNROLL
        for (size_t p = 0; p < sizeof bits / sizeof *bits; p++)
            bits[p] = part::load(address + p * sizeof *bits);
        memcpy(&x, bits, sizeof x);
        return x;
    }

    CT_ELEMENT void store(uint64_t address, raw x, uint32_t by_bytes)
    {
        typename part::bits bits[sizeof(raw) / alignof(raw)];

        if (by_bytes) {
            memcpy((unsigned char *)(uintptr_t)address, &x, sizeof x);
            return;
        }
        memcpy(bits, &x, sizeof x);
        UNROLL
        for (size_t p = 0; p < sizeof bits / sizeof *bits; p++)
            part::store(address + p * sizeof *bits, bits[p]);
    }

    CT_ELEMENT void unpack(typename F::folded (&to)[LANES], raw from)
    {
        to[0] = F::load(from);
    }

    CT_ELEMENT raw pack(const typename F::folded (&from)[LANES])
    {
        return F::store(from[0]);
    }
};

#endif
