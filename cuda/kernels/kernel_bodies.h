/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_bodies.h - the work of one thread of a kernel.
 *
 * A block works on one span.  The span's pieces and single elements are distributed to the threads
 * of all its blocks.  A thread loads its piece of every source, folds the pieces in registers, and
 * only then stores the result to the destinations.  So a destination may be one of the sources, and
 * p sources and d destinations cause p + d streams of memory traffic. */
#ifndef CUDA_KERNELS_KERNEL_BODIES_H
#define CUDA_KERNELS_KERNEL_BODIES_H

#include "cuda/kernels/dtype_ops.h"
#include "cuda/kernels/vector_access.h"

/* The position of a thread: its block, the number of blocks, its number in the block, and the
 * number of threads in each block. */
struct kernel_place {
    unsigned block, blocks, thread, threads;
};

/* ---- The span of a block ---------------------------------------------------------- */

CT_ELEMENT struct fold_span span_at(const struct fold_args &args, uint32_t i)
{
    struct fold_span span;

    memcpy(&span, &args.words[i * SPAN_WORDS], sizeof span);
    return span;
}

/* Returns the span of the block, and makes `place` relative to the blocks of that span. */
CT_ELEMENT struct fold_span find_span(const struct fold_args &args, struct kernel_place &place)
{
    uint32_t own = 0, behind = args.spans;

    while (behind - own > 1) {
        const uint32_t middle = (own + behind) / 2;

        if (span_at(args, middle).first_block <= place.block)
            own = middle;
        else
            behind = middle;
    }
    const struct fold_span span = span_at(args, own);

    if (behind < args.spans)
        place.blocks = span_at(args, behind).first_block;
    place.block -= span.first_block;
    place.blocks -= span.first_block;
    return span;
}

template <class F> CT_ELEMENT uint64_t pieces_of(const struct fold_span &span)
{
    return span.head < BY_ELEMENTS ? (span.count - span.head) / by_pieces<F>::LANES : 0;
}

/* Returns the offset in bytes of single element k.  Single elements lie before and after the
 * pieces. */
template <class F> CT_ELEMENT uint64_t single(const struct fold_span &span, uint64_t k)
{
    const uint64_t head = span.head < BY_ELEMENTS ? span.head : 0;
    const uint64_t i = k < head ? k : k + pieces_of<F>(span) * by_pieces<F>::LANES;

    return i * sizeof(typename F::stored);
}

/* ---- Any op, any number of sources ------------------------------------------------ */

enum { BATCH = 4 }; /* sources that a thread loads before it folds the first of them */

/* Multiplies these lanes of a source by the source's scalar and rounds to the dtype, like
 * combine_scale().  Does nothing if the source has no scalar.  Only premul_sum has scalars. */
template <class F, int LANES>
CT_ELEMENT void scale(const struct fold_args &args, uint32_t source,
                      typename F::folded (&values)[LANES])
{
    typename F::stored scalar;
    typename F::folded factor[LANES];

    if (!(args.scaled[source / 32] >> source % 32 & 1))
        return;
    memcpy(&scalar, &args.words[args.scalars + source * SCALAR_WORDS], sizeof scalar);
    UNROLL
    FOR_LANES(lane) factor[lane] = F::load(scalar);
    F::step(CT_PRODUCT, values, factor);
    UNROLL
    FOR_LANES(lane) values[lane] = F::load(F::store(values[lane]));
}

template <class F, class ACCESS>
CT_ELEMENT void fold_many_at(const struct fold_args &args, const struct fold_span &span,
                             uint64_t offset)
{
    enum { LANES = ACCESS::LANES };
    const uint64_t *const src = args.words + span.pointers, *const dst = src + args.sources;
    const uint32_t by_bytes = span.head == BY_BYTES;
    typename ACCESS::raw raw[BATCH];
    typename F::folded total[LANES] = {};

    for (uint32_t first = 0; first < args.sources; first += BATCH) {
        UNROLL
        for (int j = 0; j < BATCH; j++)
            if (first + j < args.sources)
                raw[j] = ACCESS::load(src[first + j] + offset, by_bytes);
        UNROLL
        for (int j = 0; j < BATCH; j++) {
            typename F::folded next[LANES];

            if (first + j >= args.sources)
                break;
            ACCESS::unpack(next, raw[j]);
            if (ACCESS::HAS_SCALARS && args.scalars > 0)
                scale<F>(args, first + j, next);
            if (first + j > 0) {
                F::step(args.op, total, next);
            } else {
                UNROLL
                FOR_LANES(lane) total[lane] = next[lane];
            }
        }
    }
    if (args.divisor > 0) {
        UNROLL
        FOR_LANES(lane) total[lane] = F::divide(total[lane], args.divisor);
    }
    const typename ACCESS::raw result = ACCESS::pack(total);

    ROLLED
    for (uint32_t d = 0; d < span.dsts; d++)
        ACCESS::store(dst[d] + offset, result, by_bytes);
}

/* ---- SUM of so many sources, a copy of one, an exchange of two --------------------- */

template <class F, int SOURCES, class ACCESS>
CT_ELEMENT typename ACCESS::raw sum_of(const typename ACCESS::raw (&raw)[SOURCES], uint32_t divisor)
{
    enum { LANES = ACCESS::LANES };
    typename F::folded total[LANES], next[LANES];

    if (SOURCES == 1)
        return raw[0];
    ACCESS::unpack(total, raw[0]);
    UNROLL
    for (int s = 1; s < SOURCES; s++) {
        ACCESS::unpack(next, raw[s]);
        F::step(CT_SUM, total, next);
    }
    if (divisor > 0) {
        UNROLL
        FOR_LANES(lane) total[lane] = F::divide(total[lane], divisor);
    }
    return ACCESS::pack(total);
}

