/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - each rank has a device of its own, and NCCL makes the call between them.
 *
 *   the group's first: can it be (device_table.c)?  then all join (nccl_session.c)
 *   -> each call: can every rank, with the buffers that it gave?  all of them know, before any
 * begins
 *   -> it is enqueued, and waited for (nccl_session.c)
 *
 * So nothing is ever enqueued that waits for a rank which is not there.  The round costs some
 * microseconds on a host and some tens between hosts; it is what finds ranks that make different
 * calls, which to NCCL is a hang.
 *
 * NCCL makes what it makes with our contract's bits, and sums of floats in an order of its own
 * (CT_ORDER=fast, or where nobody said CT_ORDER); what is missing goes another way: */
#include "collectives/device/device_call.h"

#include <stdio.h>
#include <stdlib.h>

#include "collectives/core/registry.h"
#include "runtime/util/log.h"

enum can { CANT, SAME_BITS, OWN_ORDER };

/* It knows no 16-bit integers, no bit operations and no complex products.  It sums f8 and drops a
 * NaN in MIN and MAX, divides the average of integers and takes "true" for any byte, all unlike
 * ct.h. */
static enum can can_fold(ct_dtype dtype, ct_op op)
{
    switch ((int)dtype) {
    case CT_I8:
    case CT_U8:
    case CT_I32:
    case CT_U32:
    case CT_I64:
    case CT_U64:
        return op == CT_SUM || op == CT_PRODUCT || op == CT_MIN || op == CT_MAX ? SAME_BITS : CANT;
    case CT_F16:
    case CT_BF16:
    case CT_F32:
    case CT_F64:
        return op == CT_SUM || op == CT_PRODUCT || op == CT_AVG ? OWN_ORDER : CANT;
    case CT_C64:
    case CT_C128: /* twice as many parts */
        return op == CT_SUM || op == CT_AVG ? OWN_ORDER : CANT;
    default:
        return CANT;
    }
}

int nccl_can(const struct call *c)
{
    const ct_group *g = c->group;
    const enum can can = c->signature.op < 0 ? SAME_BITS : can_fold(call_dtype(c), call_op(c));

    if (operation_has_counts(c->signature.operation))
        return 0;
    return can == SAME_BITS
           || (can == OWN_ORDER && (g->order_rule == ORDER_FAST || !g->order_is_wished));
}

/* ---- A call ---------------------------------------------------------------------------- */

static int is_plain(const struct blocks *b)
{
    return !b->list && !b->counts && !b->displs;
}

/* What only this rank knows of its call. */
static int can_here(const struct call *c, const struct talking *t)
{
    const int in_place = c->send.base == c->recv.base;

    return is_plain(&c->send) && is_plain(&c->recv) && !c->scalar && c->place.device == t->device
           && c->capture != CAPTURE_IS_VOID
           && !(in_place && c->signature.operation == OPERATION_ALL_TO_ALL);
}

static ct_status can_everywhere(struct call *c, const struct talking *t, int *can)
{
    const int32_t mine = can_here(c, t);
    int32_t few[16], *all = few;
    ct_status status;

    if (c->group->size > (int)(sizeof few / sizeof *few))
        all = malloc((size_t)c->group->size * sizeof *all);
    if (!all)
        return ct_fail(CT_ERR_NOMEM, "no memory for the words of %d ranks", c->group->size);
    status = device_tell(c, &mine, sizeof mine, all);
    *can = status == CT_OK;
    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        *can &= all[i];
    if (all != few)
        free(all);
    return status;
}

void nccl_say_order(const struct call *c, struct talking *t)
{
    if (t->said || c->group->rank != 0 || c->signature.op < 0
        || can_fold(call_dtype(c), call_op(c)) != OWN_ORDER || c->group->order_rule == ORDER_FAST)
        return;
    t->said = 1;
    log_line(LOG_INFO,
             "group %s: NCCL sums floats in an order of its own; CT_ORDER=nodes or rank keeps them "
             "from it",
             c->group->name);
}

/* Against the user's wish. */
static void say_cant(const struct call *c, struct talking *t)
{
    char text[96];

    if (t->said_cant || c->group->rank != 0)
        return;
    t->said_cant = 1;
    if (!c->group->staging->devices.apart) {
        log_line(LOG_WARN, "group %s: CT_DEVICE=nccl can't be: " NCCL_SAME_GPU, c->group->name);
        return;
    }
    signature_describe(&c->signature, text, sizeof text);
    log_line(LOG_INFO, "group %s: CT_DEVICE=nccl can't be for some calls, first for %s%s",
             c->group->name, text,
             can_fold(call_dtype(c), call_op(c)) == OWN_ORDER ? ", whose order CT_ORDER says" : "");
}

/* What is captured is over when it is in the graph: a launch asks nothing of libct. */
static ct_status run(struct call *c, struct talking *t)
{
    void *const captured = c->capture == CAPTURED ? c->group->stream : NULL;
    ct_status status;

    nccl_say_order(c, t);
    atomic_store(&c->group->last_algorithm, t->by->name);
    status = t->by->start(t->talk, &c->signature, c->send.base, c->recv.base, captured);
    if (status == CT_OK)
        status = talking_wait(c, t);
    if (status != CT_OK) {
        char why[600];

        snprintf(why, sizeof why, "%s", ct_last_error());
        talking_give_up(t);
        ct_fail(status, "%s", why);
    }
    return status;
}

/* Where calls are fused by wish, one that can't be does not begin it: a stream may wait. */
static int is_for_us(const ct_group *group, int wish)
{
    const struct staging *s = group->staging;

    if (s->talking.state == NOT_TRIED && wish == WISH_FUSED && !s->unfused)
        return 0;
    return s->talking.state != NO_TALK
           && (wish == WISH_NCCL || (group->size > 1 && s->devices.apart));
}

static int may_begin(const ct_group *group, int wish)
{
    const struct staging *s = group->staging;

    return s->talking.state == NOT_TRIED && wish != WISH_STAGED && is_for_us(group, wish)
           && s->devices.talks && s->devices.apart;
}

/* By this group's wish, or an operation's. */
int device_nccl_is_to_come(const ct_group *group)
{
    return may_begin(group, group->staging->devices.wish)
           || (group->choices->may_wish_nccl && may_begin(group, WISH_NCCL));
}

int device_nccl_can_join(const struct call *c)
{
    return may_begin(c->group, device_wish(c, &c->group->staging->devices)) && nccl_can(c);
}

ct_status device_nccl(struct call *c, int *done)
{
    struct staging *s = c->group->staging;
    struct talking *t = &s->talking;
    const int wish = device_wish(c, &s->devices), wished = wish == WISH_NCCL;
    ct_status status = CT_OK;
    int can = 0;

    if (!is_for_us(c->group, wish) || (c->capture != NOT_CAPTURED && t->state == NOT_TRIED))
        return CT_OK;
    if (!s->devices.apart || !nccl_can(c)) {
        if (wished)
            say_cant(c, t);
        return CT_OK;
    }
    if (t->state == NOT_TRIED)
        status = talking_begin(c, t);
    if (status == CT_OK && t->state == TALKS)
        status = can_everywhere(c, t, &can);
    if (status == CT_OK && can) {
        status = run(c, t);
        *done = status == CT_OK;
    }
    return status;
}
