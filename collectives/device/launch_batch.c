/* SPDX-License-Identifier: Apache-2.0 */
/* launch_batch.c - see launch_batch.h. */
#include "collectives/device/launch_batch.h"

#include <stdlib.h>

#include "runtime/reduction/combine.h"
#include "runtime/util/error.h"

ct_status batch_make(struct batch *b, size_t parts, size_t pointers)
{
    *b = (struct batch){ .parts = malloc(parts * sizeof *b->parts),
                         .pointers = malloc(pointers * sizeof *b->pointers) };
    if (!b->parts || !b->pointers)
        return ct_fail(CT_ERR_NOMEM, "no memory for %zu parts of a launch", parts);
    return CT_OK;
}

void batch_free(struct batch *b)
{
    free(b->parts);
    free(b->pointers);
    *b = (struct batch){ NULL, 0, NULL, 0 };
}

void batch_add(struct batch *b, size_t count)
{
    b->parts[b->count++] =
        (struct fold_part){ .src = (const void *const *)(b->pointers + b->used), .count = count };
}

void batch_from(struct batch *b, char *source)
{
    b->pointers[b->used++] = source;
}

void batch_to(struct batch *b, char *destination)
{
    struct fold_part *part = &b->parts[b->count - 1];

    if (part->dsts++ == 0)
        part->dst = b->pointers + b->used;
    b->pointers[b->used++] = destination;
}

void batch_copy(struct batch *b, char *from, char *to, size_t bytes)
{
    if (from == to)
        return;
    batch_add(b, bytes);
    batch_from(b, from);
    batch_to(b, to);
}

ct_status batch_fold(struct batch *b, const struct place *place, ct_dtype dtype, ct_op op,
                     int sources)
{
    const struct fold order = { dtype, op, sources, 1, &sources };
    const int count = b->count;

    b->count = 0;
    b->used = 0;
    return count == 0 ? CT_OK
                      : place->space->fold(place->device, NULL, &order, NULL, b->parts, count);
}

ct_status batch_copy_all(struct batch *b, const struct place *place)
{
    return batch_fold(b, place, CT_U8, CT_MAX, 1);
}