/* Stores what a thread has loaded.  In an exchange, destination s gets source s.  Otherwise each
 * destination gets the sum. */
template <class F, int SOURCES, bool EXCHANGES, class ACCESS>
CT_ELEMENT void store_few(const struct fold_args &args, const struct fold_span &span,
                          uint64_t offset, const typename ACCESS::raw (&raw)[SOURCES],
                          uint32_t by_bytes)
{
    const uint64_t *const dst = args.words + span.pointers + SOURCES;

    if (EXCHANGES) {
        UNROLL
        for (int s = 0; s < SOURCES; s++)
            ACCESS::store(dst[s] + offset, raw[s], by_bytes);
        return;
    }
    const typename ACCESS::raw result = sum_of<F, SOURCES, ACCESS>(raw, args.divisor);

    ROLLED
    for (uint32_t d = 0; d < span.dsts; d++)
        ACCESS::store(dst[d] + offset, result, by_bytes);
}

/* Folds the pieces first, first + stride, ... that are below `end`, at most UNROLLED pieces.
 * Instead of a piece beyond `end` the thread loads the last piece, so that the loads do not wait
 * for comparisons.  The thread drops this value, which another thread may be overwriting. */
template <class F, int SOURCES, int UNROLLED, bool EXCHANGES>
CT_ELEMENT void fold_few_pieces(const struct fold_args &args, const struct fold_span &span,
                                uint64_t first, uint64_t stride, uint64_t end)
{
    typedef by_pieces<F> access;
    const uint64_t *const src = args.words + span.pointers;
    const uint64_t at = span.head * sizeof(typename F::stored);
    struct piece raw[UNROLLED][SOURCES];

    UNROLL
    for (int u = 0; u < UNROLLED; u++) {
        const uint64_t k = first + u * stride < end ? first + u * stride : end - 1;

        UNROLL
        for (int s = 0; s < SOURCES; s++)
            raw[u][s] = access::load(src[s] + at + k * PIECE, 0);
    }
    UNROLL
    for (int u = 0; u < UNROLLED; u++) {
        const uint64_t k = first + u * stride;

        if (k < end)
            store_few<F, SOURCES, EXCHANGES, access>(args, span, at + k * PIECE, raw[u], 0);
    }
}

template <class F, int SOURCES, bool EXCHANGES>
CT_ELEMENT void fold_few_element(const struct fold_args &args, const struct fold_span &span,
                                 uint64_t offset)
{
    typedef by_elements<F> access;
    const uint64_t *const src = args.words + span.pointers;
    const uint32_t by_bytes = span.head == BY_BYTES;
    typename access::raw raw[SOURCES];

    UNROLL
    for (int s = 0; s < SOURCES; s++)
        raw[s] = access::load(src[s] + offset, by_bytes);
    store_few<F, SOURCES, EXCHANGES, access>(args, span, offset, raw, by_bytes);
}

/* ---- One thread ------------------------------------------------------------------- */

/* Returns true if the flag at args.called_off, in host memory, is set.  On a GPU each
 * multiprocessor loads the flag once into its cache, which is empty when the launch begins. */
CT_ELEMENT bool is_called_off(const struct fold_args &args)
{
    const uint32_t *const word = (const uint32_t *)(uintptr_t)args.called_off;

#ifdef __CUDA_ARCH__
    return word && *word;
#else
    return word && __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

template <class F>
CT_ELEMENT void fold_many_body(const struct fold_args &args, struct kernel_place place)
{
    const struct fold_span span = find_span(args, place);
    const uint64_t self = (uint64_t)place.block * place.threads + place.thread;
    const uint64_t all = (uint64_t)place.blocks * place.threads;
    const uint64_t pieces = pieces_of<F>(span);
    const uint64_t singles = span.count - pieces * by_pieces<F>::LANES;
    const uint64_t at = span.head * sizeof(typename F::stored);

    if (is_called_off(args))
        return;
    for (uint64_t k = self; k < pieces; k += all)
        fold_many_at<F, by_pieces<F>>(args, span, at + k * PIECE);
    for (uint64_t k = self; k < singles; k += all)
        fold_many_at<F, by_elements<F>>(args, span, single<F>(span, k));
}

template <class F, int SOURCES, int UNROLLED, bool EXCHANGES>
CT_ELEMENT void fold_few_body(const struct fold_args &args, struct kernel_place place)
{
    const struct fold_span span = find_span(args, place);
    const uint64_t self = (uint64_t)place.block * place.threads + place.thread;
    const uint64_t all = (uint64_t)place.blocks * place.threads;
    const uint64_t pieces = pieces_of<F>(span);
    const uint64_t singles = span.count - pieces * by_pieces<F>::LANES;
    const uint64_t first = (uint64_t)place.block * place.threads * UNROLLED + place.thread;

    if (is_called_off(args))
        return;
    for (uint64_t k = first; k < pieces; k += all * UNROLLED)
        fold_few_pieces<F, SOURCES, UNROLLED, EXCHANGES>(args, span, k, place.threads, pieces);
    for (uint64_t k = self; k < singles; k += all)
        fold_few_element<F, SOURCES, EXCHANGES>(args, span, single<F>(span, k));
}

#endif
