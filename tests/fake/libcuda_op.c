/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_op.c - what is enqueued in the fake driver's streams, or kept in graphs: memory that it
 * uses, and what it comes after. */
#include "tests/fake/libcuda.h"

#include <stdlib.h>
#include <string.h>

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
    free(op->kept);
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

void op_keep(struct op *op)
{
    op->kept = grown(op->kept, (size_t)op->uses + 1, sizeof *op->kept);
    for (int i = 0; i < op->uses; i++) {
        op->kept[i] = (struct kept){ op->used[i]->base, op->used[i]->id };
        block_done(op->used[i]);
    }
    op->keeps = op->uses;
    op->uses = 0;
}

static void use_again(struct op *op, const struct kept *kept, const char *what)
{
    if (!op_uses(op, kept->base, 1) || op->used[op->uses - 1]->id != kept->id
        || block_was_freed(op->used[op->uses - 1]))
        fake_dies("%s uses memory which was freed: at 0x%llx", what, kept->base);
}

void op_use_kept(struct op *op, const char *what)
{
    for (int i = 0; i < op->keeps; i++)
        use_again(op, &op->kept[i], what);
}

struct op *op_again(const struct op *kept)
{
    struct op *op = op_create(kept->run);

    op->to = kept->to;
    op->from = kept->from;
    op->bytes = kept->bytes;
    op->fill = kept->fill;
    op->value = kept->value;
    op->flags = kept->flags;
    op->is_wait = kept->is_wait;
    op->kernel = kept->kernel;
    op->blocks = kept->blocks;
    op->threads = kept->threads;
    op->call = kept->call;
    op->argument = kept->argument;
    op->failure = kept->failure;
    if (kept->args) {
        op->args = grown(NULL, kept->args_bytes, 1);
        op->args_bytes = kept->args_bytes;
        memcpy(op->args, kept->args, kept->args_bytes);
    }
    for (int i = 0; i < kept->keeps; i++)
        use_again(op, &kept->kept[i], "a graph that is launched");
    return op;
}
