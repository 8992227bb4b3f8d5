/* SPDX-License-Identifier: Apache-2.0 */
/* launch_plan.c - plans the kernel launches that do folds, and their arguments.
 *
 * Each part of a call is a task.  A fold of one source is a copy.  It is copied as bytes if all
 * pointers reach a multiple of 16 at the same element.  Otherwise it is copied as the largest
 * integers for which all pointers are aligned.  The common sums have their own kernels.  All other
 * folds use the kernel of their dtype.
 *
 * A task becomes a span of a launch.  A launch contains all spans of one kernel that fit in its
 * arguments.  The blocks of the launch are distributed to its spans in proportion to their work.
 * If a part has more destinations than fit in a launch, later launches copy the first destination
 * to the remaining ones. */
#include "cuda/launch_plan.h"

#include <stdint.h>
#include <string.h>

#include "runtime/types/dtype.h"
#include "runtime/util/error.h"

enum {
    /* threads of a block if the launch has too little work for every multiprocessor */
    SMALL_THREADS = 128
};

enum { PIECE_BYTES = 16 };

/* One part of a fold in one launch.  If the task is a copy, `dtype` and `count` may differ from
 * those of the fold and the part. */
struct fold_task {
    const struct fold *fold;
    ct_dtype dtype;
    size_t count;
    void *const *dst;
    const void *const *src;
    int sources, dsts;
    int exchanges;
    int scaled; /* 1 if a source has a scalar */
};

#define NAME_FEW(name, ...) [KERNEL_##name] = #name,
#define NAME_FOLD(NAME, name, ...) [KERNEL_FOLD_##NAME] = "fold_" #name,
static const char *const names[KERNEL_COUNT] = { FEW_KERNELS(NAME_FEW) DTYPES(NAME_FOLD) };

