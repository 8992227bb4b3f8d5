/* SPDX-License-Identifier: Apache-2.0 */
/* combine_host.c - does element-wise reductions in host memory.
 *
 * If one kernel can do the whole reduction (one node of 2, 3, 4 or 8 sources into one destination),
 * the kernel is called once.  Otherwise the reduction is done tile by tile.  For each node, a chain
 * collects sources.  When the chain has as many operands as a kernel takes, the kernel reduces
 * them, and the result becomes the chain's first operand.  Results of nodes are reduced in pairs as
 * soon as the two results of a pair are there.  Then AVG divides.  At the end, the tile is copied
 * to each destination while it is in the first-level cache.  So the memory traffic is one stream
 * for each source and one for each destination.  A destination may be the same memory as a source,
 * since a tile is written only after all sources of the tile were read.
 *
 * Tiles of narrow floats that no single kernel reduces, and of integers for AVG, are first
 * converted to the wider accumulator dtype and then reduced in that dtype. */
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdint.h>
#include <string.h>

#include "runtime/reduction/combine.h"
#include "runtime/reduction/combine_kernels.h"
#include "runtime/types/dtype.h"

enum {
    LINE = 64,
    TILE = 4096,      /* bytes of a result; fits the first-level cache with its sources */
    STREAMED = 1024,  /* TILE for streaming; less, so that reads do not wait for writes */
    WIDE_TILE = 2048, /* bytes of a widened source; MOST_AT_ONCE fit the cache with a total */
    TREE_DEPTH = 21   /* depth of the tree of FOLD_MOST_NODES nodes */
};

/* ---- Kernels and dtypes ---------------------------------------------------------- */

#if defined(__x86_64__) && !defined(__clang__)
/* gcc has "f16c" as a name for __builtin_cpu_supports() since 11. */
static int has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

const struct kernels *kernels_at(int level)
{
#if defined(__x86_64__)
    if (level == 2)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
                       && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
                   ? kernels_avx512
                   : NULL;
    if (level == 1)
#ifdef __clang__ /* clang 14 does not know "f16c", so its kernels are compiled without f16c */
        return __builtin_cpu_supports("avx2") ? kernels_avx2 : NULL;
#else
        return __builtin_cpu_supports("avx2") && has_f16c() ? kernels_avx2 : NULL;
#endif
#endif
    return level == 0 ? kernels_plain : NULL;
}

/* Returns the dtype's kernels of the highest level that has any.  A level has kernels for all ops
 * of a dtype or for none. */
static const struct kernels *kernels_of(ct_dtype dtype)
{
    for (int level = KERNEL_LEVELS - 1; level > 0; level--) {
        const struct kernels *const kernels = kernels_at(level);

        if (kernels && kernels[dtype].fold[CT_SUM])
            return &kernels[dtype];
    }
    return &kernels_plain[dtype];
}

int combine_defined(ct_dtype dtype, ct_op op)
{
    if (ct_dtype_size(dtype) == 0 || !op_is_builtin(op))
        return 0;
    if (op == CT_AVG)
        return !!kernels_plain[dtype_accumulator(dtype)].divide;
    return !!kernels_plain[dtype].fold[op];
}

/* ---- One tile in the written order --------------------------------------------------- */

/* The functions that do a fold.  `widen` and `narrow` are NULL if the kernel works on the dtype
 * itself.  `divide` is NULL except for AVG. */
struct combine_way {
    const struct fold *fold;
    fold_kernel *kernel;
    convert_kernel *widen, *narrow;
    void (*divide)(void *values, size_t n, int by);
    size_t element; /* bytes of a source's element */
    int at_once;    /* true if one call of the kernel reduces a tile */
};

struct tiles {
    _Alignas(LINE) char total[TILE];
    _Alignas(LINE) char widened[MOST_AT_ONCE][WIDE_TILE]; /* the widened operands of a chain */
    /* results of subtrees that wait for their right neighbor; the lowest index has the largest */
    _Alignas(LINE) char subtree[TREE_DEPTH][TILE];
};

/* Operands that wait to be reduced from left to right.  The first operand may be `tile`, the result
 * of earlier operands. */
struct chain {
    const struct combine_way *way;
    size_t n;
    char *tile;
    int operands;
    const void *operand[MOST_AT_ONCE];
};

