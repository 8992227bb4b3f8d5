/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_bruck.c - in step k each rank sends all blocks that it has to the rank 2^k to its
 * left.
 *
 * A rank has its own block and those of the ranks to its right, twice as many after each step, in
 * a buffer that begins with its own.  At the end it copies them to their places in recv.
 * Cost: ceil(log2 p) alpha + (p-1) n beta, and p n copied: for blocks so small that a message
 * counts more than its bytes.  [Bruck et al. 1997] */
#include "collectives/core/sendrecv.h"

#define RANKS_FROM 9 /* of fewer, one step of p-1 messages at once is less */

static int all_gather_bruck_fits(const struct call *c)
{
    return c->signature.operation != OPERATION_ALL_GATHER_V && c->group->size >= RANKS_FROM;
}

static ct_status all_gather_bruck_run(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;
    const struct span own = block_at(c, &c->send, 0);
    const size_t n = own.bytes;
    char *gathered = call_scratch(c, (size_t)p * n);
    ct_status status = CT_OK;

    if (!gathered)
        return ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d ranks", p);
    copy_span(span_of(gathered, n), own.data);
    for (int have = 1; have < p && status == CT_OK; have *= 2) {
        const size_t more = (size_t)(have < p - have ? have : p - have) * n;

        status = exchange(c, (rank - have + p) % p, span_of(gathered, more), (rank + have) % p,
                          span_of(gathered + (size_t)have * n, more));
    }
    for (int i = 0; i < p && status == CT_OK; i++)
        copy_span(block_at(c, &c->recv, (rank + i) % p), gathered + (size_t)i * n);
    call_scratch_end(c, gathered);
    return status;
}

const struct algorithm all_gather_bruck = { "bruck", all_gather_bruck_fits, all_gather_bruck_run,
                                            1024, NULL };
