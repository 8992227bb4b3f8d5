/* SPDX-License-Identifier: Apache-2.0 */
/* bodies.h - what one thread of a kernel does.
 *
 * The pieces and single elements of a span are dealt out to all threads.  A thread
 * loads its piece of every source, folds them in registers and only then stores to
 * the destinations: so a destination may be one of the sources, and p sources and
 * d destinations cost p + d streams of memory traffic. */
#ifndef CUDA_KERNELS_BODIES_H
#define CUDA_KERNELS_BODIES_H

#include "cuda/kernels/forms.h"
#include "cuda/kernels/memory.h"

/* Which thread this is. */
struct place {
    unsigned block, blocks, thread, threads;
};

enum { BATCH = 4 }; /* sources that are loaded before the first of them is folded */

/* ---- Any op, any number of sources ------------------------------------------------ */

CT_ELEMENT int starts_node(const struct fold_many &args, uint32_t source)
{
    return args.node_starts[source / 32] >> source % 32 & 1;
}

template <class F, class ACCESS>
CT_ELEMENT void fold_many_at(const struct fold_many &args, uint64_t offset)
{
    enum { LANES = ACCESS::LANES };
    const struct span &span = args.span;
    typename ACCESS::raw raw[BATCH];
    typename F::folded total[LANES] = {}, before[LANES] = {}; /* of the nodes before this one */
    uint32_t nodes = 0;

    for (uint32_t first = 0; first < span.sources; first += BATCH) {
        UNROLL
        for (int j = 0; j < BATCH; j++)
            if (first + j < span.sources)
                raw[j] = ACCESS::load(args.src[first + j] + offset, span.by_bytes);
        UNROLL
        for (int j = 0; j < BATCH; j++) {
            typename F::folded next[LANES];

            if (first + j >= span.sources)
                break;
            ACCESS::unpack(next, raw[j]);
            if (ACCESS::HAS_NODES && starts_node(args, first + j)) {
                if (nodes++ > 0)
                    F::step(span.op, before, total);
                else
                    before[0] = total[0];
                total[0] = next[0];
            } else if (first + j > 0) {
                F::step(span.op, total, next);
            } else {
                UNROLL
                FOR_LANES(lane) total[lane] = next[lane];
            }
        }
    }
    if (nodes > 0) {
        F::step(span.op, before, total);
        total[0] = before[0];
    }
    if (span.divisor > 0) {
        UNROLL
        FOR_LANES(lane) total[lane] = F::divide(total[lane], span.divisor);
    }
    const typename ACCESS::raw result = ACCESS::pack(total);

    ROLLED
    for (uint32_t d = 0; d < span.dsts; d++)
        ACCESS::store(args.dst[d] + offset, result, span.by_bytes);
}

/* ---- SUM of so many sources, or a copy of one ------------------------------------- */

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

/* The pieces first, first + stride, ... that are below `end`, UNROLLED of them at most.  One beyond
 * it is read as the last one, lest the loads wait for comparisons; what was read, perhaps while its
 * own thread stores there, is dropped. */
template <class F, int SOURCES, int UNROLLED>
CT_ELEMENT void fold_few_pieces(const struct fold_few &args, uint64_t at, uint64_t first,
                                uint64_t stride, uint64_t end)
{
    typedef by_pieces<F> access;
    struct piece raw[UNROLLED][SOURCES];

    UNROLL
    for (int u = 0; u < UNROLLED; u++) {
        const uint64_t k = first + u * stride < end ? first + u * stride : end - 1;

        UNROLL
        for (int s = 0; s < SOURCES; s++)
            raw[u][s] = access::load(args.src[s] + at + k * PIECE, 0);
    }
    UNROLL
    for (int u = 0; u < UNROLLED; u++) {
        const uint64_t k = first + u * stride;

        if (k < end) {
            const struct piece result = sum_of<F, SOURCES, access>(raw[u], args.span.divisor);

            ROLLED
            for (uint32_t d = 0; d < args.span.dsts; d++)
                access::store(args.dst[d] + at + k * PIECE, result, 0);
        }
    }
}

template <class F, int SOURCES>
CT_ELEMENT void fold_few_element(const struct fold_few &args, uint64_t offset)
{
    typedef by_elements<F> access;
    typename access::raw raw[SOURCES];

    UNROLL
    for (int s = 0; s < SOURCES; s++)
        raw[s] = access::load(args.src[s] + offset, args.span.by_bytes);

    const typename access::raw result = sum_of<F, SOURCES, access>(raw, args.span.divisor);

    ROLLED
    for (uint32_t d = 0; d < args.span.dsts; d++)
        access::store(args.dst[d] + offset, result, args.span.by_bytes);
}

/* ---- All that one thread does ----------------------------------------------------- */

/* Single element number k: they lie before and behind the pieces. */
template <class F> CT_ELEMENT uint64_t single(const struct span &span, uint64_t k)
{
    const uint64_t i = k < span.head ? k : k + span.pieces * by_pieces<F>::LANES;

    return i * sizeof(typename F::stored);
}

template <class F> CT_ELEMENT void fold_many_body(const struct fold_many &args, struct place place)
{
    const struct span &span = args.span;
    const uint64_t self = (uint64_t)place.block * place.threads + place.thread;
    const uint64_t all = (uint64_t)place.blocks * place.threads;
    const uint64_t at = span.head * sizeof(typename F::stored);
    const uint64_t singles = span.count - span.pieces * by_pieces<F>::LANES;

    for (uint64_t k = self; k < span.pieces; k += all)
        fold_many_at<F, by_pieces<F>>(args, at + k * PIECE);
    for (uint64_t k = self; k < singles; k += all)
        fold_many_at<F, by_elements<F>>(args, single<F>(span, k));
}

template <class F, int SOURCES, int UNROLLED>
CT_ELEMENT void fold_few_body(const struct fold_few &args, struct place place)
{
    const struct span &span = args.span;
    const uint64_t self = (uint64_t)place.block * place.threads + place.thread;
    const uint64_t all = (uint64_t)place.blocks * place.threads;
    const uint64_t at = span.head * sizeof(typename F::stored);
    const uint64_t singles = span.count - span.pieces * by_pieces<F>::LANES;
    const uint64_t first = (uint64_t)place.block * place.threads * UNROLLED + place.thread;

    for (uint64_t k = first; k < span.pieces; k += all * UNROLLED)
        fold_few_pieces<F, SOURCES, UNROLLED>(args, at, k, place.threads, span.pieces);
    for (uint64_t k = self; k < singles; k += all)
        fold_few_element<F, SOURCES>(args, single<F>(span, k));
}

#endif
