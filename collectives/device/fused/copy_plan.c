/* SPDX-License-Identifier: Apache-2.0 */
/* copy_plan.c - plans a collective as folds or copies, for a leader that has mapped the buffers of
 * all ranks.  If there are several leaders, it also divides the bytes among the leaders.
 *
 * The parts of a plan may run in any order, also at the same time and on several devices, since no
 * part reads bytes that another part writes.  In a call in place, a rank's own block is in its
 * place already.  In an all_to_all in place, one part exchanges the blocks of two ranks.
 *
 * Bytes read and written, for blocks of n bytes and p ranks:
 *     broadcast        n        p n
 *     reduce           p n      n
 *     all_reduce       p n      p n
 *     reduce_scatter   p p n    p n
 *     all_gather       p n      p p n
 *     gather, scatter  p n      p n
 *     all_to_all       p p n    p p n
 *
 * Several leaders share a plan of one part by bytes.  Each leader reads its slice of all sources
 * and writes it to all destinations, so the links of all devices carry the same load.  If the plan
 * has a part for each block, the device of the block's only source or only destination runs the
 * part, so no byte crosses a link twice.  The nearest leader alone runs a part of few bytes, since
 * the other leaders would take longer to share it.
 *
 * A slice begins at a cache line of the devices, counted from the part's start.  So a slice begins
 * at a whole element, and is aligned like the part.  An element's bits do not depend on the leader
 * that folds it. */
#include "collectives/device/fused/copy_plan.h"

#include <stdlib.h>

#include "collectives/device/group/device_group.h"

/* ---- The blocks of all ranks -------------------------------------------------------- */

int plan_sends(const struct call *c)
{
    switch (c->signature.operation) {
    case OPERATION_BROADCAST:
        return 0;
    case OPERATION_REDUCE_SCATTER:
    case OPERATION_REDUCE_SCATTER_V:
    case OPERATION_SCATTER:
    case OPERATION_SCATTER_V:
    case OPERATION_ALL_TO_ALL:
    case OPERATION_ALL_TO_ALL_V:
        return c->group->size;
    default:
        return 1;
    }
}

int plan_recvs(const struct call *c)
{
    switch (c->signature.operation) {
    case OPERATION_GATHER:
    case OPERATION_GATHER_V:
    case OPERATION_ALL_GATHER:
    case OPERATION_ALL_GATHER_V:
    case OPERATION_ALL_TO_ALL:
    case OPERATION_ALL_TO_ALL_V:
        return c->group->size;
    default:
        return 1;
    }
}

ct_status all_blocks_make(const struct call *c, struct all_blocks *all)
{
    const size_t p = (size_t)c->group->size;

    all->sends = plan_sends(c);
    all->recvs = plan_recvs(c);
    all->send = calloc(p * (size_t)(all->sends + all->recvs), sizeof *all->send);
    if (!all->send)
        return ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d ranks", c->group->size);
    all->recv = all->send + p * (size_t)all->sends;
    return CT_OK;
}

void all_blocks_free(struct all_blocks *all)
{
    free(all->send);
    *all = (struct all_blocks){ NULL, NULL, 0, 0 };
}

static struct span copy_plan_sent(const struct all_blocks *all, int rank, int block)
{
    return all->send[(size_t)rank * (size_t)all->sends + (size_t)block];
}

static struct span received(const struct all_blocks *all, int rank, int block)
{
    return all->recv[(size_t)rank * (size_t)all->recvs + (size_t)block];
}

/* ---- Parts -------------------------------------------------------------------------- */

/* Adds a part.  The caller then adds the part's sources, and after them its destinations. near is
 * the rank that has the only source or the only destination. */
static struct fold_part *add_part(struct copy_plan *plan, int near, size_t count)
{
    struct fold_part *part = &plan->parts[plan->count];

    plan->near[plan->count++] = near;
    *part = (struct fold_part){ .src = (const void *const *)(plan->pointers + plan->used),
                                .count = count };
    return part;
}

static void add_source(struct copy_plan *plan, struct span from)
{
    plan->pointers[plan->used++] = from.data;
}

