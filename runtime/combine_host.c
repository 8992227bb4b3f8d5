/* SPDX-License-Identifier: Apache-2.0 */
/* combine_host.c - the element-wise step of a reduction, on host memory.
 *
 * A fold goes tile by tile.  A tile of accumulators lies in the first-level
 * cache; source 0 is loaded into it, each further source is applied to it, at
 * a node's end the node's partial is merged into the total, and at the end AVG
 * divides, and the tile is rounded and stored.  So n sources cost n + 1 streams
 * of memory traffic, and dst may be any of the sources: a tile is written only
 * after it was read from all of them.
 *
 * combine_list.h says which dtype has which ops.  Each pair is a cell: five
 * plain loops that the compiler vectorises, three times over on x86-64, where
 * the loader takes the clone that fits the machine.  An empty cell is an op
 * without a meaning. */
#include <string.h>

#include "runtime/combine.h"
#include "runtime/combine_list.h"

#if defined(__SANITIZE_THREAD__)
#define NO_CLONES 1 /* the resolvers run before ThreadSanitizer is set up, and crash */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define NO_CLONES 1
#endif
#endif
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(NO_CLONES)
#define CLONED __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CLONED
#endif

/* dst is one of the sources or apart from them: no element depends on another. */
#ifdef __clang__
#define ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* a few are not worth it: it decides */
#pragma STDC FP_CONTRACT OFF /* the same bits with and without fused multiply-add */
#else
#define ELEMENTWISE _Pragma("GCC ivdep")
#endif

enum { TILE = 512, ACCUMULATOR = 16 }; /* elements; bytes of the largest, c128 */

struct cell {
    void (*load)(void *acc, const void *src, size_t n);
    void (*step)(void *acc, const void *src, size_t n);
    void (*merge)(void *acc, const void *partial, size_t n);
    void (*divide)(void *acc, size_t n, int by); /* of AVG only */
    void (*store)(void *dst, const void *acc, size_t n);
    void (*two)(void *dst, const void *a, const void *b, size_t n); /* without a tile */
};

/* A form is a way to keep a dtype in accumulators: FORM is its name, T the type
 * in memory (at any address), A the accumulator.  A dtype may have several. */
#define DEFINE_FORM(FORM, T, A, LOAD, STORE)                              \
    typedef struct __attribute__((packed, may_alias)) {                   \
        T value;                                                          \
    } FORM##_stored;                                                      \
    typedef A FORM##_acc;                                                 \
    CLONED static void FORM##_load(void *to, const void *from, size_t n)  \
    {                                                                     \
        FORM##_acc *const acc = to;                                       \
        const FORM##_stored *const src = from;                            \
                                                                          \
        ELEMENTWISE                                                       \
        for (size_t i = 0; i < n; i++)                                    \
            acc[i] = LOAD(src[i].value);                                  \
    }                                                                     \
    CLONED static void FORM##_store(void *to, const void *from, size_t n) \
    {                                                                     \
        FORM##_stored *const dst = to;                                    \
        const FORM##_acc *const acc = from;                               \
                                                                          \
        ELEMENTWISE                                                       \
        for (size_t i = 0; i < n; i++)                                    \
            dst[i].value = STORE(acc[i]);                                 \
    }

#define DEFINE_CELL(OP, expr, FORM, LOAD, STORE)                                                 \
    CLONED static void FORM##_##OP##_step(void *to, const void *from, size_t n)                  \
    {                                                                                            \
        FORM##_acc *const acc = to;                                                              \
        const FORM##_stored *const src = from;                                                   \
                                                                                                 \
        ELEMENTWISE                                                                              \
        for (size_t i = 0; i < n; i++) {                                                         \
            const FORM##_acc a = acc[i], b = LOAD(src[i].value);                                 \
                                                                                                 \
            acc[i] = expr;                                                                       \
        }                                                                                        \
    }                                                                                            \
    CLONED static void FORM##_##OP##_merge(void *to, const void *from, size_t n)                 \
    {                                                                                            \
        FORM##_acc *const acc = to;                                                              \
        const FORM##_acc *const partial = from;                                                  \
                                                                                                 \
        ELEMENTWISE                                                                              \
        for (size_t i = 0; i < n; i++) {                                                         \
            const FORM##_acc a = acc[i], b = partial[i];                                         \
                                                                                                 \
            acc[i] = expr;                                                                       \
        }                                                                                        \
    }                                                                                            \
    CLONED static void FORM##_##OP##_two(void *to, const void *one, const void *other, size_t n) \
    {                                                                                            \
        FORM##_stored *const dst = to;                                                           \
        const FORM##_stored *const left = one, *const right = other;                             \
                                                                                                 \
        ELEMENTWISE                                                                              \
        for (size_t i = 0; i < n; i++) {                                                         \
            const FORM##_acc a = LOAD(left[i].value), b = LOAD(right[i].value), c = expr;        \
                                                                                                 \
            dst[i].value = STORE(c);                                                             \
        }                                                                                        \
    }

