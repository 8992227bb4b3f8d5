/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_scatter_direct.c - reduce-scatter in one step.  Block r of each input goes to rank r,
 * which folds the blocks in the fixed order of combine.h.
 *
 * Cost: alpha + (p-1) n beta for blocks of n bytes.  A rank sends p-1 messages at once, a piece of
 * each block at a time.  The p places for pieces take 8 MiB at most, however many ranks there are.
 */
#include <stdlib.h>

#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

static ct_status reduce_scatter_direct_one_piece(struct call *c, size_t at, struct span out,
                                                 char *scratch, const void **sources)
{
    const size_t piece = piece_of_each(c);
    const int p = c->group->size, rank = c->group->rank;
    const size_t n = piece_of(out.bytes, at, piece);
    struct batch batch;
    ct_status status = batch_begin(&batch, c, 2 * p);

    if (status != CT_OK)
        return status;
    sources[rank] = block_at(c, &c->send, rank).data + at;
    for (int step = 1; step < p && at < out.bytes + (out.bytes == 0); step++) {
        const int from = (rank - step + p) % p;

        sources[from] = scratch + (size_t)from * n;
        batch_recv(&batch, from, span_of(sources[from], n));
    }
    for (int step = 1; step < p; step++) {
        const int to = (rank + step) % p;
        const struct span block = block_at(c, &c->send, to);

        if (at < block.bytes + (block.bytes == 0))
            batch_send(&batch, to, span_of(block.data + at, piece_of(block.bytes, at, piece)));
    }
    status = batch_wait(&batch);
    if (status == CT_OK && n > 0)
        status = call_fold(c, out.data + at, sources, n / c->element);
    return status;
}

static ct_status reduce_scatter_direct_run(struct call *c)
{
    const struct span out = block_at(c, &c->recv, 0);
    const size_t p = (size_t)c->group->size, largest = largest_block(c, &c->send);
    const size_t piece = piece_of_each(c), most = out.bytes < piece ? out.bytes : piece;
    const void **sources = malloc(p * sizeof *sources);
    char *scratch = call_scratch(c, p * most);
    ct_status status = CT_OK;
    size_t at = 0;

    if (!sources || !scratch)
        status = ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %zu ranks", p);
    do {
        if (status == CT_OK)
            status = reduce_scatter_direct_one_piece(c, at, out, scratch, sources);
        at += piece;
    } while (status == CT_OK && at < largest);
    free(sources);
    call_scratch_end(c, scratch);
    return status;
}

const struct algorithm reduce_scatter_direct = { .name = "direct",
                                                 .run = reduce_scatter_direct_run };
