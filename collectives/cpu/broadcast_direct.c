/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast_direct.c - the root sends the buffer to all ranks at once.
 *
 * Cost: alpha + (p-1) n beta at the root: for few ranks and bytes, where a step of a tree counts
 * more than the bytes on the root's wire. */
#include "collectives/core/sendrecv.h"

#define MOST_RANKS 4

static int broadcast_direct_fits(const struct call *c)
{
    return c->group->size <= MOST_RANKS;
}

static ct_status broadcast_direct_run(struct call *c)
{
    const struct span buf = block_at(c, &c->recv, 0);
    struct batch batch;
    ct_status status;

    if (!call_is_root(c))
        return recv_from(c, c->signature.root, buf);
    status = batch_begin(&batch, c, c->group->size);
    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            batch_send(&batch, i, buf);
    return batch_wait(&batch);
}

const struct algorithm broadcast_direct = { "direct", broadcast_direct_fits, broadcast_direct_run,
                                            8192, NULL };