/* Reduces all operands of the chain into `out`.  Five to seven operands need two kernel calls. */
static void chain_fold(struct chain *chain, void *out)
{
    const void **first = chain->operand;
    int operands = chain->operands;

    if (operands > 4 && operands < MOST_AT_ONCE) {
        chain->way->kernel(chain->tile, first, 4, chain->n);
        first += 3, operands -= 3;
        *first = chain->tile;
    }
    chain->way->kernel(out, first, operands, chain->n);
    chain->operand[0] = out;
    chain->operands = 1;
}

static void chain_settle(struct chain *chain)
{
    if (chain->operand[0] != chain->tile || chain->operands > 1)
        chain_fold(chain, chain->tile);
}

static void chain_add(struct chain *chain, const void *operand)
{
    if (chain->operands == MOST_AT_ONCE)
        chain_fold(chain, chain->tile);
    chain->operand[chain->operands++] = operand;
}

static void chain_add_source(struct chain *chain, struct tiles *tiles, const void *src)
{
    if (chain->way->widen && chain->operands == MOST_AT_ONCE)
        chain_fold(chain, chain->tile);
    if (chain->way->widen) {
        void *const wide = tiles->widened[chain->operands];

        chain->way->widen(wide, src, chain->n);
        src = wide;
    }
    chain_add(chain, src);
}

/* An iterator over the nodes of a fold: the index of the next node, and of its first source. */
struct fold_nodes {
    const struct fold *fold;
    int node, at;
};

/* Reduces n elements, from `first` on, of the next node's sources.  Returns the address of the
 * result: `tile`, or the source itself if the node has only one source, which is not widened. */
static const void *fold_node(const struct combine_way *way, struct tiles *tiles,
                             struct fold_nodes *nodes, const void *const *src, size_t first,
                             size_t n, char *tile)
{
    const int *const node_end = nodes->fold->node_end;
    const int end = node_end ? node_end[nodes->node] : nodes->node + 1;
    struct chain chain = { way, n, tile, 0, { NULL } };

    for (; nodes->at < end; nodes->at++)
        chain_add_source(&chain, tiles, (const char *)src[nodes->at] + first * way->element);
    nodes->node++;
    if (chain.operands > 1 || way->widen)
        chain_settle(&chain);
    return chain.operand[0];
}

static const void *fold_two(const struct combine_way *way, size_t n, const void *left,
                            const void *right, char *tile)
{
    const void *both[] = { left, right };

    way->kernel(tile, both, 2, n);
    return tile;
}

/* Reduces n elements, from `first` on, of all nodes into `out`, without dividing or narrowing.  A
 * leaf of the tree is a node or one of the first pairs of nodes.  As in a binary counter, a subtree
 * is reduced with its left neighbor as soon as the two have the same number of leaves. */
static void fold_tree(const struct combine_way *way, struct tiles *tiles, const void *const *src,
                      size_t first, size_t n, void *out)
{
    struct fold_nodes nodes = { way->fold, 0, 0 };
    const int pairs = fold_pairs(way->fold->nodes), leaves = way->fold->nodes - pairs;
    const void *subtree[TREE_DEPTH];
    int depth = 0;

    for (int leaf = 0; leaf < leaves; leaf++, depth++) {
        char *tile = tiles->subtree[depth];
        const void *here = fold_node(way, tiles, &nodes, src, first, n, tile);

        if (leaf < pairs) {
            const void *right =
                fold_node(way, tiles, &nodes, src, first, n, tiles->subtree[depth + 1]);

            here = fold_two(way, n, here, right, tile);
        }
        subtree[depth] = here;
        for (int below = leaf; below & 1; below /= 2, depth--) {
            char *const to = depth == 1 && leaf == leaves - 1 ? out : tiles->subtree[depth - 1];

            subtree[depth - 1] = fold_two(way, n, subtree[depth - 1], subtree[depth], to);
        }
    }
}

/* Does what fold_tree() does, for a fold with one node. */
static void fold_chain(const struct combine_way *way, struct tiles *tiles, const void *const *src,
                       size_t first, size_t n, void *out)
{
    struct chain chain = { way, n, tiles->total, 0, { NULL } };

    for (int at = 0; at < way->fold->sources; at++)
        chain_add_source(&chain, tiles, (const char *)src[at] + first * way->element);
    chain_fold(&chain, out);
}

