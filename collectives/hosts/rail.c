/* SPDX-License-Identifier: Apache-2.0 */
/* rail.c - the ranks of a rail, and the place of each host in the tree. */
#include "collectives/hosts/rail_tree.h"

struct rail rail_of(struct call *c, const struct level *level)
{
    return (struct rail){ .call = c,
                          .hosts = level->hosts,
                          .host = level->host,
                          .number = level->rank,
                          .root_host = -1 };
}

struct rail rail_of_root(struct call *c, const struct level *level)
{
    const int root = c->signature.root;

    return (struct rail){ .call = c,
                          .hosts = level->hosts,
                          .host = level->host,
                          .root_host = level_of(c->group, root).host,
                          .root = root };
}

struct rail rail_of_ranks(struct call *c)
{
    return (struct rail){ .call = c,
                          .hosts = c->group->size,
                          .host = c->group->order.fold_at[c->group->rank],
                          .root_host = -1,
                          .has_all_ranks = 1 };
}

int rail_peer(const struct rail *rail, int host)
{
    if (rail->has_all_ranks)
        return rail->call->group->order.fold_rank[host];
    return host == rail->root_host ? rail->root : host_rank(rail->call->group, host, rail->number);
}

/* ---- The tree ------------------------------------------------------------------- */

struct rail_tree rail_tree_of(const struct rail *rail, int chosen)
{
    const int pairs = fold_pairs(rail->hosts), host = rail->host;
    struct rail_tree t = { .rail = rail,
                           .pairs = pairs,
                           .leaves = rail->hosts - pairs,
                           .leaf = host < 2 * pairs ? host / 2 : host - pairs,
                           .chosen = chosen,
                           .other = host < 2 * pairs ? host ^ 1 : -1 };

    t.sits_out = t.other >= 0 && rail_leaf_host(&t, t.leaf) != host;
    return t;
}

int rail_leaf_host(const struct rail_tree *t, int leaf)
{
    if (leaf >= t->pairs)
        return leaf + t->pairs;
    return t->chosen / 2 == leaf && t->chosen >= 0 ? t->chosen : 2 * leaf;
}

int rail_leaf_of(const struct rail_tree *t, int host)
{
    return host < 2 * t->pairs ? host / 2 : host - t->pairs;
}

int rail_leaf_peer(const struct rail_tree *t, int leaf)
{
    return rail_peer(t->rail, rail_leaf_host(t, leaf));
}

/* Folds `arrived` into `data`.  The lower host's data is the left operand. */
static void rail_fold_arrived(const struct rail_tree *t, struct span data, const char *arrived,
                              int we_are_lower)
{
    const void *sources[] = { we_are_lower ? data.data : arrived,
                              we_are_lower ? arrived : data.data };

    fold_some(t->rail->call, data.data, sources, 2, data.bytes);
}

ct_status rail_join_pair(const struct rail_tree *t, struct span data, char *arrived)
{
    struct call *c = t->rail->call;
    ct_status status;

    if (t->other < 0)
        return CT_OK;
    if (t->sits_out)
        return send_to(c, rail_peer(t->rail, t->other), data);
    status = recv_from(c, rail_peer(t->rail, t->other), span_of(arrived, data.bytes));
    if (status == CT_OK)
        rail_fold_arrived(t, data, arrived, t->rail->host < t->other);
    return status;
}

ct_status rail_tell_pair(const struct rail_tree *t, struct span data)
{
    if (t->other < 0)
        return CT_OK;
    return t->sits_out ? recv_from(t->rail->call, rail_peer(t->rail, t->other), data)
                       : send_to(t->rail->call, rail_peer(t->rail, t->other), data);
}

void rail_fold(const struct rail_tree *t, struct span data, const char *arrived, int other_leaf)
{
    rail_fold_arrived(t, data, arrived, t->leaf < other_leaf);
}

/* ---- All hosts are there ---------------------------------------------------------- */

/* Uses dissemination: after the step of distance d, a host knows that 2d hosts are in the call.
 * Cost: ceil(log2 h) alpha.  [Hensgen, Finkel & Manber 1988] */
ct_status rail_barrier(const struct rail *rail)
{
    const struct span nothing = { NULL, 0 };
    ct_status status = CT_OK;

    for (int distance = 1; distance < rail->hosts && status == CT_OK; distance *= 2)
        status =
            exchange(rail->call, rail_peer(rail, (rail->host + distance) % rail->hosts), nothing,
                     rail_peer(rail, (rail->host - distance + rail->hosts) % rail->hosts), nothing);
    return status;
}

/* ---- By name ---------------------------------------------------------------------- */

ct_status rail_all_reduce(const struct rail *rail, enum rail_way way, struct span in,
                          struct span out)
{
    return way == RAIL_DIRECT     ? rail_all_reduce_direct(rail, in, out)
           : way == RAIL_DOUBLING ? rail_all_reduce_doubling(rail, in, out)
                                  : rail_all_reduce_halving(rail, in, out);
}

ct_status rail_reduce(const struct rail *rail, enum rail_way way, int host, struct span data)
{
    return way == RAIL_DIRECT     ? rail_reduce_direct(rail, host, data)
           : way == RAIL_DOUBLING ? rail_reduce_doubling(rail, host, data)
           : way == RAIL_HALVING  ? rail_reduce_halving(rail, host, data)
                                  : rail_reduce_parts(rail, host, data);
}

ct_status rail_broadcast(const struct rail *rail, enum rail_way way, int host, struct span data)
{
    return way == RAIL_DIRECT     ? rail_broadcast_direct(rail, host, data)
           : way == RAIL_DOUBLING ? rail_broadcast_doubling(rail, host, data)
           : way == RAIL_HALVING  ? rail_broadcast_halving(rail, host, data)
                                  : rail_broadcast_chain(rail, host, data);
}
