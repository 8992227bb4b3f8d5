/* SPDX-License-Identifier: Apache-2.0 */
/* copy_plan.c - a collective as folds or copies, for who can reach the buffers of all ranks.
 *
 * The parts of a plan may be done in any order, also at once and by several devices: none reads
 * what another writes, since in place means that a rank's own block is where it belongs already.
 * Bytes read and written, of n for each of p ranks: broadcast n and p n, reduce p n and n,
 * all_reduce p n and p n, reduce_scatter p p n and p n, all_gather p n and p p n, gather and
 * scatter p n and p n, all_to_all p p n and p p n. */
#include "collectives/device/fused/copy_plan.h"

#include <stdlib.h>

/* ---- Everybody's blocks ------------------------------------------------------------ */

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

ct_status everybody_make(const struct call *c, struct everybody *all)
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

void everybody_free(struct everybody *all)
{
    free(all->send);
    *all = (struct everybody){ NULL, NULL, 0, 0 };
}

static struct span sent(const struct everybody *all, int rank, int block)
{
    return all->send[(size_t)rank * (size_t)all->sends + (size_t)block];
}

static struct span received(const struct everybody *all, int rank, int block)
{
    return all->recv[(size_t)rank * (size_t)all->recvs + (size_t)block];
}

/* ---- Parts -------------------------------------------------------------------------- */

/* Its sources are added next, then its destinations.  near: who has all of one or the other. */
static struct fold_part *add_part(struct plan *plan, int near, size_t count)
{
    struct fold_part *part = &plan->parts[plan->count];

    plan->near[plan->count++] = near;
    *part = (struct fold_part){ .src = (const void *const *)(plan->pointers + plan->used),
                                .count = count };
    return part;
}

static void add_source(struct plan *plan, struct span from)
{
    plan->pointers[plan->used++] = from.data;
}

static void add_destination(struct plan *plan, struct fold_part *part, struct span to)
{
    if (part->dsts++ == 0)
        part->dst = plan->pointers + plan->used;
    plan->pointers[plan->used++] = to.data;
}

/* Into block `block` of the ranks first ... first+ranks-1; it need not go to where it is. */
static void copy(const struct everybody *all, struct plan *plan, int near, struct span from,
                 int first, int ranks, int block)
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

/* Block `block` of what all send, for each of those ranks. */
static void fold(const struct call *c, const struct everybody *all, struct plan *plan, int block,
                 int first, int ranks)
{
    struct fold_part *part = add_part(plan, first, sent(all, 0, block).bytes / c->element);

    plan->folds = 1;
    for (int i = 0; i < c->group->size; i++)
        add_source(plan, sent(all, i, block));
    for (int i = first; i < first + ranks; i++)
        add_destination(plan, part, received(all, i, 0));
}

/* ---- Plans -------------------------------------------------------------------------- */

static void fill(const struct call *c, const struct everybody *all, struct plan *plan)
{
    const int p = c->group->size, root = c->signature.root;

    switch (c->signature.operation) {
    case OPERATION_BROADCAST:
        copy(all, plan, root, received(all, root, 0), 0, p, 0);
        return;
    case OPERATION_REDUCE:
        fold(c, all, plan, 0, root, 1);
        return;
    case OPERATION_ALL_REDUCE:
        fold(c, all, plan, 0, 0, p);
        return;
    default:
        break;
    }
    for (int i = 0; i < p; i++)
        switch (c->signature.operation) {
        case OPERATION_REDUCE_SCATTER:
        case OPERATION_REDUCE_SCATTER_V:
            fold(c, all, plan, i, i, 1);
            break;
        case OPERATION_GATHER:
        case OPERATION_GATHER_V:
            copy(all, plan, i, sent(all, i, 0), root, 1, i);
            break;
        case OPERATION_ALL_GATHER:
        case OPERATION_ALL_GATHER_V:
            copy(all, plan, i, sent(all, i, 0), 0, p, i);
            break;
        case OPERATION_SCATTER:
        case OPERATION_SCATTER_V:
            copy(all, plan, i, sent(all, root, i), i, 1, 0);
            break;
        default: /* all_to_all, all_to_all_v */
            for (int j = 0; j < p; j++)
                copy(all, plan, i, sent(all, i, j), j, 1, i);
        }
}

ct_status plan_make(const struct call *c, const struct everybody *all, struct plan *plan)
{
    const size_t p = (size_t)c->group->size;
    const size_t parts = all->sends * all->recvs > 1 ? p * p : p;

    *plan = (struct plan){ .parts = malloc(parts * sizeof *plan->parts),
                           .pointers = malloc((parts + p * (p + 1)) * sizeof *plan->pointers),
                           .near = malloc(parts * sizeof *plan->near) };
    if (!plan->parts || !plan->pointers || !plan->near)
        return ct_fail(CT_ERR_NOMEM, "no memory for a plan of %d ranks", c->group->size);
    fill(c, all, plan);
    plan->one = c->signature.operation == OPERATION_BROADCAST
                || c->signature.operation == OPERATION_REDUCE
                || c->signature.operation == OPERATION_ALL_REDUCE;
    return plan->unlike ? ct_fail(CT_ERR_UNSUPPORTED, "what one rank gives another has other bytes")
                        : CT_OK;
}

void plan_free(struct plan *plan)
{
    free(plan->parts);
    free(plan->pointers);
    free(plan->near);
    *plan = (struct plan){ 0 };
}
