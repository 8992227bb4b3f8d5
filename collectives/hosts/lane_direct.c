/* SPDX-License-Identifier: Apache-2.0 */
/* lane_direct.c - among few hosts each sends to each.
 *
 * Few bytes in one step (one_shot.c), many in two (two_shot.c); to a root as they are
 * (fold_at_root.c), from a root to all at once.
 * Cost: alpha + (h-1) (o + n beta) for a host that sends to all or gets from all; in two steps
 * 2 (alpha + (h-1) o) + 2n(h-1)/h beta. */
#include "collectives/core/peers.h"
#include "collectives/hosts/lane_tree.h"

static int peer_number(const void *arg, int host)
{
    return lane_peer(arg, host);
}

static ct_status fold_and_divide(struct call *c, const void *arg, struct span dst,
                                 const void *const *sources)
{
    fold_hosts(c, dst.data, sources, dst.bytes);
    lane_average(arg, dst);
    return CT_OK;
}

static struct peers peers_of(const struct lane *lane)
{
    return (struct peers){ .count = lane->hosts,
                           .own = lane->host,
                           .rank = peer_number,
                           .fold = fold_and_divide,
                           .arg = lane };
}

ct_status lane_all_reduce_direct(const struct lane *lane, struct span in, struct span out)
{
    const struct peers peers = peers_of(lane);

    return lane_takes_one_step(lane->hosts, in.bytes) ? one_shot(lane->call, &peers, in, out)
                                                      : two_shot(lane->call, &peers, in, out);
}

ct_status lane_reduce_direct(const struct lane *lane, int host, struct span data)
{
    const struct peers peers = peers_of(lane);

    return fold_at_root(lane->call, &peers, host, data, data);
}

ct_status lane_broadcast_direct(const struct lane *lane, int host, struct span data)
{
    struct batch batch;
    ct_status status;

    if (lane->host != host)
        return recv_from(lane->call, lane_peer(lane, host), data);
    status = batch_begin(&batch, lane->call, lane->hosts);
    for (int to = 0; to < lane->hosts && status == CT_OK; to++)
        if (to != host)
            batch_send(&batch, lane_peer(lane, to), data);
    return status == CT_OK ? batch_wait(&batch) : status;
}
