/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast_binomial.c - a tree: each rank that has the buffer sends it on, twice as many in each
 * step.
 *
 * With ranks counted from the root, r receives from r minus its lowest set bit
 * and sends to r + each lower power of two.
 * Cost: log2(p) alpha + log2(p) n beta.  [MPICH MPIR_Bcast_intra_binomial; Thakur et al. 2005] */
#include "collectives/core/sendrecv.h"

static ct_status broadcast_binomial_run(struct call *c)
{
    const int p = c->group->size, root = c->signature.root;
    const int from_root = (c->group->rank - root + p) % p;
    const struct span buf = block_at(c, &c->recv, 0);
    ct_status status = CT_OK;
    int bit = 1;

    while (bit < p && !(from_root & bit))
        bit *= 2;
    if (from_root > 0)
        status = recv_from(c, (from_root - bit + root) % p, buf);
    for (bit /= 2; bit > 0 && status == CT_OK; bit /= 2)
        if (from_root + bit < p)
            status = send_to(c, (from_root + bit + root) % p, buf);
    return status;
}

const struct algorithm broadcast_binomial = { "binomial", NULL, broadcast_binomial_run,
                                              (size_t)64 << 10, NULL };
