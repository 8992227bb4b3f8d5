/* SPDX-License-Identifier: Apache-2.0 */
/* lane_doubling.c - in each step the distance between the hosts that exchange doubles.
 *
 * All-reduce: both of two leaves send what they have (recursive doubling); reduce: the one that is
 * farther from the root in that bit sends and is done (binomial tree); broadcast: the same
 * backwards.
 * Cost: ceil(log2 h) (alpha + n beta); where h is no power of two a step more, and for an
 * all-reduce two.  [Thakur, Rabenseifner & Gropp 2005] */
#include "collectives/hosts/lane_tree.h"

ct_status lane_all_reduce_doubling(const struct lane *lane, struct span in, struct span data)
{
    const struct lane_tree t = lane_tree_of(lane, -1);
    struct call *c = lane->call;
    char *arrived = call_scratch(c, data.bytes);
    ct_status status;

    if (!arrived)
        return ct_fail(CT_ERR_NOMEM, "no memory for %zu bytes", data.bytes);
    copy_span(data, in.data);
    status = lane_join_pair(&t, data, arrived);
    for (int bit = 1; bit < t.leaves && !t.sits_out && status == CT_OK; bit *= 2) {
        const int other = t.leaf ^ bit, peer = lane_leaf_peer(&t, other);

        status = exchange(c, peer, data, peer, span_of(arrived, data.bytes));
        if (status == CT_OK)
            lane_fold(&t, data, arrived, other);
    }
    if (status == CT_OK)
        status = lane_tell_pair(&t, data);
    call_scratch_end(c, arrived);
    if (status == CT_OK)
        lane_average(lane, data);
    return status;
}

ct_status lane_reduce_doubling(const struct lane *lane, int host, struct span data)
{
    const struct lane_tree t = lane_tree_of(lane, host);
    const int root = lane_leaf_of(&t, host);
    struct call *c = lane->call;
    char *arrived = call_scratch(c, data.bytes);
    ct_status status;

    if (!arrived)
        return ct_fail(CT_ERR_NOMEM, "no memory for %zu bytes", data.bytes);
    status = lane_join_pair(&t, data, arrived);
    for (int bit = 1; bit < t.leaves && !t.sits_out && status == CT_OK; bit *= 2) {
        const int other = t.leaf ^ bit;

        if ((t.leaf ^ root) & bit) {
            status = send_to(c, lane_leaf_peer(&t, other), data);
            break;
        }
        status = recv_from(c, lane_leaf_peer(&t, other), span_of(arrived, data.bytes));
        if (status == CT_OK)
            lane_fold(&t, data, arrived, other);
    }
    call_scratch_end(c, arrived);
    if (status == CT_OK && lane->host == host)
        lane_average(lane, data);
    return status;
}

ct_status lane_broadcast_doubling(const struct lane *lane, int host, struct span data)
{
    const int from_root = (lane->host - host + lane->hosts) % lane->hosts;
    ct_status status = CT_OK;
    int bit = 1;

    while (bit < lane->hosts && !(from_root & bit))
        bit *= 2;
    if (from_root > 0)
        status =
            recv_from(lane->call, lane_peer(lane, (from_root - bit + host) % lane->hosts), data);
    for (bit /= 2; bit > 0 && status == CT_OK; bit /= 2)
        if (from_root + bit < lane->hosts)
            status =
                send_to(lane->call, lane_peer(lane, (from_root + bit + host) % lane->hosts), data);
    return status;
}
