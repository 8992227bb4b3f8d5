/* SPDX-License-Identifier: Apache-2.0 */
/* rail_all_gather.c - sends each host's block to all hosts of a rail.
 *
 * Direct: each host sends its block to each other host (rail_exchange.c).
 * Doubling (Bruck): each host sends all blocks that it has to the host 1, 2, 4, ... before it.
 * Cost: ceil(log2 h) alpha + (h-1) n beta, and 2 h n bytes copied.
 * Chain: each host passes on the block that arrived last.  Cost: (h-1) (alpha + n beta), with the
 * same load on each wire.
 * [Bruck et al. 1997] */
#include "collectives/hosts/rail.h"

static struct span block_at_host(const struct rail *rail, const struct rail_blocks *b, int host)
{
    return b->block(rail->call, b->arg, host);
}

struct direct_gather {
    const struct rail *rail;
    const struct rail_blocks *blocks;
};

static struct span gather_own(const struct call *c, const void *arg, int host)
{
    const struct direct_gather *g = arg;

    (void)c, (void)host;
    return block_at_host(g->rail, g->blocks, g->rail->host);
}

static struct span gather_other(const struct call *c, const void *arg, int host)
{
    const struct direct_gather *g = arg;

    (void)c;
    return block_at_host(g->rail, g->blocks, host);
}

static ct_status gather_direct(const struct rail *rail, const struct rail_blocks *b)
{
    const struct direct_gather gather = { rail, b };

    return rail_exchange(rail, gather_own, gather_other, &gather);
}

static ct_status gather_doubling(const struct rail *rail, const struct rail_blocks *b)
{
    const struct span own = block_at_host(rail, b, rail->host);
    const int h = rail->hosts;
    const size_t n = own.bytes;
    char *gathered = call_scratch(rail->call, (size_t)h * n);
    ct_status status = CT_OK;

    if (!gathered)
        return ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d hosts", h);
    copy_span(span_of(gathered, n), own.data);
    for (int have = 1; have < h && status == CT_OK; have *= 2) {
        const size_t more = (size_t)(have < h - have ? have : h - have) * n;

        status = exchange(rail->call, rail_peer(rail, (rail->host - have + h) % h),
                          span_of(gathered, more), rail_peer(rail, (rail->host + have) % h),
                          span_of(gathered + (size_t)have * n, more));
    }
    for (int i = 1; i < h && status == CT_OK; i++)
        copy_span(block_at_host(rail, b, (rail->host + i) % h), gathered + (size_t)i * n);
    call_scratch_end(rail->call, gathered);
    return status;
}

static ct_status gather_chain(const struct rail *rail, const struct rail_blocks *b)
{
    const int h = rail->hosts, host = rail->host;
    const int right = rail_peer(rail, (host + 1) % h), left = rail_peer(rail, (host + h - 1) % h);
    ct_status status = CT_OK;

    for (int step = 0; step < h - 1 && status == CT_OK; step++)
        status = exchange(rail->call, right, block_at_host(rail, b, (host - step + h) % h), left,
                          block_at_host(rail, b, (host - step - 1 + h) % h));
    return status;
}

ct_status rail_all_gather(const struct rail *rail, enum rail_way way, const struct rail_blocks *b)
{
    return way == RAIL_DIRECT     ? gather_direct(rail, b)
           : way == RAIL_DOUBLING ? gather_doubling(rail, b)
                                  : gather_chain(rail, b);
}
