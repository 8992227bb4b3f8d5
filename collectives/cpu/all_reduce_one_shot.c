/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_one_shot.c - each rank sends its input to all others and folds all inputs.
 *
 * Cost: one step, alpha + (p-1) n beta.  For small n, where a step counts more
 * than bytes; the order of folding is the written one, unlike recursive doubling's. */
#include "collectives/core/sendrecv.h"

static ct_status one_shot_gather(struct call *c, struct span in, const void **sources,
                                 char *scratch)
{
    const int p = c->group->size, rank = c->group->rank;
    struct batch batch;
    const ct_status status = batch_begin(&batch, c, 2 * p);

    if (status != CT_OK)
        return status;
    sources[rank] = in.data;
    for (int step = 1; step < p; step++) {
        const int from = (rank - step + p) % p;

        sources[from] = scratch + (size_t)from * in.bytes;
        batch_recv(&batch, from, span_of(sources[from], in.bytes));
    }
    for (int step = 1; step < p; step++)
        batch_send(&batch, (rank + step) % p, in);
    return batch_wait(&batch);
}

static ct_status all_reduce_one_shot_run(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0), out = block_at(c, &c->recv, 0);
    const size_t p = (size_t)c->group->size;
    const void **sources = call_scratch(c, p * sizeof *sources + p * in.bytes);
    ct_status status;

    if (!sources)
        return ct_fail(CT_ERR_NOMEM, "no memory for the inputs of %zu ranks", p);
    status = one_shot_gather(c, in, sources, (char *)(sources + p));
    if (status == CT_OK && in.bytes > 0)
        status = call_fold(c, out.data, sources, in.bytes / c->element);
    call_scratch_end(c, sources);
    return status;
}

const struct algorithm all_reduce_one_shot = { "one_shot", NULL, all_reduce_one_shot_run, 4096,
                                               NULL };
