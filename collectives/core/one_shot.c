/* SPDX-License-Identifier: Apache-2.0 */
/* one_shot.c - a reduction in one step: each peer sends its input to all other peers, and each peer
 * folds all inputs in the written order.
 *
 * Cost: one step, alpha + (p-1) n beta.  It is for small n, where a step costs more than the bytes.
 */
#include "collectives/core/peers.h"

static ct_status get_all(struct call *c, const struct peers *peers, struct span in,
                         const void **sources, char *room)
{
    const int p = peers->count, own = peers->own;
    struct batch batch;
    const ct_status status = batch_begin(&batch, c, 2 * p);

    if (status != CT_OK)
        return status;
    sources[own] = in.data;
    for (int step = 1; step < p; step++) {
        const int from = (own - step + p) % p;

        sources[from] = room + (size_t)from * in.bytes;
        batch_recv(&batch, peer_rank(peers, from), span_of(sources[from], in.bytes));
    }
    for (int step = 1; step < p; step++)
        batch_send(&batch, peer_rank(peers, (own + step) % p), in);
    return batch_wait(&batch);
}

ct_status one_shot(struct call *c, const struct peers *peers, struct span in, struct span out)
{
    const size_t p = (size_t)peers->count;
    const void **sources = call_scratch(c, p * sizeof *sources + p * in.bytes);
    ct_status status;

    if (!sources)
        return ct_fail(CT_ERR_NOMEM, "no memory for the inputs of %zu ranks", p);
    status = get_all(c, peers, in, sources, (char *)(sources + p));
    if (status == CT_OK)
        status = peers->fold(c, peers->arg, out, sources);
    call_scratch_end(c, sources);
    return status;
}
