/* SPDX-License-Identifier: Apache-2.0 */
/* fused.c - the ranks of a host see all buffers where they lie, so on each device one of
 * them works for all: its executor.
 *
 *   several devices, the group's first: do they reach each other's memory? (peer_access_test.c)
 *   -> each rank shows where its buffers are (a handle that another process can map) and arrives
 *   -> the executors map them (the first time); with several, each says that it could, and looks
 * whether all could, so that none begins what another can't end
 *   -> each folds and copies its share (plan_slices.c) where it lies, and waits for it
 *   -> each arrives with its word: done, or not this way; all ranks wait for the executors
 *
 * Processes that share a device get it in turns of a millisecond, so kernels that waited for each
 * other's flags would crawl: one process does a device's work.  Cost: two rounds (three with
 * several devices), one launch, and each byte read and written once (copy_plan.c).
 *
 * A rank whose buffers can't be mapped elsewhere copies them to memory that can, and back, itself
 * (bounce_buffer.c); where there is no room for that the call goes another way, and so does one
 * with a buffer on another device than before.  So it does for good where the ranks are on several
 * hosts or devices that don't reach each other, or an executor could not map what was given. */
#include "collectives/device/buffer_handles.h"
#include "collectives/device/fused/bounce_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/group/shm_group.h"

/* Kept for the next call; NULL: no memory. */
static struct offer *room_for_offer(const struct call *c)
{
    struct staging *s = c->group->staging;
    const size_t bytes = offer_most(c);

    if (s->offer_bytes < bytes) {
        free(s->offer);
        s->offer = malloc(bytes);
        s->offer_bytes = s->offer ? bytes : 0;
    }
    if (!s->offer)
        ct_fail(CT_ERR_NOMEM, "no memory to offer the buffers of %d ranks", c->group->size);
    return s->offer;
}

/* What can't be used where it lies is copied to where it can: *given is the call as the others
 * reach it. */
static ct_status offer_call(const struct call *c, struct offer *offer, struct call *given,
                            size_t *bytes)
{
    int bounce, bounced = 0;
    ct_status status = offer_make(c, offer, bytes, &bounce);

    *given = *c;
    if (status != CT_OK || !bounce || c->by_streams) /* what comes before it may not be there yet */
        return status;
    status = bounce_in(c, bounce, given, &bounced);
    if (status != CT_OK || !bounced)
        return status;
    status = offer_make(given, offer, bytes, &bounce);
    c->group->staging->bounce.useless |= bounce;
    return status;
}

static ct_status show(struct call *c, struct offer *offer, struct call *given)
{
    ct_status status = flat_turn(c->group->flat, offer_most(c));
    size_t bytes;

    if (status == CT_OK)
        status = offer_call(c, offer, given, &bytes);
    if (status != CT_OK)
        return status;
    flat_show(c->group->flat, 0, offer, bytes);
    return flat_arrive(c->group->flat);
}

static ct_status say(struct call *c, enum word word)
{
    ct_status status = flat_turn(c->group->flat, sizeof word);

    if (status != CT_OK)
        return status;
    flat_show(c->group->flat, 0, &word, sizeof word);
    return flat_arrive(c->group->flat);
}

/* Of the executors, the one that goes furthest from "done". */
static ct_status hear(const struct call *c, const struct executors *e, enum word *word)
{
    ct_status status = CT_OK;

    *word = DONE;
    for (int i = 0; i < e->count && status == CT_OK; i++) {
        enum word its;

        status = flat_wait(c->group->flat, e->rank[i]);
        if (status != CT_OK)
            break;
        memcpy(&its, flat_slot(c->group->flat, e->rank[i]), sizeof its);
        if (its > *word)
            *word = its;
    }
    return status;
}

static ct_status say_and_hear(struct call *c, const struct executors *e, enum word own,
                              enum word *word)
{
    const ct_status status = say(c, own);

    return status == CT_OK ? hear(c, e, word) : status;
}

/* What others say counts; our own word does not. */
static ct_status wait_for_executors(struct call *c, const struct executors *e, enum word *word)
{
    const ct_status status = e->count > 1 ? say(c, NOT_THIS_CALL) : CT_OK;

    return status == CT_OK ? say_and_hear(c, e, NOT_THIS_CALL, word) : status;
}

static ct_status execute(struct call *c, const struct executors *e, struct everybody *all,
                         enum word *word)
{
    const struct offer *offers[FLAT_MOST];
    ct_status status = flat_wait_all(c->group->flat);

    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++)
        offers[i] = flat_slot(c->group->flat, i);
    *word = reach_all(c, offers, all);
    if (e->count > 1)
        status = say_and_hear(c, e, *word, word);
    if (status == CT_OK && *word == DONE)
        status = work_for_all(c, offers, all, word);
    return status == CT_OK ? say_and_hear(c, e, *word, word) : status;
}

static ct_status by_rounds(struct call *c, struct offer *own, struct call *given, enum word *word)
{
    const struct executors *e = &c->group->staging->devices.executors;
    struct everybody all;
    ct_status status = show(c, own, given);

    if (status != CT_OK)
        return status;
    if (e->mine < 0)
        return wait_for_executors(c, e, word);
    status = everybody_make(c, &all);
    if (status == CT_OK)
        status = execute(c, e, &all, word);
    everybody_free(&all);
    return status;
}

static ct_status alone(struct call *c, struct offer *own, struct call *given, enum word *word)
{
    const struct offer *const offers[] = { own };
    struct everybody all;
    size_t bytes;
    ct_status status = everybody_make(c, &all);

    if (status == CT_OK)
        status = offer_call(c, own, given, &bytes);
    if (status == CT_OK)
        *word = reach_all(c, offers, &all);
    if (status == CT_OK && *word == DONE)
        status = work_for_all(c, offers, &all, word);
    everybody_free(&all);
    return status;
}

static ct_status with_all(struct call *c, enum word *word)
{
    struct offer *const own = room_for_offer(c);
    struct call given;
    ct_status status;

    if (!own)
        return CT_ERR_NOMEM;
    status = c->group->size == 1 ? alone(c, own, &given, word) : by_rounds(c, own, &given, word);
    if (status == CT_OK && *word == DONE && c->by_streams)
        status = handover_follow(c, &c->group->staging->devices.executors);
    return status == CT_OK && *word == DONE ? bounce_out(c, &given) : status;
}

static ct_status by_hosts(struct call *c, enum word *word)
{
    const ct_status status = device_go_by_hosts(c);

    return status == CT_OK ? with_all(c, word) : status;
}

ct_status device_fused(struct call *c, int *done)
{
    struct staging *s = c->group->staging;
    struct executors *e = &s->devices.executors;
    enum word word = NOT_THIS_CALL;
    ct_status status = CT_OK;

    *done = 0;
    if (s->unfused || (c->group->size > 1 && !c->group->flat))
        return CT_OK;
    if (c->by_streams)
        handover_turn(c);
    if (e->count > 1 && e->proof == DONT_REACH) /* device_call.c has tried */
        word = NEVER;
    else if (e->count == 1 || e->proof == REACH)
        status = with_all(c, &word);
    if (status == CT_OK && word == BY_HOSTS && c->capture == NOT_CAPTURED)
        status = by_hosts(c, &word);
    if (status != CT_OK && c->by_streams)
        handover_fail(c);
    s->unfused = word == NEVER;
    *done = word == DONE;
    if (*done)
        atomic_store(&c->group->last_algorithm, "fused");
    return status;
}
