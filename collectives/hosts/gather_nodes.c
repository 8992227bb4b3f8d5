/* SPDX-License-Identifier: Apache-2.0 */
/* gather_nodes.c - gather over several hosts.  One rank of each host collects the blocks of its
 * host and sends them to the root in one message.
 *
 * Cost: on a host of m ranks m n bytes are written and read.  At the root the messages of h hosts
 * take alpha + (h-2) o + (p-m) n beta; a message from each rank would take alpha + (p-1) (o + n
 * beta).  This algorithm is for small blocks, and for groups so large that the root should not have
 * a connection to each rank. */
#include "collectives/core/algorithms.h"
#include "collectives/hosts/host_blocks.h"
#include "collectives/hosts/host_exchange.h"

static struct span gather_own_piece(const struct call *c, const struct host_blocks *p)
{
    return span_of(block_at(c, &c->send, 0).data + p->at, p->bytes);
}

/* Returns the piece of rank `owner` of this host.  It lies in p->all on the rank that collects the
 * pieces, and in the send buffer on rank `owner`.  On all other ranks the data is NULL. */
static struct span piece_of_rank(const struct call *c, const void *arg, int owner, int k)
{
    const struct host_blocks *p = arg;

    (void)k;
    if (!p->all)
        return owner == p->level->rank ? gather_own_piece(c, p) : span_of(NULL, p->bytes);
    return host_block_here(c, p, owner);
}

static ct_status take_all_hosts(struct call *c, const struct rail *rail,
                                const struct host_blocks *p)
{
    struct batch batch;
    ct_status status = batch_begin(&batch, c, rail->hosts);

    for (int host = 0; host < rail->hosts && status == CT_OK; host++)
        if (host != rail->host)
            batch_recv(&batch, rail_peer(rail, host), host_blocks_of(c, p, host));
    if (status == CT_OK)
        status = batch_wait(&batch);
    for (int i = 0; i < c->group->size && status == CT_OK; i++) {
        const int rank = c->group->order.fold_rank[i];

        copy_span(span_of(block_at(c, &c->recv, rank).data + p->at, p->bytes),
                  p->all + (size_t)i * p->bytes);
    }
    return status;
}

static ct_status gather_one_piece(struct call *c, const struct rail *rail,
                                  const struct host_blocks *p)
{
    const struct level *l = p->level;
    const int reader = l->host == rail->root_host ? level_of(c->group, rail->root).rank : 0;
    const struct host_parts parts = {
        .owners = l->ranks, .spans = 1, .span = piece_of_rank, .arg = p
    };
    ct_status status;

    if (l->rank == reader)
        copy_span(piece_of_rank(c, p, l->rank, 0), gather_own_piece(c, p).data);
    status = host_collect(c, l, &parts, reader);
    if (status != CT_OK || l->rank != reader)
        return status;
    return l->host == rail->root_host ? take_all_hosts(c, rail, p)
                                      : send_to(c, rail->root, host_blocks_of(c, p, l->host));
}

static ct_status gather_nodes_run(struct call *c)
{
    return host_blocks_run(c, gather_one_piece);
}

const struct algorithm gather_nodes = { .name = "nodes",
                                        .fits = host_blocks_fit,
                                        .run = gather_nodes_run };
