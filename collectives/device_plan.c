/* SPDX-License-Identifier: Apache-2.0 */
/* device_plan.c - a collective as folds and copies, for who can reach the buffers of all ranks.
 *
 * Steps may be done in any order, also at once: none reads what another writes, since in place
 * means that a rank's own block is where it belongs already.  Bytes read and written, of n for each
 * of p ranks: broadcast n and p n, reduce p n and n, all_reduce p n and p n, reduce_scatter p p n
 * and p n, all_gather p n and p p n, gather and scatter p n and p n, all_to_all p p n and p p n. */
#include "collectives/device.h"
#include "runtime/flat.h"

int device_is_agreed(int operation)
{
    return operation == OPERATION_BROADCAST || operation == OPERATION_REDUCE
           || operation == OPERATION_ALL_REDUCE || operation == OPERATION_REDUCE_SCATTER
           || operation == OPERATION_GATHER || operation == OPERATION_ALL_GATHER
           || operation == OPERATION_SCATTER || operation == OPERATION_ALL_TO_ALL;
}

/* From one place to many; it need not go to where it is. */
static ct_status copy(struct call *c, const void *from, char *const *to, int count, size_t at,
                      step_fn *each)
{
    void *dst[FLAT_MOST];
    int dsts = 0;

    for (int i = 0; i < count; i++)
        if (to[i] + at != from)
            dst[dsts++] = to[i] + at;
    return dsts == 0 ? CT_OK : each(c, &(struct step){ dst, &from, dsts, 1, 0, call_bytes(c) });
}

/* Block `block` of all that is sent, into `dsts` places. */
static ct_status fold(struct call *c, const struct everybody *all, int block, char *const *to,
                      int dsts, step_fn *each)
{
    const void *src[FLAT_MOST];
    void *dst[FLAT_MOST];

    for (int i = 0; i < c->group->size; i++)
        src[i] = all->send[i] + (size_t)block * call_bytes(c);
    for (int i = 0; i < dsts; i++)
        dst[i] = to[i];
    return each(c, &(struct step){ dst, src, dsts, c->group->size, 1, call_bytes(c) });
}

ct_status device_plan(struct call *c, const struct everybody *all, step_fn *each)
{
    const int p = c->group->size, root = c->signature.root;
    const size_t n = call_bytes(c);
    ct_status status = CT_OK;

    switch (c->signature.operation) {
    case OPERATION_BROADCAST:
        return copy(c, all->recv[root], all->recv, p, 0, each);
    case OPERATION_REDUCE:
        return fold(c, all, 0, &all->recv[root], 1, each);
    case OPERATION_ALL_REDUCE:
        return fold(c, all, 0, all->recv, p, each);
    default:
        break;
    }
    for (int i = 0; i < p && status == CT_OK; i++)
        switch (c->signature.operation) {
        case OPERATION_REDUCE_SCATTER:
            status = fold(c, all, i, &all->recv[i], 1, each);
            break;
        case OPERATION_GATHER:
            status = copy(c, all->send[i], &all->recv[root], 1, (size_t)i * n, each);
            break;
        case OPERATION_ALL_GATHER:
            status = copy(c, all->send[i], all->recv, p, (size_t)i * n, each);
            break;
        case OPERATION_SCATTER:
            status = copy(c, all->send[root] + (size_t)i * n, &all->recv[i], 1, 0, each);
            break;
        default: /* all_to_all */
            for (int j = 0; j < p && status == CT_OK; j++)
                status =
                    copy(c, all->send[i] + (size_t)j * n, &all->recv[j], 1, (size_t)i * n, each);
        }
    return status;
}
