/* SPDX-License-Identifier: Apache-2.0 */
/* fused_executor.c - a rank that works for all: it maps what the others offer, folds and copies its
 * share of the plan where it lies (copy_plan.c, plan_slices.c), and waits for its device. */
#include "collectives/device/buffer_handles.h"

#include <stdio.h>
#include <string.h>

#include "runtime/group/device_wait.h"
#include "runtime/group/shm_group.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

static ct_status enqueue(const struct call *c, const struct offer *const *offers,
                         const struct plan *plan)
{
    static const int one = 1;
    struct fold fold = { CT_U8, CT_MAX, 1, 1, &one }; /* a copy */
    struct in_stream in;
    const void *scalars[FLAT_MOST];
    int scaled = 0;

    if (c->by_streams) /* else the program may set another stream meanwhile */
        in = (struct in_stream){ c->group->stream, handover_called_off(c->group) };
    if (plan->folds) {
        fold = c->group->order;
        fold.dtype = call_dtype(c);
        fold.op = call_op(c);
    }
    for (int i = 0; i < c->group->size; i++) {
        scaled |= offers[i]->scaled;
        scalars[i] = offers[i]->scaled ? offers[i]->scalar : NULL;
    }
    return c->place.space->fold(c->place.device, c->by_streams ? &in : NULL, &fold,
                                scaled ? scalars : NULL, plan->parts, plan->count);
}

static int some_by_streams(const struct call *c, const struct offer *const *offers)
{
    int some = 0;

    for (int i = 0; i < c->group->size; i++)
        some |= offers[i]->by_streams;
    return some;
}

/* All ranks' blocks from here: DONE, or another word and why not. */
static enum word reach(const struct call *c, const struct offer *const *offers,
                       struct everybody *all, char *why, size_t size)
{
    const struct executors *e = &c->group->staging->devices.executors;
    ct_status status;

    for (int i = 0; i < c->group->size; i++) {
        const struct offer *o = offers[i];
        /* Of one device it does not matter which; several are those of which it is proved. */
        const unsigned char *device = e->count > 1 ? e->id[e->of[i]] : offers[0]->device;

        if (!o->usable) {
            snprintf(why, size, "%s", o->why);
            return some_by_streams(c, offers) ? BY_HOSTS : NOT_THIS_CALL;
        }
        if (o->by_streams != offers[0]->by_streams) {
            snprintf(why, size, "not all ranks' calls are in a stream and without a work");
            return BY_HOSTS;
        }
        if (memcmp(o->device, device, sizeof o->device) != 0) {
            snprintf(why, size, "rank %d's buffers are on another device than rank %d's%s",
                     c->group->ranks[i], c->group->ranks[e->count > 1 ? i : 0],
                     e->count > 1 ? " in the group's first call" : "");
            return NOT_THIS_CALL;
        }
        status = offer_take(c, o, SENDS, all->send + i * all->sends, all->sends);
        if (status == CT_OK)
            status = offer_take(c, o, RECVS, all->recv + i * all->recvs, all->recvs);
        if (status != CT_OK) {
            snprintf(why, size, "%s", ct_last_error());
            return status != CT_ERR_INVALID     ? NEVER
                   : some_by_streams(c, offers) ? BY_HOSTS
                                                : NOT_THIS_CALL;
        }
    }
    return DONE;
}

/* The first time aloud: else nobody would know why it is slow. */
static void say_why(const struct call *c, enum word word, const char *why)
{
    struct staging *staging = c->group->staging;

    log_line(word == NEVER || !staging->said ? LOG_INFO : LOG_DEBUG,
             "group %s: no device works for all ranks%s: %s", c->group->name,
             word == NEVER ? " from now on" : " in this call", why);
    staging->said = 1;
}

/* Who gives up returns to its caller, whose buffers then are the caller's again: it first waits for
 * who says that it is at them (flat_settle()).  So what was enqueued is waited for even if this
 * rank has given up too. */
static ct_status end_failed(struct call *c, ct_status status)
{
    const struct space *space = c->place.space;
    char why[240];

    snprintf(why, sizeof why, "%s", ct_last_error());
    if (space->finish(c->place.device, deadline_after(FLAT_DEVICE_SETTLING_MS), NULL)
        == CT_ERR_TIMEOUT)
        return ct_fail(status, "%s; the device is still at the buffers of this call", why);
    if (c->group->flat)
        flat_untouch(c->group->flat);
    return ct_fail(status, "%s", why);
}

/* Nothing first: whether it can be is known before anything waits for it. */
static ct_status enqueue_in_stream(struct call *c, const struct offer *const *offers,
                                   const struct plan *plan)
{
    const struct executors *e = &c->group->staging->devices.executors;
    const struct plan none = { .folds = plan->folds };
    ct_status status = enqueue(c, offers, &none);

    if (status != CT_OK)
        return status;
    status = handover_take(c, e);
    if (status == CT_OK)
        status = enqueue(c, offers, plan);
    if (status == CT_OK)
        status = handover_give(c, e);
    return status == CT_ERR_UNSUPPORTED ? CT_ERR_CUDA : status; /* it is too late for another way */
}

static ct_status fold_and_copy(struct call *c, const struct offer *const *offers,
                               const struct plan *plan)
{
    struct flat *f = c->group->flat;
    ct_status status = f ? flat_touch_by_device(f) : CT_OK;

    if (status != CT_OK)
        return status;
    status = enqueue(c, offers, plan);
    if (status == CT_OK)
        status = device_wait(c->group, c->place, NULL, c->deadline, &c->group->broken);
    if (status != CT_OK)
        return end_failed(c, status);
    if (f)
        flat_untouch(f);
    return CT_OK;
}

enum word reach_all(const struct call *c, const struct offer *const *offers, struct everybody *all)
{
    char why[160];
    const enum word word = reach(c, offers, all, why, sizeof why);

    if (word == BY_HOSTS)
        log_line(LOG_DEBUG, "group %s: streams don't hand this call over: %s", c->group->name, why);
    else if (word != DONE)
        say_why(c, word, why);
    return word;
}

/* With several executors all are refused alike: what they do differs in bytes alone. */
ct_status work_for_all(struct call *c, const struct offer *const *offers,
                       const struct everybody *all, enum word *word)
{
    const struct executors *e = &c->group->staging->devices.executors;
    struct plan plan;
    ct_status status = plan_make(c, all, &plan);

    if (status == CT_OK && e->count > 1)
        plan_cut(e, &plan, c->element);
    if (status == CT_OK)
        status =
            c->by_streams ? enqueue_in_stream(c, offers, &plan) : fold_and_copy(c, offers, &plan);
    plan_free(&plan);
    *word = DONE;
    if (status != CT_ERR_UNSUPPORTED)
        return status;
    *word = NOT_THIS_CALL; /* nothing was enqueued: no kernels for this device, or so many ranks */
    say_why(c, *word, ct_last_error());
    return CT_OK;
}
