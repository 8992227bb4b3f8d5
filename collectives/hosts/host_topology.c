/* SPDX-License-Identifier: Apache-2.0 */
/* host_topology.c - the hosts of a group as two levels, read from the order that
 * runtime/group/group.c has set. */
#include "collectives/hosts/host_topology.h"

#include "runtime/types/dtype.h"

int host_ranks(const ct_group *g, int host)
{
    return g->order.node_end[host] - (host > 0 ? g->order.node_end[host - 1] : 0);
}

int host_rank(const ct_group *g, int host, int i)
{
    return g->order.fold_rank[(host > 0 ? g->order.node_end[host - 1] : 0) + i];
}

struct level level_of(const ct_group *g, int rank)
{
    struct level l = { .hosts = g->order.hosts };
    const int at = g->order.fold_at[rank];
    int beyond = g->order.hosts - 1; /* the host is at most this one */

    while (l.host < beyond) {
        const int middle = (l.host + beyond) / 2;

        if (at < g->order.node_end[middle])
            beyond = middle;
        else
            l.host = middle + 1;
    }
    l.ranks = host_ranks(g, l.host);
    l.rank = at - (g->order.node_end[l.host] - l.ranks);
    return l;
}

int hosts_are_alike(const ct_group *g)
{
    return g->order.host_least == g->order.host_most;
}

static ct_dtype partial_dtype(const struct call *c)
{
    const ct_dtype dtype = call_dtype(c);
    const int is_wide = dtype_is_integer(dtype)
                            ? call_op(c) == CT_AVG
                            : dtype_is_narrow(dtype) && c->group->order.rule == ORDER_NODES;

    return is_wide ? dtype_accumulator(dtype) : dtype;
}

int has_wide_partials(const struct call *c)
{
    return partial_dtype(c) != call_dtype(c);
}

int hosts_can_fold(const struct call *c)
{
    if (has_wide_partials(c) && c->group->size == c->group->order.hosts
        && c->group->order.hosts <= HOSTS_MOST_DIRECT)
        return 0;
    return dtype_is_integer(call_dtype(c)) || c->group->order.rule != ORDER_RANK;
}

struct call call_of_partials(const struct call *c)
{
    struct call partials = *c;

    partials.whole = call_compared(c);
    partials.signature.dtype = (uint8_t)partial_dtype(c);
    partials.element = ct_dtype_size(partial_dtype(c));
    return partials;
}

size_t partial_bytes(const struct call *c, size_t bytes)
{
    return bytes / c->element * call_of_partials(c).element;
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

void fold_partials(const struct call *c, void *dst, const void *const *sources, int count,
                   size_t bytes)
{
    const struct fold fold = {
        .dtype = call_dtype(c), .op = call_op(c), .sources = count, .nodes = 1, .node_end = &count
    };

    if (has_wide_partials(c))
        combine_fold_wide(&fold, dst, sources, bytes / c->element);
    else
        fold_some(c, dst, sources, count, bytes);
}

void round_partials(const struct call *c, struct span dst, const void *partials)
{
    if (has_wide_partials(c))
        combine_narrow(call_dtype(c), dst.data, partials, dst.bytes / c->element);
    else
        copy_span(dst, partials);
}

void fold_hosts(const struct call *c, void *dst, const void *const *sources, size_t bytes)
{
    fold_as(c, dst, sources, c->group->order.hosts, c->group->order.hosts, bytes);
}
