/* SPDX-License-Identifier: Apache-2.0 */
/* lane_all_gather.c - each host's block to all hosts of a lane.
 *
 * Directly, each to each: alpha + (h-1) (o + n beta).  By doubling (Bruck): each sends all blocks
 * that it has to the host 1, 2, 4, ... before it: ceil(log2 h) alpha + (h-1) n beta, and 2 h n
 * copied.  In a chain, each passes on what came last: (h-1) (alpha + n beta), every wire evenly
 * used.  [Bruck et al. 1997] */
#include "collectives/hosts/lane.h"

static struct span block_at_host(const struct lane *lane, const struct lane_blocks *b, int host)
{
    return b->block(lane->call, b->arg, host);
}

static ct_status gather_direct(const struct lane *lane, const struct lane_blocks *b)
{
    const int h = lane->hosts;
    struct batch batch;
    const ct_status status = batch_begin(&batch, lane->call, 2 * h);

    if (status != CT_OK)
        return status;
    for (int step = 1; step < h; step++) {
        const int from = (lane->host - step + h) % h;

        batch_recv(&batch, lane_peer(lane, from), block_at_host(lane, b, from));
    }
    for (int step = 1; step < h; step++)
        batch_send(&batch, lane_peer(lane, (lane->host + step) % h),
                   block_at_host(lane, b, lane->host));
    return batch_wait(&batch);
}

static ct_status gather_doubling(const struct lane *lane, const struct lane_blocks *b)
{
    const struct span own = block_at_host(lane, b, lane->host);
    const int h = lane->hosts;
    const size_t n = own.bytes;
    char *gathered = call_scratch(lane->call, (size_t)h * n);
    ct_status status = CT_OK;

    if (!gathered)
        return ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d hosts", h);
    copy_span(span_of(gathered, n), own.data);
    for (int have = 1; have < h && status == CT_OK; have *= 2) {
        const size_t more = (size_t)(have < h - have ? have : h - have) * n;

        status = exchange(lane->call, lane_peer(lane, (lane->host - have + h) % h),
                          span_of(gathered, more), lane_peer(lane, (lane->host + have) % h),
                          span_of(gathered + (size_t)have * n, more));
    }
    for (int i = 1; i < h && status == CT_OK; i++)
        copy_span(block_at_host(lane, b, (lane->host + i) % h), gathered + (size_t)i * n);
    call_scratch_end(lane->call, gathered);
    return status;
}

static ct_status gather_chain(const struct lane *lane, const struct lane_blocks *b)
{
    const int h = lane->hosts, host = lane->host;
    const int right = lane_peer(lane, (host + 1) % h), left = lane_peer(lane, (host + h - 1) % h);
    ct_status status = CT_OK;

    for (int step = 0; step < h - 1 && status == CT_OK; step++)
        status = exchange(lane->call, right, block_at_host(lane, b, (host - step + h) % h), left,
                          block_at_host(lane, b, (host - step - 1 + h) % h));
    return status;
}

ct_status lane_all_gather(const struct lane *lane, enum lane_way way, const struct lane_blocks *b)
{
    return way == LANE_DIRECT     ? gather_direct(lane, b)
           : way == LANE_DOUBLING ? gather_doubling(lane, b)
                                  : gather_chain(lane, b);
}
