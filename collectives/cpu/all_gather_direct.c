/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_direct.c - each rank sends its block to all others at once.
 *
 * Cost: alpha + (p-1) n beta, p-1 messages at once: for blocks so small that the ring's p-1 steps
 * count more.  A rank needs a connection to each other rank, and a process may have
 * 1024 descriptors.  So large groups take Bruck or the ring, which need log2(p) and 2. */
#include "collectives/core/sendrecv.h"

#define MOST_RANKS 64

static int all_gather_direct_fits(const struct call *c)
{
    return c->group->size <= MOST_RANKS;
}

static ct_status all_gather_direct_run(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;
    const struct span own = block_at(c, &c->recv, rank);
    struct batch batch;
    const ct_status status = batch_begin(&batch, c, 2 * p);

    if (status != CT_OK)
        return status;
    for (int step = 1; step < p; step++) {
        const int from = (rank - step + p) % p;

        batch_recv(&batch, from, block_at(c, &c->recv, from));
    }
    copy_span(own, block_at(c, &c->send, 0).data);
    for (int step = 1; step < p; step++)
        batch_send(&batch, (rank + step) % p, own);
    return batch_wait(&batch);
}

const struct algorithm all_gather_direct = { "direct", all_gather_direct_fits,
                                             all_gather_direct_run, (size_t)32 << 10, NULL };