static void fold_tile(const struct combine_way *way, struct tiles *tiles, const void *const *src,
                      size_t first, size_t n, void *out)
{
    void *const sum = way->narrow ? tiles->total : out;
    const void *from[MOST_AT_ONCE];

    for (int s = 0; way->at_once && s < way->fold->sources; s++)
        from[s] = (const char *)src[s] + first * way->element;
    if (way->at_once)
        way->kernel(out, from, way->fold->sources, n);
    else if (way->fold->nodes == 1)
        fold_chain(way, tiles, src, first, n, sum);
    else
        fold_tree(way, tiles, src, first, n, sum);
    if (way->divide)
        way->divide(sum, n, way->fold->sources);
    if (way->narrow)
        way->narrow(out, sum, n);
}

/* ---- Folds ----------------------------------------------------------------------------- */

/* True if one kernel can do the whole fold, since the fold's order is from left to right and a
 * kernel takes this number of sources. */
static int at_once(const struct fold *fold)
{
    if (fold->sources > 4 && fold->sources != MOST_AT_ONCE)
        return 0;
    return fold->nodes == 1 || fold->sources <= 2
           || (fold->nodes == 2 && fold->node_end && fold->node_end[0] == fold->sources - 1)
           || (fold->nodes == 3 && fold->sources == 3);
}

static struct combine_way way_of(const struct fold *fold)
{
    const ct_dtype dtype = fold->dtype, wide = dtype_accumulator(dtype);
    const struct kernels *const own = kernels_of(dtype), *const sum = kernels_of(wide);
    const int average = fold->op == CT_AVG, op = average ? CT_SUM : fold->op;
    struct combine_way way = { .fold = fold,
                               .kernel = own->fold[op],
                               .element = ct_dtype_size(dtype),
                               .at_once = at_once(fold) };

    if (wide != dtype && (average || (dtype_is_narrow(dtype) && !way.at_once))) {
        way.at_once = 0;
        way.kernel = sum->fold[op];
        way.widen = own->widen;
        way.narrow = own->narrow;
    }
    if (average)
        way.divide = sum->divide;
    return way;
}

/* Returns the number of elements before the first element of dst that starts a cache line.  Stores
 * that cross cache lines cost twice as much.  Returns 0 for a short fold, and if no element starts
 * a cache line. */
static size_t elements_to_line(const void *dst, size_t element, size_t count)
{
    const size_t bytes = -(uintptr_t)dst % LINE;

    return bytes % element == 0 && count * element >= 16 * LINE ? bytes / element : 0;
}

static void hand_out(void *const *dst, int dsts, size_t offset, const void *from, size_t bytes,
                     int streaming)
{
    for (int d = 0; d < dsts; d++) {
        char *const to = (char *)dst[d] + offset;

        if (to != from && streaming)
            copy_streaming_part(to, from, bytes);
        else if (to != from)
            memcpy(to, from, bytes);
    }
}

/* Copies a source to the destinations.  This is the fold of one source with any op. */
static void copy_to(void *const *dst, int dsts, const void *src, size_t bytes, int streaming)
{
    const size_t most = dsts == 1 ? bytes : TILE; /* only the first copy reads memory */

    for (size_t i = 0; i < bytes; i += most)
        hand_out(dst, dsts, i, (const char *)src + i, bytes - i < most ? bytes - i : most,
                 streaming);
}

/* Prefetches the sources of the next tile, which arrive while this tile is written to memory. */
static void fetch(const struct fold *fold, const void *const *src, size_t offset, size_t bytes)
{
    for (int s = 0; s < fold->sources; s++)
        for (size_t i = 0; i < bytes; i += LINE)
            __builtin_prefetch((const char *)src[s] + offset + i);
}

static void fold_by_tiles(const struct fold *fold, void *const *dst, int dsts,
                          const void *const *src, size_t count, int streaming)
{
    const struct combine_way way = way_of(fold);
    const size_t wide = ct_dtype_size(dtype_accumulator(fold->dtype));
    const size_t tile = (streaming ? STREAMED : TILE) / way.element;
    const size_t most = way.widen && WIDE_TILE / wide < tile ? WIDE_TILE / wide : tile;
    const size_t head = elements_to_line(dst[0], way.element, count);
    _Alignas(LINE) char result[STREAMED];
    struct tiles tiles;

    for (size_t i = 0, n, next; i < count; i += n) {
        const size_t left = count - i, offset = i * way.element;
        char *const out = streaming ? result : (char *)dst[0] + offset;

        n = i == 0 && head > 0 ? head : left < most ? left : most;
        next = left - n < most ? left - n : most;
        fold_tile(&way, &tiles, src, i, n, out);
        if (streaming)
            fetch(fold, src, offset + n * way.element, next * way.element);
        hand_out(dst, dsts, offset, out, n * way.element, streaming);
    }
}