static void add_destination(struct copy_plan *plan, struct fold_part *part, struct span to)
{
    if (part->dsts++ == 0)
        part->dst = plan->pointers + plan->used;
    plan->pointers[plan->used++] = to.data;
}

/* Adds a part that copies `from` to block `block` of the ranks first ... first+ranks-1, except onto
 * itself. */
static void plan_copy(const struct all_blocks *all, struct copy_plan *plan, int near,
                      struct span from, int first, int ranks, int block)
{
    struct fold_part *part = add_part(plan, near, from.bytes);

    add_source(plan, from);
    for (int i = first; i < first + ranks; i++) {
        const struct span to = received(all, i, block);

        plan->unlike |= to.bytes != from.bytes;
        if (to.data != from.data)
            add_destination(plan, part, to);
    }
}

/* Adds a part that exchanges block j of rank i with block i of rank j.  At least one of the two
 * ranks works in place. */
static void plan_exchange(const struct all_blocks *all, struct copy_plan *plan, int i, int j)
{
    const struct span there = copy_plan_sent(all, i, j), back = copy_plan_sent(all, j, i);
    struct fold_part *part = add_part(plan, i, there.bytes);

    part->exchanges = 1;
    add_source(plan, there);
    add_source(plan, back);
    add_destination(plan, part, received(all, j, i));
    add_destination(plan, part, received(all, i, j));
    plan->unlike |= back.bytes != there.bytes || received(all, j, i).bytes != there.bytes
                    || received(all, i, j).bytes != there.bytes;
}

static int is_sent_in_place(const struct all_blocks *all, int rank, int block)
{
    const struct span from = copy_plan_sent(all, rank, block), to = received(all, rank, block);

    return from.bytes > 0 && from.bytes == to.bytes && from.data == to.data;
}

static void plan_all_to_all(const struct all_blocks *all, struct copy_plan *plan, int i, int j)
{
    if (i != j && (is_sent_in_place(all, i, j) || is_sent_in_place(all, j, i))) {
        plan_exchange(all, plan, i, j);
        return;
    }
    plan_copy(all, plan, i, copy_plan_sent(all, i, j), j, 1, i);
    if (i != j)
        plan_copy(all, plan, j, copy_plan_sent(all, j, i), i, 1, j);
}

/* Adds a part that folds block `block` of all ranks' send sides into the receive sides of the ranks
 * first ... first+ranks-1. */
static void plan_fold(const struct call *c, const struct all_blocks *all, struct copy_plan *plan,
                      int block, int first, int ranks)
{
    struct fold_part *part =
        add_part(plan, first, copy_plan_sent(all, 0, block).bytes / c->element);

    plan->folds = 1;
    for (int i = 0; i < c->group->size; i++)
        add_source(plan, copy_plan_sent(all, i, block));
    if (c->group->size == 1 && !c->scalar && call_dtype(c) != CT_BOOL
        && received(all, 0, 0).data == part->src[0])
        return; /* the sum of one rank's numbers is already in its place */
    for (int i = first; i < first + ranks; i++)
        add_destination(plan, part, received(all, i, 0));
}

/* ---- Plans -------------------------------------------------------------------------- */

static void plan_fill(const struct call *c, const struct all_blocks *all, struct copy_plan *plan)
{
    const int p = c->group->size, root = c->signature.root;

    switch (c->signature.operation) {
    case OPERATION_BROADCAST:
        plan_copy(all, plan, root, received(all, root, 0), 0, p, 0);
        return;
    case OPERATION_REDUCE:
        plan_fold(c, all, plan, 0, root, 1);
        return;
    case OPERATION_ALL_REDUCE:
        plan_fold(c, all, plan, 0, 0, p);
        return;
    default:
        break;
    }
    for (int i = 0; i < p; i++)
        switch (c->signature.operation) {
        case OPERATION_REDUCE_SCATTER:
        case OPERATION_REDUCE_SCATTER_V:
            plan_fold(c, all, plan, i, i, 1);
            break;
        case OPERATION_GATHER:
        case OPERATION_GATHER_V:
            plan_copy(all, plan, i, copy_plan_sent(all, i, 0), root, 1, i);
            break;
        case OPERATION_ALL_GATHER:
        case OPERATION_ALL_GATHER_V:
            plan_copy(all, plan, i, copy_plan_sent(all, i, 0), 0, p, i);
            break;
        case OPERATION_SCATTER:
        case OPERATION_SCATTER_V:
            plan_copy(all, plan, i, copy_plan_sent(all, root, i), i, 1, 0);
            break;
        default: /* all_to_all and all_to_all_v */
            for (int j = i; j < p; j++)
                plan_all_to_all(all, plan, i, j);
        }
}

