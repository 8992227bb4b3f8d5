/* SPDX-License-Identifier: Apache-2.0 */
/* launch_plan.c - which kernels do folds, and with what arguments.
 *
 * Each part of a call (launch_task.c) becomes a span of a launch.  A launch holds all spans of one
 * kernel that fit its arguments, and each of them has some of its blocks, by how much there is to
 * do.  More destinations than fit are copies of the first one, in launches behind the others. */
#include "cuda/launch_task.h"

#include <stdint.h>
#include <string.h>

#include "runtime/util/error.h"

enum {
    BLOCKS_EACH = 4,    /* of a multiprocessor, at most: all its threads, if registers allow */
    SMALL_THREADS = 128 /* of a block, when there is too little for every multiprocessor */
};

static void mark_nodes(const struct fold *fold, uint32_t *starts)
{
    for (int node = 1; node < fold->nodes; node++) {
        const int start = fold->node_end[node - 1];

        if (start > 0 && start < fold->sources)
            starts[start / 32] |= UINT32_C(1) << start % 32;
    }
}

/* ---- The launches ----------------------------------------------------------------- */

/* One that is being filled: spans from the front of words[], pointers from behind. */
struct batch {
    const struct fold *fold;
    const void *const *scalars; /* [sources]; NULL: none has one */
    struct launch launch;
    int sources;
    unsigned top;                 /* the lowest pointer */
    uint64_t threads[MOST_SPANS]; /* that each span could use */
    int processors;
    ct_status (*enqueue)(const struct launch *launch, void *arg);
    void *arg;
};

static void set_scalars(struct batch *b)
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

static void batch_begin(struct batch *b, enum kernel kernel)
{
    const struct fold *const fold = b->fold;
    const int is_average = fold->op == CT_AVG && b->sources > 1;
    struct fold_args *const args = &b->launch.args;

    b->launch.kernel = kernel;
    b->top = FOLD_WORDS;
    args->spans = 0;
    args->sources = (uint32_t)b->sources;
    args->op = (uint32_t)(fold->op == CT_AVG ? CT_SUM : fold->op);
    args->divisor = is_average ? (uint32_t)b->sources : 0;
    memset(args->node_starts, 0, sizeof args->node_starts);
    memset(args->scaled, 0, sizeof args->scaled);
    args->scalars = 0;
    if (b->scalars)
        set_scalars(b);
}

static uint64_t divided_up(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

/* Each span gets blocks by how much there is to do in it; one at least. */
static void deal_out_blocks(struct batch *b)
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
        struct span span;

        memcpy(&span, &launch->args.words[i * SPAN_WORDS], sizeof span);
        span.first_block = launch->blocks;
        memcpy(&launch->args.words[i * SPAN_WORDS], &span, sizeof span);
        launch->blocks += share > 0 ? (unsigned)share : 1;
    }
}

static ct_status batch_end(struct batch *b)
{
    if (b->launch.args.spans == 0)
        return CT_OK;
    deal_out_blocks(b);
    return b->enqueue(&b->launch, b->arg);
}

static void add_span(struct batch *b, const struct task *task)
{
    struct fold_args *const args = &b->launch.args;
    const size_t lanes = PIECE_BYTES / ct_dtype_size(task->dtype);
    struct span span = { .count = task->count,
                         .dsts = (uint8_t)task->dsts,
                         .head = (uint8_t)task_head(task) };
    const uint64_t pieces = span.head < BY_ELEMENTS ? (span.count - span.head) / lanes : 0;
    const uint64_t singles = span.count - pieces * lanes;
    const uint64_t groups = divided_up(pieces, kernel_unrolled(b->launch.kernel));

    if (task_has_partials(task))
        mark_nodes(task->fold, args->node_starts);
    b->top -= (unsigned)(task->sources + task->dsts);
    span.pointers = (uint16_t)b->top;
    for (int s = 0; s < task->sources; s++)
        args->words[b->top + (unsigned)s] = (uintptr_t)task->src[s];
    for (int d = 0; d < task->dsts; d++)
        args->words[b->top + (unsigned)(task->sources + d)] = (uintptr_t)task->dst[d];
    b->threads[args->spans] = groups > singles ? groups : singles;
    memcpy(&args->words[args->spans++ * SPAN_WORDS], &span, sizeof span);
}

static ct_status batch_add(struct batch *b, const struct task *task)
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

/* A kernel after the other. */
static ct_status launch_all(struct batch *b, const struct fold_part *parts, int count, int first)
{
    uint64_t kernels = 0;
    ct_status status = CT_OK;
    struct task task;

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
    struct batch batch = { .fold = fold,
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