static void fold_at_once(const struct fold *fold, char *dst, const void *const *src, size_t count)
{
    fold_kernel *const kernel = kernels_of(fold->dtype)->fold[fold->op];
    const size_t element = ct_dtype_size(fold->dtype);
    const size_t head = elements_to_line(dst, element, count);
    const void *rest[MOST_AT_ONCE];

    if (head == 0) {
        kernel(dst, src, fold->sources, count);
        return;
    }
    for (int s = 0; s < fold->sources; s++)
        rest[s] = (const char *)src[s] + head * element;
    kernel(dst, src, fold->sources, head);
    kernel(dst + head * element, rest, fold->sources, count - head);
}

void combine_fold_to(const struct fold *fold, void *const *dst, int dsts, const void *const *src,
                     size_t count, int streaming)
{
    if (fold->sources == 1 && fold->dtype != CT_BOOL)
        copy_to(dst, dsts, src[0], count * ct_dtype_size(fold->dtype), streaming);
    else if (dsts == 1 && !streaming && fold->op != CT_AVG && at_once(fold))
        fold_at_once(fold, dst[0], src, count);
    else
        fold_by_tiles(fold, dst, dsts, src, count, streaming);
    if (streaming)
        copy_streaming_end();
}

void combine_fold_wide(const struct fold *fold, void *dst, const void *const *src, size_t count)
{
    const ct_dtype wide = dtype_accumulator(fold->dtype);
    const size_t most = WIDE_TILE / ct_dtype_size(wide);
    const struct combine_way way = {
        .fold = fold,
        .kernel = kernels_of(wide)->fold[fold->op == CT_AVG ? CT_SUM : fold->op],
        .widen = kernels_of(fold->dtype)->widen,
        .element = ct_dtype_size(fold->dtype)
    };
    struct tiles tiles;

    for (size_t i = 0; i < count; i += most)
        fold_tile(&way, &tiles, src, i, count - i < most ? count - i : most,
                  (char *)dst + i * ct_dtype_size(wide));
}

void combine_narrow(ct_dtype dtype, void *dst, const void *src, size_t count)
{
    kernels_of(dtype)->narrow(dst, src, count);
}

/* ---- Steps -------------------------------------------------------------------------------- */

void combine_pair(ct_dtype dtype, ct_op op, void *dst, const void *src, size_t count)
{
    const void *const both[] = { dst, src };

    kernels_of(dtype)->fold[op == CT_AVG ? CT_SUM : op](dst, both, 2, count);
}

void combine_divide(ct_dtype dtype, void *dst, size_t count, int n)
{
    const ct_dtype wide = dtype_accumulator(dtype);
    const struct kernels *const own = kernels_of(dtype), *const sum = kernels_of(wide);
    const size_t element = ct_dtype_size(dtype), most = WIDE_TILE / ct_dtype_size(wide);
    _Alignas(LINE) char tile[WIDE_TILE];

    for (size_t i = 0; i < count; i += most) {
        const size_t some = count - i < most ? count - i : most;
        char *const at = (char *)dst + i * element;

        if (!own->widen) {
            sum->divide(at, some, n);
            continue;
        }
        own->widen(tile, at, some);
        sum->divide(tile, some, n);
        own->narrow(at, tile, some);
    }
}

void combine_scale(ct_dtype dtype, void *dst, const void *src, size_t count, const void *scalar)
{
    const ct_dtype wide = dtype_accumulator(dtype);
    const struct kernels *const own = kernels_of(dtype), *const product = kernels_of(wide);
    const size_t element = ct_dtype_size(dtype), most = WIDE_TILE / ct_dtype_size(wide);
    _Alignas(LINE) char tile[WIDE_TILE];
    float factor;

    if (wide == dtype) {
        product->scale(dst, src, count, scalar);
        return;
    }
    own->widen(&factor, scalar, 1);
    for (size_t i = 0; i < count; i += most) {
        const size_t some = count - i < most ? count - i : most;

        own->widen(tile, (const char *)src + i * element, some);
        product->scale(tile, tile, some, &factor);
        own->narrow((char *)dst + i * element, tile, some);
    }
}
