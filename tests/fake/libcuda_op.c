/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_op.c - what is enqueued in the fake driver's streams: memory that it uses, and what it
 * comes after. */
#include "tests/fake/libcuda.h"

#include <stdlib.h>

static void *grown(void *array, size_t elements, size_t size)
{
    void *larger = realloc(array, elements * size);

    if (!larger)
        fake_dies("no memory");
    return larger;
}

struct op *op_create(void (*run)(struct op *op))
{
    struct op *op = calloc(1, sizeof *op);

    if (!op)
        fake_dies("no memory");
    op->run = run;
    return op;
}

void op_destroy(struct op *op)
{
    for (int i = 0; i < op->uses; i++)
        block_done(op->used[i]);
    free(op->used);
    free(op->after);
    free(op->args);
    free(op);
}

unsigned char *op_uses(struct op *op, CUdeviceptr at, size_t bytes)
{
    struct block *block = block_use(at, bytes);

    if (!block)
        return NULL;
    op->used = grown(op->used, (size_t)op->uses + 1, sizeof *op->used);
    op->used[op->uses++] = block;
    return block_alias(block, at);
}

void op_waits_for(struct op *op, const struct point *point)
{
    op->after = grown(op->after, (size_t)op->afters + 1, sizeof *op->after);
    op->after[op->afters++] = *point;
}
