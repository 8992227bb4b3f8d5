/* SPDX-License-Identifier: Apache-2.0 */
/* launch_task.c - by which kernel one part of a fold is done, and how it lies in memory.
 *
 * A fold of one source is a copy: of bytes where all pointers reach a multiple of 16 together, else
 * of numbers as large as all of them allow.  The common sums have kernels of their own; everything
 * else has its dtype's. */
#include "cuda/launch_task.h"

#include "runtime/types/dtype.h"

#define NAME_FEW(name, ...) [KERNEL_##name] = #name,
#define NAME_FOLD(NAME, name, ...) [KERNEL_FOLD_##NAME] = "fold_" #name,
static const char *const names[KERNEL_COUNT] = { FEW_KERNELS(NAME_FEW) DTYPES(NAME_FOLD) };

#define FEW(name, NAME, sources, unrolled) { KERNEL_##name, CT_##NAME, sources, unrolled },
static const struct few {
    enum kernel kernel;
    ct_dtype dtype;
    int sources;
    unsigned unrolled;
} few_kernels[] = { FEW_KERNELS(FEW) };

/* alignment: of what is one number in memory. */
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

unsigned task_head(const struct task *task)
{
    const size_t element = ct_dtype_size(task->dtype), bytes = task->count * element;
    const size_t to_piece = -(uintptr_t)task->src[0] % PIECE_BYTES;
    uintptr_t differ, set;

    look_at_pointers(task, &differ, &set);
    if (!task_has_partials(task) && !(task->scaled && element * MOST_SCALED < PIECE_BYTES)
        && differ % PIECE_BYTES == 0 && to_piece % element == 0 && bytes >= to_piece + PIECE_BYTES)
        return (unsigned)(to_piece / element);
    return set % dtypes[task->dtype].alignment == 0 ? BY_ELEMENTS : BY_BYTES;
}

/* ---- The nodes -------------------------------------------------------------------- */

int task_has_partials(const struct task *task)
{
    const struct fold *const fold = task->fold;
    int partial = 0; /* a node of several sources behind another one */

    if (task->sources == 1 || !dtype_is_inexact(task->dtype))
        return 0;
    for (int node = 1; node < fold->nodes; node++) {
        const int start = fold->node_end[node - 1], end = fold->node_end[node];

        partial |= start > 0 && end - start > 1;
    }
    return partial;
}

/* ---- The kernel ------------------------------------------------------------------- */

static const struct few *few_of(const struct task *task)
{
    const int is_sum = task->sources == 1 || task->fold->op == CT_SUM || task->fold->op == CT_AVG;

    for (size_t k = 0; is_sum && k < sizeof few_kernels / sizeof *few_kernels; k++)
        if (few_kernels[k].dtype == task->dtype && few_kernels[k].sources == task->sources)
            return &few_kernels[k];
    return NULL;
}

enum kernel task_kernel(const struct task *task)
{
    const struct few *const few = task_has_partials(task) || task->scaled ? NULL : few_of(task);

    return few ? few->kernel : dtypes[task->dtype].fold;
}

unsigned kernel_unrolled(enum kernel kernel)
{
    for (size_t k = 0; k < sizeof few_kernels / sizeof *few_kernels; k++)
        if (few_kernels[k].kernel == kernel)
            return few_kernels[k].unrolled;
    return 1;
}

/* As what a fold of one source is copied: its dtype does not matter. */
static void copy_as(struct task *task)
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

int task_of(const struct fold *fold, const void *const *scalars, const struct fold_part *part,
            int first, struct task *task)
{
    const int dsts = part->dsts - first;

    *task = (struct task){ .fold = fold,
                           .dtype = fold->dtype,
                           .count = part->count,
                           .dst = part->dst + first,
                           .src = first == 0 ? part->src : (const void *const *)part->dst,
                           .sources = first == 0 ? fold->sources : 1,
                           .dsts = dsts < FOLD_MANY ? dsts : FOLD_MANY,
                           .scaled = first == 0 && scalars };
    if (part->count == 0 || dsts <= 0)
        return 0;
    if (task->sources == 1 && !task->scaled && (task->dtype != CT_BOOL || first > 0))
        copy_as(task);
    return 1;
}
