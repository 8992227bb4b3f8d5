/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_bruck.c - all-to-all in ceil(log2 p) steps, one for each binary digit of the distance
 * that a block travels.
 *
 * Block i of a rank is for the rank i to its right.  In step k, all blocks with bit k set in i move
 * 2^k ranks to the right, in one message.  At the end block i is the block from the rank i to the
 * left.
 * Cost: ceil(log2 p) alpha + log2(p) p n / 2 beta, and twice these bytes are copied.  This
 * algorithm is for blocks so small that a message costs more than its bytes.  [Bruck et al. 1997]
 */
#include "collectives/core/algorithms.h"
#include "collectives/core/sendrecv.h"

#define RANKS_FROM 9 /* minimum ranks; with fewer, p-1 messages at once are faster */

static int all_to_all_bruck_fits(const struct call *c)
{
    return c->signature.operation != OPERATION_ALL_TO_ALL_V && c->group->size >= RANKS_FROM;
}

/* Copies the blocks that have `bit` set in their number to `packed`, or back if `unpack` is set.
 * Returns the number of bytes copied. */
static size_t bruck_pack(char *blocks, char *packed, int p, size_t n, int bit, int unpack)
{
    size_t at = 0;

    for (int i = bit; i < p; i++) {
        if (!(i & bit))
            continue;
        if (unpack)
            memcpy(blocks + (size_t)i * n, packed + at, n);
        else
            memcpy(packed + at, blocks + (size_t)i * n, n);
        at += n;
    }
    return at;
}

static ct_status all_to_all_bruck_run(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;
    const size_t n = call_bytes(c), all = (size_t)p * n;
    char *blocks = call_scratch(c, 3 * all), *out = blocks + all, *in = out + all;
    ct_status status = CT_OK;

    if (!blocks)
        return ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d ranks", p);
    for (int i = 0; i < p; i++)
        copy_span(span_of(blocks + (size_t)i * n, n), block_at(c, &c->send, (rank + i) % p).data);
    for (int bit = 1; bit < p && status == CT_OK; bit *= 2) {
        const size_t bytes = bruck_pack(blocks, out, p, n, bit, 0);

        status = exchange(c, (rank + bit) % p, span_of(out, bytes), (rank - bit + p) % p,
                          span_of(in, bytes));
        if (status == CT_OK)
            bruck_pack(blocks, in, p, n, bit, 1);
    }
    for (int i = 0; i < p && status == CT_OK; i++)
        copy_span(block_at(c, &c->recv, (rank - i + p) % p), blocks + (size_t)i * n);
    call_scratch_end(c, blocks);
    return status;
}

const struct algorithm all_to_all_bruck = {
    .name = "bruck", .fits = all_to_all_bruck_fits, .run = all_to_all_bruck_run, .most = 256
};
