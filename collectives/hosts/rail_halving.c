/* SPDX-License-Identifier: Apache-2.0 */
/* rail_halving.c - in each step two leaves halve the range of the buffer that they have.
 *
 * In the step of bit b the leaf without that bit keeps the lower half, and the leaf with that bit
 * keeps the upper half.  Each leaf sends the other half, and folds what arrives into the half that
 * it keeps.  After all steps each leaf has the fold of a different range.  Then the steps run in
 * reverse order.  In an all-reduce each leaf receives the other half; in a reduce only the leaves
 * on the way to the root do.  A broadcast first hands halves down from the root, and then runs the
 * reverse steps of an all-reduce.
 * Cost: 2 log2(h) alpha + 2n(h-1)/h beta.  If h is not a power of two, the hosts of pairs also send
 * and receive n bytes once more.
 * [Rabenseifner 2004: recursive halving and doubling; van de Geijn: scatter and all-gather] */
#include "collectives/hosts/rail_tree.h"

#define MOST_STEPS 32

/* The ranges of this leaf, in elements.  Range 0 is the whole buffer, and range i is what the leaf
 * has after i halvings. */
struct ranges {
    const struct rail_tree *tree;
    struct span data;
    int steps; /* number of halvings so far */
    size_t begin[MOST_STEPS], end[MOST_STEPS];
};

static struct ranges halving_whole(const struct rail_tree *t, struct span data)
{
    return (
        struct ranges){ .tree = t, .data = data, .end = { data.bytes / t->rail->call->element } };
}

static struct span range_span(const struct ranges *r, size_t begin, size_t end)
{
    const size_t element = r->tree->rail->call->element;

    return span_of(r->data.data + begin * element, (end - begin) * element);
}

static struct span here(const struct ranges *r)
{
    return range_span(r, r->begin[r->steps], r->end[r->steps]);
}

/* Halves the range of this leaf.  Returns the half that the other leaf keeps, which differs from
 * this leaf in `bit`. */
static struct span halve(struct ranges *r, int bit)
{
    const size_t begin = r->begin[r->steps], end = r->end[r->steps];
    const size_t middle = begin + (end - begin) / 2;
    const int upper = (r->tree->leaf & bit) != 0;

    r->steps++;
    r->begin[r->steps] = upper ? middle : begin;
    r->end[r->steps] = upper ? end : middle;
    return upper ? range_span(r, begin, middle) : range_span(r, middle, end);
}

/* Returns the half that the other leaf of the last halving keeps. */
static struct span other_half(const struct ranges *r)
{
    const int step = r->steps;

    return r->begin[step] > r->begin[step - 1] ? range_span(r, r->begin[step - 1], r->begin[step])
                                               : range_span(r, r->end[step], r->end[step - 1]);
}

static ct_status fold_down(struct ranges *r, char *arrived)
{
    const struct rail_tree *t = r->tree;
    ct_status status = CT_OK;

    for (int bit = 1; bit < t->leaves && status == CT_OK; bit *= 2) {
        const int peer = rail_leaf_peer(t, t->leaf ^ bit);
        const struct span sent = halve(r, bit), kept = here(r);

        status = exchange(t->rail->call, peer, sent, peer, span_of(arrived, kept.bytes));
        if (status == CT_OK)
            rail_fold(t, kept, arrived, t->leaf ^ bit);
    }
    return status;
}

static ct_status gather_up(struct ranges *r)
{
    const struct rail_tree *t = r->tree;
    ct_status status = CT_OK;

    for (int bit = t->leaves / 2; bit > 0 && status == CT_OK; bit /= 2, r->steps--) {
        const int peer = rail_leaf_peer(t, t->leaf ^ bit);

        status = exchange(t->rail->call, peer, here(r), peer, other_half(r));
    }
    return status;
}

ct_status rail_all_reduce_halving(const struct rail *rail, struct span in, struct span data)
{
    const struct rail_tree t = rail_tree_of(rail, -1);
    struct ranges r = halving_whole(&t, data);
    char *arrived = call_scratch(rail->call, data.bytes);
    ct_status status;

    if (!arrived)
        return ct_fail(CT_ERR_NOMEM, "no memory for %zu bytes", data.bytes);
    copy_span(data, in.data);
    status = rail_join_pair(&t, data, arrived);
    if (status == CT_OK && !t.sits_out)
        status = fold_down(&r, arrived);
    if (status == CT_OK && !t.sits_out) {
        rail_average(rail, here(&r));
        status = gather_up(&r);
    }
    if (status == CT_OK)
        status = rail_tell_pair(&t, data);
    call_scratch_end(rail->call, arrived);
    return status;
}

/* Gathers the ranges at the root.  In each step, the leaf that differs from the root in the bit of
 * the step sends its range, and is done. */
static ct_status gather_at(struct ranges *r, int root)
{
    const struct rail_tree *t = r->tree;
    ct_status status = CT_OK;

    for (int bit = t->leaves / 2; bit > 0 && status == CT_OK; bit /= 2, r->steps--) {
        const int peer = rail_leaf_peer(t, t->leaf ^ bit);

        if ((t->leaf ^ root) & bit)
            return send_to(t->rail->call, peer, here(r));
        status = recv_from(t->rail->call, peer, other_half(r));
    }
    return status;
}

ct_status rail_reduce_halving(const struct rail *rail, int host, struct span data)
{
    const struct rail_tree t = rail_tree_of(rail, host);
    struct ranges r = halving_whole(&t, data);
    char *arrived = call_scratch(rail->call, data.bytes);
    ct_status status;

    if (!arrived)
        return ct_fail(CT_ERR_NOMEM, "no memory for %zu bytes", data.bytes);
    status = rail_join_pair(&t, data, arrived);
    if (status == CT_OK && !t.sits_out)
        status = fold_down(&r, arrived);
    if (status == CT_OK && !t.sits_out) {
        rail_average(rail, here(&r));
        status = gather_at(&r, rail_leaf_of(&t, host));
    }
    call_scratch_end(rail->call, arrived);
    return status;
}

/* Hands ranges down from the root.  A leaf receives its range in the step of the highest bit in
 * which its number differs from the root's. */
static ct_status scatter_from(struct ranges *r, int root)
{
    const struct rail_tree *t = r->tree;
    int has = t->leaf == root;
    ct_status status = CT_OK;

    for (int bit = 1; bit < t->leaves && status == CT_OK; bit *= 2) {
        const int peer = rail_leaf_peer(t, t->leaf ^ bit);
        const struct span others = halve(r, bit);
        const int above = (t->leaf ^ root) & -(2 * bit); /* higher bits that differ from the root */

        if (above)
            continue;
        status =
            has ? send_to(t->rail->call, peer, others) : recv_from(t->rail->call, peer, here(r));
        has = 1;
    }
    return status;
}

ct_status rail_broadcast_halving(const struct rail *rail, int host, struct span data)
{
    const struct rail_tree t = rail_tree_of(rail, host);
    struct ranges r = halving_whole(&t, data);
    ct_status status = CT_OK;

    if (!t.sits_out)
        status = scatter_from(&r, rail_leaf_of(&t, host));
    if (status == CT_OK && !t.sits_out)
        status = gather_up(&r);
    return status == CT_OK ? rail_tell_pair(&t, data) : status;
}
