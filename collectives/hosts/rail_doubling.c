/* SPDX-License-Identifier: Apache-2.0 */
/* rail_doubling.c - the distance between the hosts that exchange doubles in each step.
 *
 * In an all-reduce two leaves send each other what they have (recursive doubling).  In a reduce,
 * the leaf that differs from the root in the bit of the step sends, and is done (binomial tree).  A
 * broadcast takes the steps of a binomial tree in reverse order.
 * Cost: floor(log2 h) (alpha + n beta).  If h is not a power of two, there is one step more, and in
 * an all-reduce there are two more.  [Thakur, Rabenseifner & Gropp 2005] */
#include "collectives/hosts/rail_tree.h"

ct_status rail_all_reduce_doubling(const struct rail *rail, struct span in, struct span data)
{
    const struct rail_tree t = rail_tree_of(rail, -1);
    struct call *c = rail->call;
    char *arrived = call_scratch(c, data.bytes);
    ct_status status;

    if (!arrived)
        return ct_fail(CT_ERR_NOMEM, "no memory for %zu bytes", data.bytes);
    copy_span(data, in.data);
    status = rail_join_pair(&t, data, arrived);
    for (int bit = 1; bit < t.leaves && !t.sits_out && status == CT_OK; bit *= 2) {
        const int other = t.leaf ^ bit, peer = rail_leaf_peer(&t, other);

        status = exchange(c, peer, data, peer, span_of(arrived, data.bytes));
        if (status == CT_OK)
            rail_fold(&t, data, arrived, other);
    }
    if (status == CT_OK)
        status = rail_tell_pair(&t, data);
    call_scratch_end(c, arrived);
    if (status == CT_OK)
        rail_average(rail, data);
    return status;
}

ct_status rail_reduce_doubling(const struct rail *rail, int host, struct span data)
{
    const struct rail_tree t = rail_tree_of(rail, host);
    const int root = rail_leaf_of(&t, host);
    struct call *c = rail->call;
    char *arrived = call_scratch(c, data.bytes);
    ct_status status;

    if (!arrived)
        return ct_fail(CT_ERR_NOMEM, "no memory for %zu bytes", data.bytes);
    status = rail_join_pair(&t, data, arrived);
    for (int bit = 1; bit < t.leaves && !t.sits_out && status == CT_OK; bit *= 2) {
        const int other = t.leaf ^ bit;

        if ((t.leaf ^ root) & bit) {
            status = send_to(c, rail_leaf_peer(&t, other), data);
            break;
        }
        status = recv_from(c, rail_leaf_peer(&t, other), span_of(arrived, data.bytes));
        if (status == CT_OK)
            rail_fold(&t, data, arrived, other);
    }
    call_scratch_end(c, arrived);
    if (status == CT_OK && rail->host == host)
        rail_average(rail, data);
    return status;
}

ct_status rail_broadcast_doubling(const struct rail *rail, int host, struct span data)
{
    const int from_root = (rail->host - host + rail->hosts) % rail->hosts;
    ct_status status = CT_OK;
    int bit = 1;

    while (bit < rail->hosts && !(from_root & bit))
        bit *= 2;
    if (from_root > 0)
        status =
            recv_from(rail->call, rail_peer(rail, (from_root - bit + host) % rail->hosts), data);
    for (bit /= 2; bit > 0 && status == CT_OK; bit /= 2)
        if (from_root + bit < rail->hosts)
            status =
                send_to(rail->call, rail_peer(rail, (from_root + bit + host) % rail->hosts), data);
    return status;
}
