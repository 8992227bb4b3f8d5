/* SPDX-License-Identifier: Apache-2.0 */
/* host_topology.c - a group's hosts as two levels, from what runtime/group/group.c noted. */
#include "collectives/hosts/host_topology.h"

#include "runtime/types/dtype.h"

int host_ranks(const ct_group *g, int host)
{
    return g->node_end[host] - (host > 0 ? g->node_end[host - 1] : 0);
}

int host_rank(const ct_group *g, int host, int i)
{
    return g->fold_rank[(host > 0 ? g->node_end[host - 1] : 0) + i];
}

struct level level_of(const ct_group *g, int rank)
{
    struct level l = { .hosts = g->hosts };
    const int at = g->fold_at[rank];
    int beyond = g->hosts - 1; /* the host is not beyond this one */

    while (l.host < beyond) {
        const int middle = (l.host + beyond) / 2;

        if (at < g->node_end[middle])
            beyond = middle;
        else
            l.host = middle + 1;
    }
    l.ranks = host_ranks(g, l.host);
    l.rank = at - (g->node_end[l.host] - l.ranks);
    return l;
}

int hosts_are_alike(const ct_group *g)
{
    for (int host = 1; host < g->hosts; host++)
        if (host_ranks(g, host) != host_ranks(g, 0))
            return 0;
    return 1;
}

/* 16- and 8-bit floats are folded in f32, averages of integers in 64 bits. */
int hosts_can_fold(const struct call *c)
{
    const ct_dtype dtype = call_dtype(c);
    const enum order_rule rule = c->group->order_rule;

    if (dtype_is_integer(dtype))
        return call_op(c) != CT_AVG;
    if (rule != ORDER_NODES)
        return rule == ORDER_FAST;
    return !dtype_is_narrow(dtype);
}

static void fold_as(const struct call *c, void *dst, const void *const *sources, int count,
                    int nodes, size_t bytes)
{
    const struct fold sum = { .dtype = call_dtype(c),
                              .op = call_op(c) == CT_AVG ? CT_SUM : call_op(c),
                              .sources = count,
                              .nodes = nodes,
                              .node_end = nodes == 1 ? &count : NULL };

    if (bytes > 0)
        combine_fold_to(&sum, &dst, 1, sources, bytes / c->element, 0);
}

void fold_some(const struct call *c, void *dst, const void *const *sources, int count, size_t bytes)
{
    fold_as(c, dst, sources, count, 1, bytes);
}

void fold_hosts(const struct call *c, void *dst, const void *const *sources, size_t bytes)
{
    fold_as(c, dst, sources, c->group->hosts, c->group->hosts, bytes);
}
