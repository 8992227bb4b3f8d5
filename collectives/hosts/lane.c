/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c - which ranks are in a lane, and where each host stands in the tree. */
#include "collectives/hosts/lane_tree.h"

struct lane lane_of(struct call *c, const struct level *level)
{
    return (struct lane){ .call = c,
                          .hosts = level->hosts,
                          .host = level->host,
                          .number = level->rank,
                          .root_host = -1 };
}

struct lane lane_of_root(struct call *c, const struct level *level)
{
    const int root = c->signature.root;

    return (struct lane){ .call = c,
                          .hosts = level->hosts,
                          .host = level->host,
                          .root_host = level_of(c->group, root).host,
                          .root = root };
}

struct lane lane_of_ranks(struct call *c)
{
    return (struct lane){ .call = c,
                          .hosts = c->group->size,
                          .host = c->group->fold_at[c->group->rank],
                          .root_host = -1,
                          .has_all_ranks = 1 };
}

int lane_peer(const struct lane *lane, int host)
{
    if (lane->has_all_ranks)
        return lane->call->group->fold_rank[host];
    return host == lane->root_host ? lane->root : host_rank(lane->call->group, host, lane->number);
}

/* ---- The tree ------------------------------------------------------------------- */

struct lane_tree lane_tree_of(const struct lane *lane, int chosen)
{
    const int pairs = fold_pairs(lane->hosts), host = lane->host;
    struct lane_tree t = { .lane = lane,
                           .pairs = pairs,
                           .leaves = lane->hosts - pairs,
                           .leaf = host < 2 * pairs ? host / 2 : host - pairs,
                           .chosen = chosen,
                           .other = host < 2 * pairs ? host ^ 1 : -1 };

    t.sits_out = t.other >= 0 && lane_leaf_host(&t, t.leaf) != host;
    return t;
}

int lane_leaf_host(const struct lane_tree *t, int leaf)
{
    if (leaf >= t->pairs)
        return leaf + t->pairs;
    return t->chosen / 2 == leaf && t->chosen >= 0 ? t->chosen : 2 * leaf;
}

int lane_leaf_of(const struct lane_tree *t, int host)
{
    return host < 2 * t->pairs ? host / 2 : host - t->pairs;
}

int lane_leaf_peer(const struct lane_tree *t, int leaf)
{
    return lane_peer(t->lane, lane_leaf_host(t, leaf));
}

/* data = lower op higher: the one of them that arrived, and data. */
static void fold_arrived(const struct lane_tree *t, struct span data, const char *arrived,
                         int we_are_lower)
{
    const void *sources[] = { we_are_lower ? data.data : arrived,
                              we_are_lower ? arrived : data.data };

    fold_some(t->lane->call, data.data, sources, 2, data.bytes);
}

ct_status lane_join_pair(const struct lane_tree *t, struct span data, char *arrived)
{
    struct call *c = t->lane->call;
    ct_status status;

    if (t->other < 0)
        return CT_OK;
    if (t->sits_out)
        return send_to(c, lane_peer(t->lane, t->other), data);
    status = recv_from(c, lane_peer(t->lane, t->other), span_of(arrived, data.bytes));
    if (status == CT_OK)
        fold_arrived(t, data, arrived, t->lane->host < t->other);
    return status;
}

ct_status lane_tell_pair(const struct lane_tree *t, struct span data)
{
    if (t->other < 0)
        return CT_OK;
    return t->sits_out ? recv_from(t->lane->call, lane_peer(t->lane, t->other), data)
                       : send_to(t->lane->call, lane_peer(t->lane, t->other), data);
}

void lane_fold(const struct lane_tree *t, struct span data, const char *arrived, int other_leaf)
{
    fold_arrived(t, data, arrived, t->leaf < other_leaf);
}

/* ---- All hosts are there ---------------------------------------------------------- */

/* Dissemination: after the step of distance d a host knows of 2d hosts that they are in the call.
 * Cost: ceil(log2 h) alpha.  [Hensgen, Finkel & Manber 1988] */
ct_status lane_barrier(const struct lane *lane)
{
    const struct span nothing = { NULL, 0 };
    ct_status status = CT_OK;

    for (int distance = 1; distance < lane->hosts && status == CT_OK; distance *= 2)
        status =
            exchange(lane->call, lane_peer(lane, (lane->host + distance) % lane->hosts), nothing,
                     lane_peer(lane, (lane->host - distance + lane->hosts) % lane->hosts), nothing);
    return status;
}

/* ---- By name ---------------------------------------------------------------------- */

ct_status lane_all_reduce(const struct lane *lane, enum lane_way way, struct span in,
                          struct span out)
{
    return way == LANE_DIRECT     ? lane_all_reduce_direct(lane, in, out)
           : way == LANE_DOUBLING ? lane_all_reduce_doubling(lane, in, out)
                                  : lane_all_reduce_halving(lane, in, out);
}

ct_status lane_reduce(const struct lane *lane, enum lane_way way, int host, struct span data)
{
    return way == LANE_DIRECT     ? lane_reduce_direct(lane, host, data)
           : way == LANE_DOUBLING ? lane_reduce_doubling(lane, host, data)
                                  : lane_reduce_halving(lane, host, data);
}

ct_status lane_broadcast(const struct lane *lane, enum lane_way way, int host, struct span data)
{
    return way == LANE_DIRECT     ? lane_broadcast_direct(lane, host, data)
           : way == LANE_DOUBLING ? lane_broadcast_doubling(lane, host, data)
           : way == LANE_HALVING  ? lane_broadcast_halving(lane, host, data)
                                  : lane_broadcast_chain(lane, host, data);
}