/* Integers: n stands for `by` in the type the average is divided in. */
#define DEFINE_DIVIDE(FORM, N, quotient)                             \
    CLONED static void FORM##_divide(void *to, size_t count, int by) \
    {                                                                \
        FORM##_acc *const acc = to;                                  \
        const N n = (N)by;                                           \
                                                                     \
        for (size_t i = 0; i < count; i++) {                         \
            const FORM##_acc a = acc[i];                             \
                                                                     \
            acc[i] = quotient;                                       \
        }                                                            \
    }

/* ---- The forms of each family, and their cells ------------------------------ */

#define DEFINE_INTEGER(NAME, T, U, W)                        \
    DEFINE_FORM(NAME##_wrapping, T, U, AS_IS, AS_IS)         \
    DEFINE_FORM(NAME##_ordering, T, T, AS_IS, AS_IS)         \
    DEFINE_FORM(NAME##_averaging, T, uint64_t, AS_IS, AS_IS) \
    DEFINE_DIVIDE(NAME##_averaging, W, (uint64_t)((W)a / n)) \
    WRAPPING_OPS(DEFINE_CELL, NAME##_wrapping, AS_IS, AS_IS) \
    ORDERING_OPS(DEFINE_CELL, NAME##_ordering, AS_IS, AS_IS) \
    AVERAGING_OPS(DEFINE_CELL, NAME##_averaging, AS_IS, AS_IS)
INTEGERS(DEFINE_INTEGER)

#define DEFINE_REAL(NAME, T, A, LOAD, STORE)                                                  \
    DEFINE_FORM(NAME##_real, T, A, LOAD, STORE)                                               \
    DEFINE_DIVIDE(NAME##_real, A, a / n)                                                      \
    REAL_OPS(DEFINE_CELL, NAME##_real, LOAD, STORE)                                           \
    CLONED static void NAME##_scale(void *to, const void *from, size_t n, const void *scalar) \
    {                                                                                         \
        NAME##_real_stored *const dst = to;                                                   \
        const NAME##_real_stored *const src = from;                                           \
        const A factor = LOAD(((const NAME##_real_stored *)scalar)->value);                   \
                                                                                              \
        ELEMENTWISE                                                                           \
        for (size_t i = 0; i < n; i++) {                                                      \
            const A product = LOAD(src[i].value) * factor;                                    \
                                                                                              \
            dst[i].value = STORE(product);                                                    \
        }                                                                                     \
    }
REALS(DEFINE_REAL)

#define DEFINE_COMPLEX(NAME, T, C, real)                                                      \
    DEFINE_FORM(NAME##_complex, T, T, AS_IS, AS_IS)                                           \
    DEFINE_DIVIDE(NAME##_complex, real, C##_divide(a, n))                                     \
    COMPLEX_OPS(DEFINE_CELL, C, NAME##_complex, AS_IS, AS_IS)                                 \
    CLONED static void NAME##_scale(void *to, const void *from, size_t n, const void *scalar) \
    {                                                                                         \
        NAME##_complex_stored *const dst = to;                                                \
        const NAME##_complex_stored *const src = from;                                        \
        const T factor = ((const NAME##_complex_stored *)scalar)->value;                      \
                                                                                              \
        ELEMENTWISE                                                                           \
        for (size_t i = 0; i < n; i++)                                                        \
            dst[i].value = C##_multiply(src[i].value, factor);                                \
    }
COMPLEXES(DEFINE_COMPLEX)

#define TRUTH(x) ((x) != 0)
DEFINE_FORM(BOOL_truth, uint8_t, uint8_t, TRUTH, AS_IS)
BOOL_OPS(DEFINE_CELL, BOOL_truth, TRUTH, AS_IS)

/* ---- The table --------------------------------------------------------------- */

#define CELL_OF(OP, FORM, DIVIDE)                                       \
    [CT_##OP] = { FORM##_load, FORM##_##OP##_step, FORM##_##OP##_merge, \
                  DIVIDE,      FORM##_store,       FORM##_##OP##_two },
#define CELL(OP, expr, FORM) CELL_OF(OP, FORM, NULL)
#define AVERAGE(OP, expr, FORM) CELL_OF(OP, FORM, FORM##_divide)
/* reals and complexes have AVG among their ops: only that one divides */
#define DIVIDE_SUM(FORM) NULL
#define DIVIDE_PRODUCT(FORM) NULL
#define DIVIDE_MIN(FORM) NULL
#define DIVIDE_MAX(FORM) NULL
#define DIVIDE_AVG(FORM) FORM##_divide
#define CELL_OR_AVERAGE(OP, expr, FORM) CELL_OF(OP, FORM, DIVIDE_##OP(FORM))

#define INTEGER_ROW(NAME, T, U, W)                                                          \
    [CT_##NAME] = { WRAPPING_OPS(CELL, NAME##_wrapping) ORDERING_OPS(CELL, NAME##_ordering) \
                        AVERAGING_OPS(AVERAGE, NAME##_averaging) },
#define REAL_ROW(NAME, ...) [CT_##NAME] = { REAL_OPS(CELL_OR_AVERAGE, NAME##_real) },
#define COMPLEX_ROW(NAME, T, C, real) \
    [CT_##NAME] = { COMPLEX_OPS(CELL_OR_AVERAGE, C, NAME##_complex) },

#define COUNT_ONE(...) +1
enum { DTYPE_COUNT = 0 DTYPES(COUNT_ONE), OP_COUNT = 0 OPS(COUNT_ONE) };

static const struct cell cells[DTYPE_COUNT][OP_COUNT] = {
    INTEGERS(INTEGER_ROW) REALS(REAL_ROW)
        COMPLEXES(COMPLEX_ROW)[CT_BOOL] = { BOOL_OPS(CELL, BOOL_truth) },
};

#define SCALE(NAME, ...) [CT_##NAME] = NAME##_scale,
static void (*const scales[DTYPE_COUNT])(void *, const void *, size_t,
                                         const void *) = { REALS(SCALE) COMPLEXES(SCALE) };

int combine_defined(ct_dtype dtype, ct_op op)
{
    return (unsigned)dtype < DTYPE_COUNT && (unsigned)op < OP_COUNT && cells[dtype][op].step;
}

/* ---- Folds --------------------------------------------------------------------- */

/* Elements first ... first+n of all sources, n <= TILE, into `total`. */
static void fold_tile(const struct cell *cell, const struct fold *fold, const void *const *src,
                      size_t offset, size_t n, void *total, void *partial)
{
    int at = 0;

    for (int node = 0; node < fold->nodes; node++) {
        void *const acc = at == 0 ? total : partial;
        const int end = fold->node_end[node], first = at;

        for (; at < end; at++)
            (at == first ? cell->load : cell->step)(acc, (const char *)src[at] + offset, n);
        if (first > 0 && end > first)
            cell->merge(total, partial, n);
    }
}

/* Elements first ... first+n of the fold, n <= TILE, to `out`: the destination or a tile. */
static void fold_some(const struct cell *cell, const struct fold *fold, const void *const *src,
                      size_t offset, size_t n, void *out)
{
    _Alignas(64) char total[TILE * ACCUMULATOR], partial[TILE * ACCUMULATOR];

    if (fold->sources == 2 && !cell->divide) { /* whatever the nodes: a op b */
        cell->two(out, (const char *)src[0] + offset, (const char *)src[1] + offset, n);
        return;
    }
    fold_tile(cell, fold, src, offset, n, total, partial);
    if (cell->divide)
        cell->divide(total, n, fold->sources);
    cell->store(out, total, n);
}

/* One source: the fold is that source, whatever the op. */
static void copy_to(void *const *dst, int dsts, const void *src, size_t bytes, int streaming)
{
    for (int d = 0; d < dsts && bytes > 0; d++)
        if (dst[d] != src && streaming)
            copy_streaming(dst[d], src, bytes);
        else if (dst[d] != src)
            memcpy(dst[d], src, bytes);
}

void combine_fold_to(const struct fold *fold, void *const *dst, int dsts, const void *const *src,
                     size_t count, int streaming)
{
    const struct cell *const cell = &cells[fold->dtype][fold->op];
    const size_t size = ct_dtype_size(fold->dtype);
    _Alignas(64) char tile[TILE * ACCUMULATOR];

    if (fold->sources == 1 && fold->dtype != CT_BOOL) {
        copy_to(dst, dsts, src[0], count * size, streaming);
        return;
    }
    for (size_t i = 0; i < count; i += TILE) {
        const size_t n = count - i < TILE ? count - i : TILE, offset = i * size;
        char *const first = streaming ? tile : (char *)dst[0] + offset;

        fold_some(cell, fold, src, offset, n, first);
        for (int d = streaming ? 0 : 1; d < dsts; d++)
            if (streaming)
                copy_streaming((char *)dst[d] + offset, first, n * size);
            else
                memcpy((char *)dst[d] + offset, first, n * size);
    }
}

void combine_pair(ct_dtype dtype, ct_op op, void *dst, const void *src, size_t count)
{
    cells[dtype][op == CT_AVG ? CT_SUM : op].two(dst, dst, src, count);
}

void combine_divide(ct_dtype dtype, void *dst, size_t count, int n)
{
    const struct cell *const cell = &cells[dtype][CT_AVG];
    const size_t size = ct_dtype_size(dtype);
    _Alignas(64) char acc[TILE * ACCUMULATOR];

    for (size_t i = 0; i < count; i += TILE) {
        const size_t some = count - i < TILE ? count - i : TILE;
        char *const at = (char *)dst + i * size;

        cell->load(acc, at, some);
        cell->divide(acc, some, n);
        cell->store(at, acc, some);
    }
}

void combine_scale(ct_dtype dtype, void *dst, const void *src, size_t count, const void *scalar)
{
    scales[dtype](dst, src, count, scalar);
}