ct_status plan_make(const struct call *c, const struct all_blocks *all, struct copy_plan *plan)
{
    const size_t p = (size_t)c->group->size;
    const size_t parts = all->sends * all->recvs > 1 ? p * p : p;

    *plan = (struct copy_plan){ .parts = malloc(parts * sizeof *plan->parts),
                                .pointers = malloc((parts + p * (p + 1)) * sizeof *plan->pointers),
                                .near = malloc(parts * sizeof *plan->near) };
    if (!plan->parts || !plan->pointers || !plan->near)
        return ct_fail(CT_ERR_NOMEM, "no memory for a plan of %d ranks", c->group->size);
    plan_fill(c, all, plan);
    plan->one = c->signature.operation == OPERATION_BROADCAST
                || c->signature.operation == OPERATION_REDUCE
                || c->signature.operation == OPERATION_ALL_REDUCE;
    return plan->unlike ? ct_fail(CT_ERR_UNSUPPORTED,
                                  "a rank receives another number of bytes than it is sent")
                        : CT_OK;
}

void plan_free(struct copy_plan *plan)
{
    free(plan->parts);
    free(plan->pointers);
    free(plan->near);
    *plan = (struct copy_plan){ 0 };
}

/* ---- Slices -------------------------------------------------------------------------- */

enum {
    LINE = 128,
    LEAST = 32 << 10 /* fewest bytes per leader; an estimate, not measured on two GPUs */
};

static size_t cut_at(size_t bytes, int slice, int slices)
{
    return slice == slices ? bytes : bytes / LINE * (size_t)slice / (size_t)slices * LINE;
}

struct slice slice_of(const struct leaders *l, int near, int shared, size_t bytes)
{
    const int first = l->of[near];
    const int own = (l->mine - first + l->count) % l->count; /* distance from the nearest leader */
    int slices = 1;
    size_t at;

    if (shared && bytes / LEAST >= 2)
        slices = bytes / LEAST < (size_t)l->count ? (int)(bytes / LEAST) : l->count;
    if (own >= slices)
        return (struct slice){ 0, 0 };
    at = cut_at(bytes, own, slices);
    return (struct slice){ at, cut_at(bytes, own + 1, slices) - at };
}

/* Adds `bytes` to all pointers of a part.  The pointers are stored one after the other. */
static void move_part(const struct copy_plan *plan, int part, size_t pointers, size_t bytes)
{
    const void *const *const first = plan->parts[part].src;

    for (size_t i = 0; i < pointers; i++)
        plan->pointers[(size_t)(first - (const void *const *)plan->pointers) + i] =
            (char *)(uintptr_t)first[i] + bytes;
}

void plan_cut(const struct leaders *l, struct copy_plan *plan, size_t element)
{
    const size_t each = plan->folds ? element : 1;
    int left = 0;

    for (int i = 0; i < plan->count; i++) {
        struct fold_part *const part = &plan->parts[i];
        const struct slice slice = slice_of(l, plan->near[i], plan->one, part->count * each);

        if (slice.bytes == 0)
            continue;
        if (slice.at > 0)
            move_part(plan, i, (size_t)(plan->folds ? l->ranks : 1) + (size_t)part->dsts, slice.at);
        part->count = slice.bytes / each;
        plan->parts[left++] = *part;
    }
    plan->count = left;
}
