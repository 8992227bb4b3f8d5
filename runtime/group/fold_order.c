/* SPDX-License-Identifier: Apache-2.0 */
/* fold_order.c - in which order the ranks of a group are folded.
 *
 * CT_ORDER, equal on all ranks:
 *
 *   nodes   each host's ranks in rank order, then the hosts in the order in which they first
 *           appear; the default.  What a host has folded can travel as one.
 *
 *   rank    all ranks in rank order, whatever the layout: the same bits on one host and on four.
 *
 *   fast    whatever an algorithm finds fastest; floats may differ from run to run of another size
 *           or layout, but never from rank to rank.
 *
 * It stands on the cards by which ranks meet, so that ranks told differently find out then. */
#include "runtime/group/group.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    [ORDER_NODES] = "nodes", [ORDER_RANK] = "rank", [ORDER_FAST] = "fast"
};
enum { RULES = sizeof names / sizeof *names };

static ct_status read_rule(ct_group *g)
{
    const char *word = getenv("CT_ORDER");

    g->order_rule = ORDER_NODES;
    g->order_is_wished = word && *word;
    if (!g->order_is_wished)
        return CT_OK;
    for (int i = 0; i < RULES; i++)
        if (!strcmp(word, names[i])) {
            g->order_rule = (enum order_rule)i;
            return CT_OK;
        }
    return ct_fail(CT_ERR_INVALID, "CT_ORDER=%s is no order; there are nodes, rank and fast", word);
}

static void by_node(ct_group *g)
{
    const struct peer *peers = g->mesh->peers;
    int filled = 0;

    for (int i = 0; i < g->size; i++) {
        const int node = peers[g->ranks[i]].node;
        int seen = 0;

        for (int j = 0; j < i && !seen; j++)
            seen = peers[g->ranks[j]].node == node;
        if (seen)
            continue;
        for (int j = i; j < g->size; j++)
            if (peers[g->ranks[j]].node == node)
                g->fold_rank[filled++] = j;
        g->node_end[g->hosts++] = filled;
    }
}

ct_status group_order(ct_group *g)
{
    ct_status status = CT_OK;

    g->fold_rank = calloc((size_t)g->size, sizeof *g->fold_rank);
    g->node_end = calloc((size_t)g->size, sizeof *g->node_end);
    if (!g->fold_rank || !g->node_end)
        return ct_fail(CT_ERR_NOMEM, "no memory for a group of %d ranks", g->size);
    if (g->root == g)
        status = read_rule(g);
    else {
        g->order_rule = g->root->order_rule;
        g->order_is_wished = g->root->order_is_wished;
    }
    by_node(g);
    g->order = (struct fold){ .sources = g->size, .nodes = g->hosts, .node_end = g->node_end };
    if (g->order_rule == ORDER_RANK) {
        g->order.nodes = 1; /* call_fold_to() takes that for the order of ranks */
        g->order.node_end = &g->size;
    }
    return status;
}
