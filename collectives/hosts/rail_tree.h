/* SPDX-License-Identifier: Apache-2.0 */
/* rail_tree.h - the hosts of a rail as leaves of the written order's tree (combine.h).
 *
 * A leaf is a host, or a pair of hosts; leaves are a power of two.  In the step of bit b the leaves
 * whose numbers differ in that bit alone exchange: after the steps of bits 1, 2, ..., b each has
 * the fold of the 2b leaves around it, the lower neighbour's always on the left.  So all of them
 * compute the same bits.
 *
 * Of a pair one host takes part, the other one gives it what it has first and is told the result at
 * the end. */
#ifndef COLLECTIVES_HOSTS_RAIL_TREE_H
#define COLLECTIVES_HOSTS_RAIL_TREE_H

#include "collectives/hosts/rail.h"

struct rail_tree {
    const struct rail *rail;
    int pairs, leaves, leaf;
    int chosen;   /* the host that takes part, if it is one of a pair; -1: the first of each does */
    int other;    /* of this host's pair; -1: it is in none */
    int sits_out; /* the other one takes part */
};

struct rail_tree rail_tree_of(const struct rail *rail, int chosen);

int rail_leaf_of(const struct rail_tree *tree, int host);
int rail_leaf_host(const struct rail_tree *tree, int leaf);
int rail_leaf_peer(const struct rail_tree *tree, int leaf); /* its group rank in the rail */

/* Before the steps: the host of a pair that takes part folds the data of both.  arrived: room for
 * as many bytes. */
ct_status rail_join_pair(const struct rail_tree *tree, struct span data, char *arrived);
/* After the steps: that host sends the data to the other host of the pair. */
ct_status rail_tell_pair(const struct rail_tree *tree, struct span data);

/* data = fold of data and of what arrived from that leaf. */
void rail_fold(const struct rail_tree *tree, struct span data, const char *arrived, int other_leaf);

/* data: the fold of the tree; AVG: divided from here on. */
static inline void rail_average(const struct rail *rail, struct span data)
{
    const struct call *c = rail->call;

    if (call_op(c) == CT_AVG)
        combine_divide(call_dtype(c), data.data, data.bytes / c->element, c->group->size);
}

#endif
