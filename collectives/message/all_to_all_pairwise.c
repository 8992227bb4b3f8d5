/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_pairwise.c - all-to-all in p-1 steps.  In step s each rank sends to the s-th rank to
 * its right and receives from the s-th rank to its left.
 *
 * Steps of few bytes run together.  Each rank decides for itself how many steps run together.
 * Cost: (p-1) alpha + (p-1) n beta for blocks of n bytes.  For few bytes p-1 messages at once cost
 * one alpha. */
#include "collectives/core/algorithms.h"
#include "collectives/core/sendrecv.h"

/* A rank runs steps together until they have this many bytes to send or to receive. */
#define BYTES_AT_ONCE ((size_t)64 << 10)

/* Copies the send blocks if the call is in place, since a block that arrives would overwrite a
 * block that is sent later.  Sets *copy to the copy, which the caller gives back. */
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

/* Runs several steps together, from `step` on, until they have BYTES_AT_ONCE bytes.  *next is the
 * first step that is left. */
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
