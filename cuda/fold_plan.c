/* SPDX-License-Identifier: Apache-2.0 */
/* fold_plan.c - which kernels do a fold, and with what arguments.
 *
 * A fold of one source is a copy, of bytes where all pointers reach a multiple of
 * 16 together.  The common sums have kernels of their own; everything else has its
 * dtype's.  One launch does it, unless there are more destinations than fit its
 * arguments: the others then are copies of the first one. */
#include "cuda/fold_plan.h"

#include <stdint.h>

#include "runtime/error.h"

enum {
    PIECE_BYTES = 16,
    BLOCKS_EACH = 4,    /* of a multiprocessor, at most: all its threads, if registers allow */
    SMALL_THREADS = 128 /* of a block, when there is too little for every multiprocessor */
};

#define NAME_FEW(name, ...) [KERNEL_##name] = #name,
#define NAME_FOLD(NAME, name, T) [KERNEL_FOLD_##NAME] = "fold_" #name,
static const char *const names[KERNEL_COUNT] = { FEW_KERNELS(NAME_FEW) DTYPES(NAME_FOLD) };

#define FEW(name, NAME, sources, unrolled) { KERNEL_##name, CT_##NAME, sources, unrolled },
static const struct few {
    enum kernel kernel;
    ct_dtype dtype;
    int sources;
    unsigned unrolled;
} few_kernels[] = { FEW_KERNELS(FEW) };

/* alignment: of what is one number in memory. */
#define DTYPE(NAME, name, T) [CT_##NAME] = { KERNEL_FOLD_##NAME, _Alignof(T) },
static const struct {
    enum kernel fold;
    size_t alignment;
} dtypes[] = { DTYPES(DTYPE) };

#define IS_FLOAT(NAME, ...) [CT_##NAME] = 1,
static const char is_float[sizeof dtypes / sizeof *dtypes] = { REALS(IS_FLOAT) NARROWS(IS_FLOAT)
                                                                   COMPLEXES(IS_FLOAT) };

/* One fold as a launch sees it: `dtype` and `count` are of a copy's own choosing. */
struct task {
    const struct fold *fold;
    ct_dtype dtype;
    size_t count;
    void *const *dst;
    const void *const *src;
    int sources, dsts;
};

const char *kernel_name(enum kernel kernel)
{
    return names[kernel];
}

/* ---- The span --------------------------------------------------------------------- */

/* The bits in which any of the pointers differs from the first, or has set itself. */
static void look_at_pointers(const struct task *task, uintptr_t *differ, uintptr_t *set)
{
    const uintptr_t first = (uintptr_t)task->src[0];

    *differ = 0, *set = first;
    for (int s = 1; s < task->sources; s++) {
        *differ |= (uintptr_t)task->src[s] ^ first;
        *set |= (uintptr_t)task->src[s];
    }
    for (int d = 0; d < task->dsts; d++) {
        *differ |= (uintptr_t)task->dst[d] ^ first;
        *set |= (uintptr_t)task->dst[d];
    }
}

static struct span span_of(const struct task *task, int in_pieces)
{
    const size_t element = ct_dtype_size(task->dtype), bytes = task->count * element;
    const size_t to_piece = -(uintptr_t)task->src[0] % PIECE_BYTES;
    const ct_op op = task->fold->op == CT_AVG ? CT_SUM : task->fold->op;
    const int is_average = task->fold->op == CT_AVG && task->sources > 1;
    struct span span = { .count = task->count,
                         .sources = (uint32_t)task->sources,
                         .dsts = (uint32_t)task->dsts,
                         .op = (uint32_t)op,
                         .divisor = is_average ? (uint32_t)task->sources : 0 };
    uintptr_t differ, set;

    look_at_pointers(task, &differ, &set);
    span.by_bytes = set % dtypes[task->dtype].alignment != 0;
    if (in_pieces && differ % PIECE_BYTES == 0 && to_piece % element == 0 && bytes > to_piece) {
        span.head = (uint32_t)(to_piece / element);
        span.pieces = (bytes - to_piece) / PIECE_BYTES;
    }
    if (span.pieces == 0)
        span.head = 0;
    return span;
}

/* ---- The nodes -------------------------------------------------------------------- */

