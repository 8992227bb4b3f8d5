/* SPDX-License-Identifier: Apache-2.0 */
/* rail_tree.h - the hosts of a rail as leaves of the tree in which reductions fold (combine.h).
 *
 * A leaf is one host or a pair of hosts, and the number of leaves is a power of two.  In the step
 * of bit b, two leaves exchange if their numbers differ in that bit alone.  After the steps of bits
 * 1, 2, ..., b each leaf has the fold of the 2b leaves around it.  The lower leaf's data is always
 * the left operand, so all leaves compute the same bits.
 *
 * One host of each pair takes part in the steps, and the other host sits out.  The host that sits
 * out sends its data to the other before the steps, and receives the result after them. */
#ifndef COLLECTIVES_HOSTS_RAIL_TREE_H
#define COLLECTIVES_HOSTS_RAIL_TREE_H

#include "collectives/hosts/rail.h"

struct rail_tree {
    const struct rail *rail;
    int pairs, leaves, leaf;
    /* The host that takes part, if it is in a pair.  In all other pairs, and if this is -1, the
     * first host takes part. */
    int chosen;
    int other;    /* the other host of this host's pair; -1 if this host is in no pair */
    int sits_out; /* 1 if the other host takes part, not this host */
};

struct rail_tree rail_tree_of(const struct rail *rail, int chosen);

int rail_leaf_of(const struct rail_tree *tree, int host);
int rail_leaf_host(const struct rail_tree *tree, int leaf);
int rail_leaf_peer(const struct rail_tree *tree, int leaf); /* group rank of the leaf's host */

/* Before the steps, the host that sits out of a pair sends its data to the other host, which folds
 * this data into `data`.  arrived: scratch of data.bytes bytes. */
ct_status rail_join_pair(const struct rail_tree *tree, struct span data, char *arrived);
/* After the steps, the host that takes part sends `data` to the host of its pair that sits out. */
ct_status rail_tell_pair(const struct rail_tree *tree, struct span data);

/* Folds `arrived`, the data of other_leaf, into `data`.  The lower leaf's data is the left operand.
 */
void rail_fold(const struct rail_tree *tree, struct span data, const char *arrived, int other_leaf);

/* Divides the fold of all hosts by the number of ranks, if the op is AVG. */
static inline void rail_average(const struct rail *rail, struct span data)
{
    const struct call *c = rail->call;

    if (call_op(c) == CT_AVG)
        combine_divide(call_dtype(c), data.data, data.bytes / c->element, c->group->size);
}

#endif
