/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_nodes.c - reduce over several hosts.  Each host folds its ranks' inputs, then the hosts
 * fold their partial results on the way to the root.
 *
 * Few bytes: one rank of each host folds the inputs of its host.  On the root's host this rank is
 * the root.  Many bytes: rank i of each host folds slice i and sends it on, and the root collects
 * the slices from the ranks of its host.
 * Cost: n bytes written and read on each host, and the cost of the rail (rail.h). */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/rail.h"

#define PIECE ((size_t)8 << 20)      /* bytes that one step handles; limits the scratch memory */
#define ONE_SLICE ((size_t)64 << 10) /* minimum size of a slice in bytes */

static int reduce_nodes_fits(const struct call *c)
{
    return c->group->order.hosts > 1 && hosts_can_fold(c);
}

static int reduce_few_hosts_fit(const struct call *c)
{
    return reduce_nodes_fits(c) && c->group->order.hosts <= HOSTS_MOST_DIRECT;
}

/* The buffers for one piece of the call. */
struct buffers {
    struct span in, out; /* out: the root's output; on other ranks scratch of the same size */
    char *partials;      /* partial results of the piece; equal to out if they fit there */
};

static ct_status reduce_one_piece(struct call *c, const struct level *l, const struct buffers *b)
{
    const enum rail_way way = (enum rail_way)c->algorithm->way;
    const int owners = host_slices_of(c->group, b->in.bytes, ONE_SLICE);
    const size_t count = b->in.bytes / c->element;
    struct call of_partials = call_of_partials(c);
    const struct rail rooted = rail_of_root(&of_partials, l);
    const struct rail rail = owners > 1 ? rail_of(&of_partials, l) : rooted;
    const int on_root_host = l->host == rooted.root_host;
    const int root = on_root_host ? level_of(c->group, rooted.root).rank : 0;
    const struct host_slices slices[] = { { b->in.data, count, owners },
                                          { b->partials, count, owners },
                                          { b->out.data, count, owners } };
    struct host_parts parts[3];
    int own;
    ct_status status;

    for (int i = 0; i < 3; i++)
        parts[i] = (struct host_parts){ .owners = owners,
                                        .first = owners > 1 ? 0 : root,
                                        .spans = 1,
                                        .span = host_slice,
                                        .arg = &slices[i] };
    own = host_owner(l, &parts[0]);
    if (l->ranks == 1 && !on_root_host && way == RAIL_DIRECT && !has_wide_partials(c))
        return rail_reduce(&rooted, way, rooted.root_host, b->in); /* this rank only sends */
    status = host_fold(c, l, &parts[0], &parts[1]);
    if (status == CT_OK && own >= 0)
        status =
            rail_reduce(&rail, way, rooted.root_host, host_slice(&of_partials, &slices[1], own, 0));
    if (status == CT_OK && own >= 0 && on_root_host)
        round_partials(c, host_slice(c, &slices[2], own, 0),
                       host_slice(&of_partials, &slices[1], own, 0).data);
    return status == CT_OK && on_root_host && owners > 1 ? host_collect(c, l, &parts[2], root)
                                                         : status;
}

static ct_status reduce_nodes_run(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0);
    const struct level l = level_of(c->group, c->group->rank);
    const struct call of_partials = call_of_partials(c);
    const size_t most = in.bytes < PIECE ? in.bytes : PIECE;
    const int is_root = call_is_root(c), is_wide = has_wide_partials(c);
    char *room = is_root ? NULL : call_scratch(c, most);
    char *wide = is_wide ? call_scratch(c, most / c->element * of_partials.element) : NULL;
    size_t at = 0;
    ct_status status = CT_OK;

    if ((!room && !is_root) || (!wide && is_wide))
        status = ct_fail(CT_ERR_NOMEM, "no memory for a partial result of %zu bytes", most);
    do {
        const size_t n = piece_of(in.bytes, at, PIECE);
        char *const out = room ? room : (char *)c->recv.base + at;
        const struct buffers b = { span_of(in.data + at, n), span_of(out, n), wide ? wide : out };

        if (status == CT_OK)
            status = reduce_one_piece(c, &l, &b);
        at += PIECE;
    } while (status == CT_OK && at < in.bytes);
    call_scratch_end(c, wide);
    call_scratch_end(c, room);
    return status;
}

static double reduce_nodes_cost(const struct call *c, int way)
{
    return rail_reduce_cost(c, (enum rail_way)way, partial_bytes(c, call_bytes(c)));
}

const struct algorithm reduce_nodes = { .name = "nodes",
                                        .fits = reduce_few_hosts_fit,
                                        .run = reduce_nodes_run,
                                        .cost = reduce_nodes_cost,
                                        .way = RAIL_DIRECT };
const struct algorithm reduce_nodes_doubling = { .name = "nodes_doubling",
                                                 .fits = reduce_nodes_fits,
                                                 .run = reduce_nodes_run,
                                                 .cost = reduce_nodes_cost,
                                                 .way = RAIL_DOUBLING };
const struct algorithm reduce_nodes_parts = { .name = "nodes_parts",
                                              .fits = reduce_few_hosts_fit,
                                              .run = reduce_nodes_run,
                                              .cost = reduce_nodes_cost,
                                              .way = RAIL_PARTS };
const struct algorithm reduce_nodes_halving = { .name = "nodes_halving",
                                                .fits = reduce_nodes_fits,
                                                .run = reduce_nodes_run,
                                                .cost = reduce_nodes_cost,
                                                .way = RAIL_HALVING };
