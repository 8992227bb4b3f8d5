/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_dissemination.c - in step k tell the rank 2^k on the right, hear from 2^k on the left.
 *
 * After step k a rank knows of 2^(k+1) ranks that they came.
 * Cost: ceil(log2 p) alpha.  [Hensgen, Finkel & Manber 1988] */
#include "collectives/core/registry.h"
#include "collectives/core/sendrecv.h"

static ct_status run(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;
    const struct span nothing = { NULL, 0 };
    ct_status status = CT_OK;

    for (int distance = 1; distance < p && status == CT_OK; distance *= 2)
        status = exchange(c, (rank + distance) % p, nothing, (rank - distance + p) % p, nothing);
    return status;
}

const struct algorithm barrier_dissemination = { "dissemination", NULL, run, 0 };
