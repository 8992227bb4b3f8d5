/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_nodes.c - scatter over several hosts.  The root sends one rank of each host the blocks of
 * that host in one message, and this rank shares them with the ranks of its host.
 *
 * Cost: at the root the messages to h hosts of m ranks take alpha + (h-2) o + (p-m) n beta; a
 * message to each rank would take alpha + (p-1) (o + n beta).  On a host m n bytes are written, and
 * each rank reads n bytes.  This algorithm is for small blocks, and for groups so large that the
 * root should not have a connection to each rank. */
#include "collectives/core/algorithms.h"
#include "collectives/hosts/host_blocks.h"
#include "collectives/hosts/host_exchange.h"

static struct span scatter_own_piece(const struct call *c, const struct host_blocks *p)
{
    return span_of(block_at(c, &c->recv, 0).data + p->at, p->bytes);
}

/* Returns the piece for rank k of this host.  It lies in p->all on the rank that shares the pieces,
 * and in the receive buffer on rank k.  On all other ranks the data is NULL. */
static struct span piece_for_rank(const struct call *c, const void *arg, int owner, int k)
{
    const struct host_blocks *p = arg;

    (void)owner;
    if (!p->all)
        return k == p->level->rank ? scatter_own_piece(c, p) : span_of(NULL, p->bytes);
    return host_block_here(c, p, k);
}

static ct_status send_all_hosts(struct call *c, const struct rail *rail,
                                const struct host_blocks *p)
{
    struct batch batch;
    ct_status status = batch_begin(&batch, c, rail->hosts);

    for (int i = 0; i < c->group->size && status == CT_OK; i++) {
        const int rank = c->group->order.fold_rank[i];

        copy_span(span_of(p->all + (size_t)i * p->bytes, p->bytes),
                  block_at(c, &c->send, rank).data + p->at);
    }
    for (int host = 0; host < rail->hosts && status == CT_OK; host++)
        if (host != rail->host)
            batch_send(&batch, rail_peer(rail, host), host_blocks_of(c, p, host));
    return status == CT_OK ? batch_wait(&batch) : status;
}

static ct_status scatter_one_piece(struct call *c, const struct rail *rail,
                                   const struct host_blocks *p)
{
    const struct level *l = p->level;
    const int shower = l->host == rail->root_host ? level_of(c->group, rail->root).rank : 0;
    const struct host_parts parts = {
        .owners = 1, .first = shower, .spans = l->ranks, .span = piece_for_rank, .arg = p
    };
    ct_status status = CT_OK;

    if (l->rank == shower)
        status = l->host == rail->root_host
                     ? send_all_hosts(c, rail, p)
                     : recv_from(c, rail->root, host_blocks_of(c, p, l->host));
    if (status == CT_OK)
        status = host_share(c, l, &parts);
    if (status == CT_OK && l->rank == shower)
        copy_span(scatter_own_piece(c, p), piece_for_rank(c, p, 0, l->rank).data);
    return status;
}

static ct_status scatter_nodes_run(struct call *c)
{
    return host_blocks_run(c, scatter_one_piece);
}

const struct algorithm scatter_nodes = { .name = "nodes",
                                         .fits = host_blocks_fit,
                                         .run = scatter_nodes_run };
