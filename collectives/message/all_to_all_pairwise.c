/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_pairwise.c - in step s each rank sends to the s-th rank to its right and
 * receives from the s-th to its left.
 *
 * Steps of few bytes are made together; each rank decides for itself how many.
 * Cost: (p-1) alpha + (p-1) n beta for blocks of n; for few bytes one alpha, p-1 messages at once.
 */
#include "collectives/core/algorithms.h"
#include "collectives/core/sendrecv.h"

#define BYTES_AT_ONCE ((size_t)64 << 10) /* of a rank, one way */

/* In place, a block that arrives would overwrite one that is sent later. */
static ct_status copy_if_in_place(struct call *c, char **copy)
{
    size_t bytes = 0, at = 0;
    int in_place = 0;

    for (int i = 0; i < c->group->size; i++) {
        const struct span out = block_at(c, &c->send, i);

        bytes += out.bytes;
        in_place |= out.bytes > 0 && out.data == block_at(c, &c->recv, i).data;
    }
    if (!in_place)
        return CT_OK;
    *copy = call_scratch(c, bytes);
    if (!*copy)
        return ct_fail(CT_ERR_NOMEM, "no memory to copy %zu bytes, which in place needs", bytes);
    for (int i = 0; i < c->group->size; i++) {
        const struct span out = block_at(c, &c->send, i);

        copy_span(span_of(*copy + at, out.bytes), out.data);
        at += out.bytes;
    }
    c->send.base = *copy;
    c->send.list = NULL;
    c->send.displs = NULL;
    return CT_OK;
}

/* Makes steps from `step` on together until they have BYTES_AT_ONCE; *next: the first that is left.
 */
static ct_status some_steps(struct call *c, int step, int *next)
{
    const int p = c->group->size, rank = c->group->rank;
    size_t bytes = 0;
    struct batch batch;
    ct_status status = batch_begin(&batch, c, 2 * p);

    if (status != CT_OK)
        return status;
    *next = step;
    do {
        const int to = (rank + *next) % p, from = (rank - *next + p) % p;
        const struct span out = block_at(c, &c->send, to), in = block_at(c, &c->recv, from);

        batch_recv(&batch, from, in);
        batch_send(&batch, to, out);
        bytes += out.bytes > in.bytes ? out.bytes : in.bytes;
        ++*next;
    } while (*next < p && bytes < BYTES_AT_ONCE);
    return batch_wait(&batch);
}

static ct_status all_to_all_pairwise_run(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;
    char *copy = NULL;
    int step = 1;
    ct_status status = copy_if_in_place(c, &copy);

    if (status == CT_OK)
        copy_span(block_at(c, &c->recv, rank), block_at(c, &c->send, rank).data);
    while (step < p && status == CT_OK)
        status = some_steps(c, step, &step);
    call_scratch_end(c, copy);
    return status;
}

const struct algorithm all_to_all_pairwise = { .name = "pairwise", .run = all_to_all_pairwise_run };