#define FEW(name, NAME, sources, unrolled, exchanges) \
    { KERNEL_##name, CT_##NAME, sources, unrolled, exchanges },
static const struct few {
    enum kernel kernel;
    ct_dtype dtype;
    int sources;
    unsigned unrolled;
    int exchanges;
} few_kernels[] = { FEW_KERNELS(FEW) };

/* `fold` is the kernel for all folds of the dtype, and `alignment` is the alignment, in bytes, of
 * an element in memory. */
#define DTYPE(NAME, name, FAMILY, T, ...) [CT_##NAME] = { KERNEL_FOLD_##NAME, _Alignof(T) },
static const struct {
    enum kernel fold;
    size_t alignment;
} dtypes[] = { DTYPES(DTYPE) };

const char *kernel_name(enum kernel kernel)
{
    return names[kernel];
}

/* ---- Pointers --------------------------------------------------------------------- */

/* Sets *differ to the bits in which any pointer differs from the first pointer, and *set to the
 * bits that are set in any pointer. */
static void look_at_pointers(const struct fold_task *task, uintptr_t *differ, uintptr_t *set)
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

/* Returns the `head` of the task's span (struct fold_span). */
static unsigned task_head(const struct fold_task *task)
{
    const size_t element = ct_dtype_size(task->dtype), bytes = task->count * element;
    const size_t to_piece = -(uintptr_t)task->src[0] % PIECE_BYTES;
    uintptr_t differ, set;

    look_at_pointers(task, &differ, &set);
    if (!(task->scaled && element * MOST_SCALED < PIECE_BYTES) && differ % PIECE_BYTES == 0
        && to_piece % element == 0 && bytes >= to_piece + PIECE_BYTES)
        return (unsigned)(to_piece / element);
    return set % dtypes[task->dtype].alignment == 0 ? BY_ELEMENTS : BY_BYTES;
}

/* ---- The kernel ------------------------------------------------------------------- */

static const struct few *few_of(const struct fold_task *task)
{
    const int is_sum = task->exchanges || task->sources == 1 || task->fold->op == CT_SUM
                       || task->fold->op == CT_AVG;

    for (size_t k = 0; is_sum && k < sizeof few_kernels / sizeof *few_kernels; k++)
        if (few_kernels[k].dtype == task->dtype && few_kernels[k].sources == task->sources
            && few_kernels[k].exchanges == task->exchanges)
            return &few_kernels[k];
    return NULL;
}

static enum kernel task_kernel(const struct fold_task *task)
{
    const struct few *const few = task->scaled ? NULL : few_of(task);

    return few ? few->kernel : dtypes[task->dtype].fold;
}

/* Returns the number of pieces of each source that a thread of the kernel loads before it stores
 * the first one. */
static unsigned kernel_unrolled(enum kernel kernel)
{
    for (size_t k = 0; k < sizeof few_kernels / sizeof *few_kernels; k++)
        if (few_kernels[k].kernel == kernel)
            return few_kernels[k].unrolled;
    return 1;
}

/* Chooses the dtype in which a fold of one source is copied, and converts the count to elements of
 * that dtype. */
static void copy_as(struct fold_task *task)
{
    const size_t bytes = task->count * ct_dtype_size(task->dtype);
    uintptr_t differ, set;

    look_at_pointers(task, &differ, &set);
    set |= bytes;
    task->dtype = differ % PIECE_BYTES == 0 || set % 2 ? CT_U8
                  : set % 4                            ? CT_U16
                  : set % 8                            ? CT_U32
                                                       : CT_U64;
    task->count = bytes / ct_dtype_size(task->dtype);
}

/* Fills in the task for the part's destinations from number `first` on, as many as fit in a launch.
 * If `first` is not 0, the task copies destination 0, which an earlier launch has written.  Returns
 * 0 if no destination is left or the part is empty, else 1. */
static int task_of(const struct fold *fold, const void *const *scalars,
                   const struct fold_part *part, int first, struct fold_task *task)
{
    const int dsts = part->dsts - first;

    *task = (struct fold_task){ .fold = fold,
                                .dtype = fold->dtype,
                                .count = part->count,
                                .dst = part->dst + first,
                                .src = first == 0 ? part->src : (const void *const *)part->dst,
                                .sources = part->exchanges ? 2
                                           : first == 0    ? fold->sources
                                                           : 1,
                                .exchanges = part->exchanges,
                                .dsts = dsts < FOLD_MANY ? dsts : FOLD_MANY,
                                .scaled = first == 0 && scalars };
    if (part->count == 0 || dsts <= 0)
        return 0;
    if (task->sources == 1 && !task->scaled && (task->dtype != CT_BOOL || first > 0))
        copy_as(task);
    return 1;
}

/* ---- Launches ----------------------------------------------------------------------- */

/* A launch that is being filled.  Spans are added to args.words[] from the front, pointers from the
 * end. */
struct launch_batch {
    const struct fold *fold;
    const void *const *scalars; /* [sources]; NULL if no source has a scalar */
    struct launch launch;
    int sources;
    unsigned top;                 /* index in args.words[] of the lowest pointer */
    uint64_t threads[MOST_SPANS]; /* number of threads that each span could use */
    int processors;
    ct_status (*enqueue)(const struct launch *launch, void *arg);
    void *arg;
};

static void set_scalars(struct launch_batch *b)
{
    struct fold_args *const args = &b->launch.args;

    b->top -= (unsigned)(b->sources * SCALAR_WORDS);
    args->scalars = b->top;
    for (int s = 0; s < b->sources; s++) {
        if (!b->scalars[s])
            continue;
        args->scaled[s / 32] |= UINT32_C(1) << s % 32;
        memcpy(&args->words[b->top + (unsigned)(s * SCALAR_WORDS)], b->scalars[s],
               ct_dtype_size(b->fold->dtype));
    }
}

static void batch_begin(struct launch_batch *b, enum kernel kernel)
{
    const struct fold *const fold = b->fold;
    const int is_average = fold->op == CT_AVG && b->sources > 1;
    struct fold_args *const args = &b->launch.args;

    b->launch.kernel = kernel;
    b->top = FOLD_WORDS;
    args->spans = 0;
    args->sources = kernel == KERNEL_exchange ? 2 : (uint32_t)b->sources;
    args->op = (uint32_t)(fold->op == CT_AVG ? CT_SUM : fold->op);
    args->divisor = is_average ? (uint32_t)b->sources : 0;
    memset(args->scaled, 0, sizeof args->scaled);
    args->scalars = 0;
    if (b->scalars)
        set_scalars(b);
}

static uint64_t divided_up(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

/* Gives each span blocks in proportion to its work, at least one block. */
static void assign_blocks(struct launch_batch *b)
{
    struct launch *const launch = &b->launch;
    const uint64_t most = (uint64_t)b->processors * BLOCKS_EACH;
    uint64_t threads = 0, blocks = 0;

    for (uint32_t i = 0; i < launch->args.spans; i++)
        threads += b->threads[i];
    launch->threads =
        threads < (uint64_t)b->processors * BLOCK_THREADS ? SMALL_THREADS : BLOCK_THREADS;
    for (uint32_t i = 0; i < launch->args.spans; i++)
        blocks += divided_up(b->threads[i], launch->threads);
    launch->blocks = 0;
    for (uint32_t i = 0; i < launch->args.spans; i++) {
        const uint64_t wanted = divided_up(b->threads[i], launch->threads);
        const uint64_t share = blocks > most ? wanted * most / blocks : wanted;
        struct fold_span span;

        memcpy(&span, &launch->args.words[i * SPAN_WORDS], sizeof span);
        span.first_block = launch->blocks;
        memcpy(&launch->args.words[i * SPAN_WORDS], &span, sizeof span);
        launch->blocks += share > 0 ? (unsigned)share : 1;
    }
}

static ct_status batch_end(struct launch_batch *b)
{
    if (b->launch.args.spans == 0)
        return CT_OK;
    assign_blocks(b);
    return b->enqueue(&b->launch, b->arg);
}

static void add_span(struct launch_batch *b, const struct fold_task *task)
{
    struct fold_args *const args = &b->launch.args;
    const size_t lanes = PIECE_BYTES / ct_dtype_size(task->dtype);
    struct fold_span span = { .count = task->count,
                              .dsts = (uint8_t)task->dsts,
                              .head = (uint8_t)task_head(task) };
    const uint64_t pieces = span.head < BY_ELEMENTS ? (span.count - span.head) / lanes : 0;
    const uint64_t singles = span.count - pieces * lanes;
    const uint64_t groups = divided_up(pieces, kernel_unrolled(b->launch.kernel));

    b->top -= (unsigned)(task->sources + task->dsts);
    span.pointers = (uint16_t)b->top;
    for (int s = 0; s < task->sources; s++)
        args->words[b->top + (unsigned)s] = (uintptr_t)task->src[s];
    for (int d = 0; d < task->dsts; d++)
        args->words[b->top + (unsigned)(task->sources + d)] = (uintptr_t)task->dst[d];
    b->threads[args->spans] = groups > singles ? groups : singles;
    memcpy(&args->words[args->spans++ * SPAN_WORDS], &span, sizeof span);
}

static ct_status batch_add(struct launch_batch *b, const struct fold_task *task)
{
    const unsigned spans = (b->launch.args.spans + 1) * SPAN_WORDS;
    ct_status status = CT_OK;

    if (spans + (unsigned)(task->sources + task->dsts) > b->top) {
        status = batch_end(b);
        batch_begin(b, b->launch.kernel);
    }
    if (status == CT_OK)
        add_span(b, task);
    return status;
}

/* ---- All -------------------------------------------------------------------------- */

_Static_assert(KERNEL_COUNT <= 64, "a set of kernels is a number");

/* Enqueues the launches of one kernel after the other.  The launches of a kernel contain all parts
 * that use this kernel. */
static ct_status launch_all(struct launch_batch *b, const struct fold_part *parts, int count,
                            int first)
{
    uint64_t kernels = 0;
    ct_status status = CT_OK;
    struct fold_task task;

    for (int i = 0; i < count; i++)
        if (task_of(b->fold, b->scalars, &parts[i], first, &task))
            kernels |= UINT64_C(1) << task_kernel(&task);
    for (int k = 0; k < KERNEL_COUNT && status == CT_OK; k++) {
        if (!(kernels >> k & 1))
            continue;
        batch_begin(b, (enum kernel)k);
        for (int i = 0; i < count && status == CT_OK; i++)
            if (task_of(b->fold, b->scalars, &parts[i], first, &task)
                && task_kernel(&task) == (enum kernel)k)
                status = batch_add(b, &task);
        if (status == CT_OK)
            status = batch_end(b);
    }
    return status;
}

ct_status fold_plan(const struct fold *fold, const void *const *scalars,
                    const struct fold_part *parts, int count, int processors, uint64_t called_off,
                    ct_status (*enqueue)(const struct launch *launch, void *arg), void *arg)
{
    const int most_sources = scalars ? FOLD_SCALED : FOLD_MANY;
    struct launch_batch batch = { .fold = fold,
                                  .processors = processors,
                                  .enqueue = enqueue,
                                  .arg = arg,
                                  .launch = { .args = { .called_off = called_off } } };
    ct_status status = CT_OK;
    int most = 0;

    if (fold->sources > most_sources)
        return ct_fail(CT_ERR_UNSUPPORTED,
                       "%d buffers can't be reduced on one GPU%s: %d are the most", fold->sources,
                       scalars ? ", scaled" : "", most_sources);
    for (int i = 0; i < count; i++)
        most = parts[i].dsts > most ? parts[i].dsts : most;
    for (int first = 0; first < most && status == CT_OK; first += FOLD_MANY) {
        batch.sources = first == 0 ? fold->sources : 1;
        batch.scalars = first == 0 ? scalars : NULL;
        status = launch_all(&batch, parts, count, first);
    }
    return status;
}