/* Sets the bits; 0 if the fold is the same from left to right: then none is set. */
static int mark_nodes(const struct task *task, uint32_t *starts)
{
    const struct fold *const fold = task->fold;
    int partial = 0; /* a node of several sources behind another one */

    if (task->sources == 1 || !is_float[task->dtype])
        return 0;
    for (int node = 1; node < fold->nodes; node++) {
        const int start = fold->node_end[node - 1], end = fold->node_end[node];

        partial |= start > 0 && end - start > 1;
    }
    for (int node = 1; node < fold->nodes && partial; node++) {
        const int start = fold->node_end[node - 1];

        if (start > 0 && start < task->sources)
            starts[start / 32] |= UINT32_C(1) << start % 32;
    }
    return partial;
}

/* ---- The launch ------------------------------------------------------------------- */

static const struct few *few_of(const struct task *task)
{
    const int is_sum = task->sources == 1 || task->fold->op == CT_SUM || task->fold->op == CT_AVG;

    for (size_t k = 0; is_sum && k < sizeof few_kernels / sizeof *few_kernels; k++)
        if (few_kernels[k].dtype == task->dtype && few_kernels[k].sources == task->sources
            && task->dsts <= FOLD_FEW)
            return &few_kernels[k];
    return NULL;
}

static uint64_t divided_up(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

static void set_grid(struct launch *launch, const struct span *span, size_t element,
                     unsigned unrolled, int processors)
{
    const uint64_t most = (uint64_t)processors * BLOCKS_EACH;
    const uint64_t pieces = divided_up(span->pieces, unrolled);
    const uint64_t singles = span->count - span->pieces * (PIECE_BYTES / element);
    const uint64_t threads = pieces > singles ? pieces : singles;
    const int small = threads < (uint64_t)processors * BLOCK_THREADS;
    uint64_t blocks;

    launch->threads = small ? SMALL_THREADS : BLOCK_THREADS;
    blocks = divided_up(threads, launch->threads);
    launch->blocks = (unsigned)(blocks < most ? blocks : most);
}

static void copy_pointers(const struct task *task, uint64_t *src, uint64_t *dst)
{
    for (int s = 0; s < task->sources; s++)
        src[s] = (uintptr_t)task->src[s];
    for (int d = 0; d < task->dsts; d++)
        dst[d] = (uintptr_t)task->dst[d];
}

static struct launch launch_of(const struct task *task, int processors)
{
    struct launch launch = { .kernel = dtypes[task->dtype].fold };
    struct fold_many *const many = &launch.args.many;
    const int has_nodes = mark_nodes(task, many->node_starts);
    const struct few *const few = has_nodes ? NULL : few_of(task);
    const struct span span = span_of(task, !has_nodes);

    if (few) {
        launch.kernel = few->kernel;
        launch.args.few.span = span;
        copy_pointers(task, launch.args.few.src, launch.args.few.dst);
    } else {
        many->span = span;
        copy_pointers(task, many->src, many->dst);
    }
    set_grid(&launch, &span, ct_dtype_size(task->dtype), few ? few->unrolled : 1, processors);
    return launch;
}

/* As what a fold of one source is copied: its dtype does not matter. */
static void copy_as(struct task *task)
{
    const size_t element = ct_dtype_size(task->dtype);
    uintptr_t differ, set;

    look_at_pointers(task, &differ, &set);
    if (differ % PIECE_BYTES == 0 && task->dsts <= FOLD_FEW) {
        task->dtype = CT_U8;
        task->count *= element;
    } else if (element <= 4) {
        task->dtype = element == 1 ? CT_U8 : element == 2 ? CT_U16 : CT_U32;
    } else {
        task->dtype = CT_U64;
        task->count *= element / 8;
    }
}

ct_status fold_plan(const struct fold *fold, void *const *dst, int dsts, const void *const *src,
                    size_t count, int processors,
                    ct_status (*enqueue)(const struct launch *launch, void *arg), void *arg)
{
    const void *const first = dst[0];
    ct_status status = CT_OK;

    if (fold->sources > FOLD_MANY)
        return ct_fail(CT_ERR_UNSUPPORTED,
                       "%d buffers can't be reduced on one GPU: %d are the most", fold->sources,
                       FOLD_MANY);
    for (int done = 0; done < dsts && count > 0 && status == CT_OK;) {
        struct task task = { .fold = fold,
                             .dtype = fold->dtype,
                             .count = count,
                             .dst = dst + done,
                             .src = done == 0 ? src : &first,
                             .sources = done == 0 ? fold->sources : 1,
                             .dsts = dsts - done < FOLD_MANY ? dsts - done : FOLD_MANY };
        struct launch launch;

        if (task.sources == 1 && (task.dtype != CT_BOOL || done > 0))
            copy_as(&task);
        launch = launch_of(&task, processors);
        status = enqueue(&launch, arg);
        done += task.dsts;
    }
    return status;
}
