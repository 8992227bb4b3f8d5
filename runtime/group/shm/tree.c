/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - the ranks of a large group count their arrivals in a round in a tree.
 *
 * If each of p ranks read the line of each other rank, they would read p (p-1) lines in a round.
 * So in a group of more than TREE_FROM ranks each rank counts its arrival in a leaf.  Each tree
 * node has up to TREE_RADIX ranks or nodes below it.  The rank that completes a node counts it in
 * the node above.  The rank that completes the root writes the number of the round into a word
 * that all other ranks wait for, and rings the ranks that sleep.  So no rank has to wake for the
 * arrival of each other rank.  The rank that completes a node also compares the calls of the
 * ranks below it.
 *
 * Cost of a round: one line written, log p counters incremented and one word read by each rank; p
 * doorbells checked by one rank.  [Yew, Tzeng, Lawrie, "Distributing hot-spot addressing in
 * large-scale multiprocessors", 1987: software combining trees] */
#include "runtime/group/shm/shm_group_internal.h"
#include "runtime/group/shm/shm_wait.h"

#define TREE_FROM 24 /* ranks; measured in docs/scale.md */
#define TREE_RADIX 16

struct tree_node {
    /* How many ranks or nodes below this node have been counted since the start. */
    _Alignas(CACHE_PAIR) _Atomic uint64_t arrivals;
};

/* Returns the number of nodes in the level above `count` ranks or nodes. */
static int tree_nodes_above(int count)
{
    return (count + TREE_RADIX - 1) / TREE_RADIX;
}

size_t shm_tree_bytes(int count)
{
    size_t nodes = 0;

    if (count <= TREE_FROM)
        return 0;
    do {
        count = tree_nodes_above(count);
        nodes += (size_t)count;
    } while (count > 1);
    return nodes * sizeof(struct tree_node);
}

int shm_ahead(int count)
{
    return count <= TREE_FROM ? SHM_AHEAD : 1;
}

/* Compares this rank's call with the call of the first rank below each child of `node`, which
 * this rank has completed.  The ranks below one child were compared when that child was
 * completed.  `count` is the number of children in the whole level, `ranks_each` the number of
 * ranks below each child. */
static ct_status tree_compare_below(const struct shm_group *f, int node, int count, int ranks_each)
{
    const int first = node * TREE_RADIX;
    ct_status status = CT_OK;

    for (int i = first; i < first + TREE_RADIX && i < count && status == CT_OK; i++)
        status = shm_compare(f, i * ranks_each, f->round);
    return status;
}

static void tree_complete(const struct shm_group *f, int gate)
{
    atomic_store_explicit(&f->head->all_in, f->round, memory_order_release);
    bell_fence();
    if (gate == NO_RANK)
        shm_ring_members(f);
    else
        shm_ring(f, gate);
}

ct_status shm_tree_count(const struct shm_group *f, int gate)
{
    struct tree_node *level = f->tree;
    int index = f->rank, count = f->size, ranks_each = 1;

    while (count > 1) {
        const int node = index / TREE_RADIX, rest = count - node * TREE_RADIX;
        const uint64_t below = (uint64_t)(rest < TREE_RADIX ? rest : TREE_RADIX);
        ct_status status;

        if (atomic_fetch_add(&level[node].arrivals, 1) + 1 != (f->round - f->before) * below)
            return CT_OK;
        status = tree_compare_below(f, node, count, ranks_each);
        if (status != CT_OK)
            return status;
        count = tree_nodes_above(count);
        level += count;
        index = node;
        ranks_each *= TREE_RADIX;
    }
    tree_complete(f, gate);
    return CT_OK;
}

ct_status shm_tree_wait(struct shm_group *f, uint64_t round)
{
    return shm_wait_until(f, &f->head->all_in, round, NO_RANK);
}
