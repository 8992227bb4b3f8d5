/* SPDX-License-Identifier: Apache-2.0 */
/* gather_direct.c - everybody sends its block to the root.  Cost: alpha + (p-1) n beta there. */
#include "collectives/core/registry.h"
#include "collectives/core/sendrecv.h"

static ct_status run(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0);
    struct batch batch;
    ct_status status;

    if (!call_is_root(c))
        return send_to(c, c->signature.root, in);
    status = batch_begin(&batch, c, c->group->size);
    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            batch_recv(&batch, i, block_at(c, &c->recv, i));
    copy_span(block_at(c, &c->recv, c->group->rank), in.data);
    return batch_wait(&batch);
}

const struct algorithm gather_direct = { "direct", NULL, run, 0 };
