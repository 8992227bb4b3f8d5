/* SPDX-License-Identifier: Apache-2.0 */
/* device_fused.c - all ranks' buffers are on one device, so one rank works for all.
 *
 *   each shows where its buffers are (a handle that another process can map) and arrives
 *   -> rank 0 maps them (the first time), folds and copies them where they lie, and waits for it
 *   -> it arrives with its word: done, or not this way; the others wait for that alone
 *
 * Only one process ever has work for the device: processes that share one get it in turns of a
 * millisecond, so kernels that waited for each other's flags would crawl.  Cost: two rounds, one
 * launch, and each byte read and written once (device_plan.c).
 *
 * Buffers that can't be mapped elsewhere, list forms and premul_sum go another way, for that call;
 * ranks on several devices or hosts (device_cards.c), or where rank 0 could not map what was given,
 * for good. */
#include "collectives/device_offer.h"

#include <string.h>

#include "runtime/flat.h"

static ct_status show(struct call *c)
{
    ct_status status = flat_turn(c->group->flat, sizeof(struct offer));
    struct offer offer;

    if (status == CT_OK)
        status = offer_make(c, &offer);
    if (status != CT_OK)
        return status;
    flat_show(c->group->flat, 0, &offer, sizeof offer);
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

static ct_status by_rounds(struct call *c, enum word *word)
{
    struct flat *f = c->group->flat;
    const struct offer *offers[FLAT_MOST];
    ct_status status = show(c);

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

ct_status device_fused(struct call *c, int *done)
{
    struct offer own;
    const struct offer *const offers[] = { &own };
    enum word word = NOT_THIS_CALL;
    ct_status status = CT_OK;

    *done = 0;
    if (c->group->staging->unfused)
        return CT_OK;
    if (c->group->size == 1) {
        status = offer_make(c, &own);
        if (status == CT_OK)
            status = work_for_all(c, offers, &word);
    } else if (c->group->flat) {
        status = by_rounds(c, &word);
    }
    c->group->staging->unfused = word == NEVER;
    *done = word == DONE;
    if (*done)
        atomic_store(&c->group->last_algorithm, "fused");
    return status;
}
