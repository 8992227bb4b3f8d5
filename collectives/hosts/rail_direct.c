/* SPDX-License-Identifier: Apache-2.0 */
/* rail_direct.c - among few hosts, each host sends to each other host.
 *
 * An all-reduce takes one step for few bytes (one_shot.c) and two steps for many (two_shot.c).  A
 * reduce sends all inputs to the root, which folds them (fold_at_root.c), or takes two steps
 * (two_shot.c).  In a broadcast the root sends to all hosts at once.
 * Cost: alpha + (h-2) o + (h-1) n beta for a host that sends to all hosts or receives from all.
 * Two steps cost 2 (alpha + (h-2) o) + 2n(h-1)/h beta, those of a large reduce 2 (alpha + (h-2) o)
 * + n beta. */
#include "collectives/core/peers.h"
#include "collectives/hosts/rail_tree.h"

static int peer_number(const void *arg, int host)
{
    return rail_peer(arg, host);
}

static ct_status fold_and_divide(struct call *c, const void *arg, struct span dst,
                                 const void *const *sources)
{
    fold_hosts(c, dst.data, sources, dst.bytes);
    rail_average(arg, dst);
    return CT_OK;
}

static struct peers peers_of(const struct rail *rail)
{
    return (struct peers){ .count = rail->hosts,
                           .own = rail->host,
                           .rank = peer_number,
                           .fold = fold_and_divide,
                           .arg = rail };
}

ct_status rail_all_reduce_direct(const struct rail *rail, struct span in, struct span out)
{
    const struct peers peers = peers_of(rail);

    return rail_takes_one_step(rail->hosts, in.bytes) ? one_shot(rail->call, &peers, in, out)
                                                      : two_shot(rail->call, &peers, in, out);
}

ct_status rail_reduce_direct(const struct rail *rail, int host, struct span data)
{
    const struct peers peers = peers_of(rail);

    return fold_at_root(rail->call, &peers, host, data, data);
}

ct_status rail_reduce_parts(const struct rail *rail, int host, struct span data)
{
    const struct peers peers = peers_of(rail);

    return two_shot_to_root(rail->call, &peers, host, data, data);
}

ct_status rail_broadcast_direct(const struct rail *rail, int host, struct span data)
{
    struct batch batch;
    ct_status status;

    if (rail->host != host)
        return recv_from(rail->call, rail_peer(rail, host), data);
    status = batch_begin(&batch, rail->call, rail->hosts);
    for (int to = 0; to < rail->hosts && status == CT_OK; to++)
        if (to != host)
            batch_send(&batch, rail_peer(rail, to), data);
    return status == CT_OK ? batch_wait(&batch) : status;
}
