/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_ring.c - each rank passes on to its right what came from its left.
 *
 * Cost: (p-1) alpha + (p-1) n beta for blocks of n, every link evenly used. */
#include "collectives/core/registry.h"
#include "collectives/core/sendrecv.h"

static ct_status run(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;
    const int right = (rank + 1) % p, left = (rank + p - 1) % p;
    ct_status status = CT_OK;

    copy_span(block_at(c, &c->recv, rank), block_at(c, &c->send, 0).data);
    for (int step = 0; step < p - 1 && status == CT_OK; step++)
        status = exchange(c, right, block_at(c, &c->recv, (rank - step + p) % p), left,
                          block_at(c, &c->recv, (rank - step - 1 + p) % p));
    return status;
}

const struct algorithm all_gather_ring = { "ring", NULL, run, 0 };
