/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_hier.c - the ranks of a host tell its first one, these tell each other as in
 * dissemination, and then tell theirs.
 *
 * Cost: two steps on the host and ceil(log2 h) alpha for h hosts, between which one message goes
 * instead of one for each rank. */
#include "collectives/core/host_topology.h"
#include "collectives/core/registry.h"

static const struct span nothing = { NULL, 0 };

static int fits(const struct call *c)
{
    return has_two_levels(c->group);
}

static ct_status hear_or_tell(struct call *c, const struct level *l, int tell)
{
    struct batch batch;
    const ct_status status = batch_begin(&batch, c, l->ranks);

    if (status != CT_OK)
        return status;
    for (int i = 1; i < l->ranks; i++)
        if (tell)
            batch_send(&batch, host_rank(c->group, l->host, i), nothing);
        else
            batch_recv(&batch, host_rank(c->group, l->host, i), nothing);
    return batch_wait(&batch);
}

static ct_status run(struct call *c)
{
    const struct level l = level_of(c->group, c->group->rank);
    const int speaker = host_rank(c->group, l.host, 0);
    ct_status status;

    if (l.rank > 0) {
        status = send_to(c, speaker, nothing);
        return status == CT_OK ? recv_from(c, speaker, nothing) : status;
    }
    status = hear_or_tell(c, &l, 0);
    for (int distance = 1; distance < l.hosts && status == CT_OK; distance *= 2)
        status = exchange(c, host_rank(c->group, (l.host + distance) % l.hosts, 0), nothing,
                          host_rank(c->group, (l.host - distance + l.hosts) % l.hosts, 0), nothing);
    return status == CT_OK ? hear_or_tell(c, &l, 1) : status;
}

const struct algorithm barrier_nodes = { "nodes", fits, run, 0 };
