/* SPDX-License-Identifier: Apache-2.0 */
/* device_fused.c - all ranks' buffers are on one device, so one rank works for all.
 *
 *   each shows where its buffers are (a handle that another process can map) and arrives
 *   -> rank 0 maps them (the first time), folds and copies them where they lie, and waits for it
 *   -> it arrives with its word: done, or not this way; the others wait for that alone
 *
 * Processes that share a device get it in turns of a millisecond, so kernels that waited for each
 * other's flags would crawl: one process does the work.  Cost: two rounds, one launch, and each
 * byte read and written once (device_plan.c).
 *
 * A rank whose buffers can't be mapped elsewhere copies them to memory that can, and back, itself
 * (device_bounce.c); where there is no room for that the call goes another way.  So it does for
 * good where the ranks are on several devices or hosts (device_cards.c), or rank 0 could not map
 * what was given. */
#include "collectives/device_bounce.h"
#include "collectives/device_offer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/flat.h"

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
    if (status != CT_OK || !bounce)
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

static ct_status by_rounds(struct call *c, struct offer *own, struct call *given, enum word *word)
{
    struct flat *f = c->group->flat;
    const struct offer *offers[FLAT_MOST];
    ct_status status = show(c, own, given);

    *word = NOT_THIS_CALL;
    if (c->group->rank != WORKS_FOR_ALL) {
        if (status == CT_OK)
            status = say(c, NOT_THIS_CALL); /* its word does not count */
        if (status == CT_OK)
            status = flat_wait(f, WORKS_FOR_ALL);
        if (status == CT_OK)
            memcpy(word, flat_slot(f, WORKS_FOR_ALL), sizeof *word);
        return status;
    }
    if (status == CT_OK)
        status = flat_wait_all(f);
    for (int i = 0; i < c->group->size; i++)
        offers[i] = flat_slot(f, i);
    if (status == CT_OK)
        status = work_for_all(c, offers, word);
    return status == CT_OK ? say(c, *word) : status;
}

static ct_status alone(struct call *c, struct offer *own, struct call *given, enum word *word)
{
    const struct offer *const offers[] = { own };
    size_t bytes;
    const ct_status status = offer_call(c, own, given, &bytes);

    return status == CT_OK ? work_for_all(c, offers, word) : status;
}

ct_status device_fused(struct call *c, int *done)
{
    enum word word = NOT_THIS_CALL;
    ct_status status = CT_OK;
    struct call given;
    struct offer *own;

    *done = 0;
    if (c->group->staging->unfused || (c->group->size > 1 && !c->group->flat))
        return CT_OK;
    own = room_for_offer(c);
    if (!own)
        return CT_ERR_NOMEM;
    status = c->group->size == 1 ? alone(c, own, &given, &word) : by_rounds(c, own, &given, &word);
    if (status == CT_OK && word == DONE)
        status = bounce_out(c, &given);
    c->group->staging->unfused = word == NEVER;
    *done = word == DONE;
    if (*done)
        atomic_store(&c->group->last_algorithm, "fused");
    return status;
}
