/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_hier.c - first each rank exchanges its block with the ranks of its number on the
 * other hosts, then the ranks of a host exchange what came from other hosts.
 *
 * So a block crosses once to each other host, not once for each rank there.
 * Cost for h hosts of equally many ranks: alpha + (h-1) n beta between hosts, and one step in which
 * (p - h) n come from the ranks of the host.  [multi-level: Open MPI HAN] */
#include "collectives/core/host_topology.h"

static int all_gather_hier_fits(const struct call *c)
{
    return has_two_levels(c->group) && hosts_are_alike(c->group);
}

/* Exchanges this rank's block with the ranks of its number on other hosts, and with all ranks of
 * its host, which do not wait for those. */
static ct_status exchange_own(struct call *c, const struct level *l)
{
    const struct span own = block_at(c, &c->recv, c->group->rank);
    struct batch batch;
    const ct_status status = batch_begin(&batch, c, 2 * (l->hosts + l->ranks));

    if (status != CT_OK)
        return status;
    for (int sends = 0; sends <= 1; sends++) {
        for (int host = 0; host < l->hosts + l->ranks; host++) {
            const int other = host < l->hosts ? host_rank(c->group, host, l->rank)
                                              : host_rank(c->group, l->host, host - l->hosts);

            if (other == c->group->rank)
                continue;
            if (sends)
                batch_send(&batch, other, own);
            else
                batch_recv(&batch, other, block_at(c, &c->recv, other));
        }
    }
    return batch_wait(&batch);
}

/* Exchanges within the host the blocks that came from other hosts. */
static ct_status all_gather_hier_share_on_host(struct call *c, const struct level *l)
{
    struct batch batch;
    const ct_status status = batch_begin(&batch, c, 2 * l->hosts * l->ranks);

    if (status != CT_OK)
        return status;
    for (int i = 0; i < l->ranks; i++)
        for (int host = 0; host < l->hosts && i != l->rank; host++)
            if (host != l->host)
                batch_recv(&batch, host_rank(c->group, l->host, i),
                           block_at(c, &c->recv, host_rank(c->group, host, i)));
    for (int i = 0; i < l->ranks; i++)
        for (int host = 0; host < l->hosts && i != l->rank; host++)
            if (host != l->host)
                batch_send(&batch, host_rank(c->group, l->host, i),
                           block_at(c, &c->recv, host_rank(c->group, host, l->rank)));
    return batch_wait(&batch);
}

static ct_status all_gather_hier_run(struct call *c)
{
    const struct level l = level_of(c->group, c->group->rank);
    ct_status status;

    copy_span(block_at(c, &c->recv, c->group->rank), block_at(c, &c->send, 0).data);
    status = exchange_own(c, &l);
    return status == CT_OK ? all_gather_hier_share_on_host(c, &l) : status;
}

const struct algorithm all_gather_nodes = { "nodes", all_gather_hier_fits, all_gather_hier_run, 0 };
