/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_direct.c - the root sends each its block.  Cost: alpha + (p-1) n beta there. */
#include "collectives/core/registry.h"
#include "collectives/core/sendrecv.h"

static ct_status run(struct call *c)
{
    const struct span out = block_at(c, &c->recv, 0);
    struct batch batch;
    ct_status status;

    if (!call_is_root(c))
        return recv_from(c, c->signature.root, out);
    status = batch_begin(&batch, c, c->group->size);
    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            batch_send(&batch, i, block_at(c, &c->send, i));
    copy_span(out, block_at(c, &c->send, c->group->rank).data);
    return batch_wait(&batch);
}

const struct algorithm scatter_direct = { "direct", NULL, run, 0 };
