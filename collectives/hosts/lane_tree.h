/* SPDX-License-Identifier: Apache-2.0 */
/* lane_tree.h - the hosts of a lane as leaves of the written order's tree (combine.h).
 *
 * A leaf is a host, or a pair of hosts; leaves are a power of two.  In the step of bit b the leaves
 * whose numbers differ in that bit alone exchange: after the steps of bits 1, 2, ..., b each has
 * the fold of the 2b leaves around it, the lower neighbour's always on the left.  So all of them
 * compute the same bits.
 *
 * Of a pair one host takes part, the other one gives it what it has first and is told the result at
 * the end. */
#ifndef COLLECTIVES_HOSTS_LANE_TREE_H
#define COLLECTIVES_HOSTS_LANE_TREE_H

#include "collectives/hosts/lane.h"

struct lane_tree {
    const struct lane *lane;
    int pairs, leaves, leaf;
    int chosen;   /* the host that takes part, if it is one of a pair; -1: the first of each does */
    int other;    /* of this host's pair; -1: it is in none */
    int sits_out; /* the other one takes part */
};

struct lane_tree lane_tree_of(const struct lane *lane, int chosen);

int lane_leaf_of(const struct lane_tree *tree, int host);
int lane_leaf_host(const struct lane_tree *tree, int leaf);
int lane_leaf_peer(const struct lane_tree *tree, int leaf); /* its group rank in the lane */

/* Before the steps: what takes part folds the pair's data.  arrived: room for as many bytes. */
ct_status lane_join_pair(const struct lane_tree *tree, struct span data, char *arrived);
/* After them: the other one gets data. */
ct_status lane_tell_pair(const struct lane_tree *tree, struct span data);

/* data = fold of data and of what arrived from that leaf. */
void lane_fold(const struct lane_tree *tree, struct span data, const char *arrived, int other_leaf);

/* data: the fold of the tree; AVG: divided from here on. */
static inline void lane_average(const struct lane *lane, struct span data)
{
    const struct call *c = lane->call;

    if (call_op(c) == CT_AVG)
        combine_divide(call_dtype(c), data.data, data.bytes / c->element, c->group->size);
}

#endif
