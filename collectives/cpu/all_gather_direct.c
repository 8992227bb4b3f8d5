/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_direct.c - everybody sends its block to everybody, all at once.
 *
 * Cost: alpha + (p-1) n beta, p-1 messages at once: for blocks so small that the ring's p-1 steps
 * count more.  It needs a connection to everybody, so large groups leave it to Bruck and the
 * ring, which need log2(p) and 2: a process may have 1024 descriptors. */
#include "collectives/core/registry.h"
#include "collectives/core/sendrecv.h"

#define MOST_RANKS 64

static int fits(const struct call *c)
{
    return c->group->size <= MOST_RANKS;
}

static ct_status run(struct call *c)
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

const struct algorithm all_gather_direct = { "direct", fits, run, (size_t)32 << 10 };
