/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/nodes/slow_rank.h"

#define LEAST_CALLS 5  /* fewest collectives of a slow rank in a window; with none it is a stall */
#define LEAST_APART 20 /* least difference, in percentage points, from the others' shares */
#define TIMES_APART 3  /* least factor between the others' shares and the slow rank's share */

static int largest_of(const struct collective_shares *node)
{
    return node->most > node->least ? node->most : node->least;
}

/* Sets others_least and others_most to the smallest and largest share on all nodes but `node`; to
 * 100 and 0 if there is only one node. */
static void look_at_others(const struct collective_shares *shares, int nodes, int node,
                           struct slow_rank *slow)
{
    slow->others_least = 100;
    slow->others_most = 0;
    for (int i = 0; i < nodes; i++) {
        if (i == node)
            continue;
        if (shares[i].least < slow->others_least)
            slow->others_least = shares[i].least;
        if (largest_of(&shares[i]) > slow->others_most)
            slow->others_most = largest_of(&shares[i]);
    }
}

static int is_apart(const struct slow_rank *slow)
{
    return slow->others_least <= slow->others_most /* other ranks exist */
           && slow->others_least - slow->share >= LEAST_APART
           && slow->others_least >= TIMES_APART * slow->share;
}

struct slow_rank slow_rank_among(const struct collective_shares *shares, int nodes)
{
    const struct slow_rank none = { .rank = -1, .node = -1 };
    struct slow_rank slow = none;
    int node = 0;

    for (int i = 1; i < nodes; i++)
        if (shares[i].least < shares[node].least)
            node = i;
    if (nodes == 0 || shares[node].calls < LEAST_CALLS)
        return none;
    look_at_others(shares, nodes, node, &slow);
    slow.node = node;
    slow.share = largest_of(&shares[node]);
    if (shares[node].next <= shares[node].most && is_apart(&slow)) /* the node has several ranks */
        return slow;
    slow.node = -1;
    slow.rank = shares[node].rank;
    slow.share = shares[node].least;
    if (shares[node].next < slow.others_least)
        slow.others_least = shares[node].next;
    if (shares[node].most > slow.others_most)
        slow.others_most = shares[node].most;
    return is_apart(&slow) ? slow : none;
}
