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
#include "collectives/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/device_wait.h"
#include "runtime/flat.h"
#include "runtime/log.h"

enum {
    WORKS_FOR_ALL = 0 /* this rank */
};

enum word { DONE = 1, NOT_THIS_CALL, NEVER };

struct offer {
    unsigned char device[16];
    int32_t usable;                  /* 0: not this call */
    int32_t same;                    /* it receives where it sends */
    char why[160];                   /* if it is not */
    struct device_handle send, recv; /* bytes 0: it has none */
};

static int is_plain(const struct blocks *b)
{
    return !b->list && !b->counts && !b->displs;
}

static void refuse(struct offer *offer, const char *why)
{
    offer->usable = 0;
    snprintf(offer->why, sizeof offer->why, "%s", why);
}

/* CT_ERR_INVALID: the allocation ends before the buffer does. */
static ct_status give(const struct call *c, const struct blocks *b, struct device_handle *handle,
                      struct offer *offer)
{
    const size_t bytes = blocks_bytes(c, b);
    ct_status status;

    if (b->blocks == 0 || bytes == 0 || !offer->usable)
        return CT_OK;
    status = c->place.space->give(c->place.device, b->base, bytes, handle);
    if (status != CT_OK && status != CT_ERR_INVALID)
        refuse(offer, ct_last_error());
    return status == CT_ERR_INVALID ? status : CT_OK;
}

static ct_status make_offer(const struct call *c, struct offer *offer)
{
    ct_status status;

    memset(offer, 0, sizeof *offer);
    c->place.space->id(c->place.device, offer->device);
    offer->usable = 1;
    offer->same = c->send.base == c->recv.base;
    if (!is_plain(&c->send) || !is_plain(&c->recv))
        refuse(offer, "a buffer for each rank");
    else if (c->scalar)
        refuse(offer, "premul_sum");
    status = give(c, &c->send, &offer->send, offer);
    return status == CT_OK ? give(c, &c->recv, &offer->recv, offer) : status;
}

/* ---- The rank that works for all ------------------------------------------------ */

static ct_status do_step(struct call *c, const struct step *step)
{
    static const int one = 1;
    const struct space *space = c->place.space;
    struct fold fold = c->group->order;

    if (!step->folds && step->dsts == 1)
        return space->copy(c->place.device, step->dst[0], step->src[0], step->bytes);
    if (!step->folds) { /* one read for all copies */
        fold = (struct fold){ CT_U8, CT_MAX, 1, 1, &one };
        return space->fold(c->place.device, &fold, step->dst, step->dsts, step->src, step->bytes);
    }
    fold.dtype = call_dtype(c);
    fold.op = call_op(c);
    return space->fold(c->place.device, &fold, step->dst, step->dsts, step->src,
                       step->bytes / c->element);
}

static ct_status map(const struct call *c, const struct device_handle *handle, char **pointer)
{
    void *mapped = NULL;
    const ct_status status =
        handle->bytes == 0 ? CT_OK : c->place.space->take(c->place.device, handle, &mapped);

    *pointer = mapped;
    return status;
}

/* All ranks' buffers from here: DONE, or another word and why not. */
static enum word reach(const struct call *c, const struct offer *const *offers, char **send,
                       char **recv, char *why, size_t size)
{
    for (int i = 0; i < c->group->size; i++) {
        const struct offer *o = offers[i];

        if (!o->usable) {
            snprintf(why, size, "%s", o->why);
            return NOT_THIS_CALL;
        }
        if (memcmp(o->device, offers[WORKS_FOR_ALL]->device, sizeof o->device)) {
            snprintf(why, size, "the ranks have several devices");
            return NEVER;
        }
        if (o->same && c->signature.operation == OPERATION_ALL_TO_ALL) {
            snprintf(why, size, "an all_to_all in place");
            return NOT_THIS_CALL;
        }
        if (map(c, &o->send, &send[i]) != CT_OK || map(c, &o->recv, &recv[i]) != CT_OK) {
            snprintf(why, size, "%s", ct_last_error());
            return NEVER;
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

static ct_status fold_and_copy(struct call *c, const struct everybody *all)
{
    struct flat *f = c->group->flat;
    ct_status status = f ? flat_touch_by_device(f) : CT_OK;

    if (status != CT_OK)
        return status;
    status = device_plan(c, all, do_step);
    if (status == CT_OK)
        status = device_wait(c->group, c->place, NULL, c->deadline, &c->group->broken);
    if (status != CT_OK)
        return end_failed(c, status);
    if (f)
        flat_untouch(f);
    return CT_OK;
}

static ct_status work_for_all(struct call *c, const struct offer *const *offers, enum word *word)
{
    char *send[FLAT_MOST], *recv[FLAT_MOST];
    const struct everybody all = { send, recv };
    char why[160];
    ct_status status;

    *word = reach(c, offers, send, recv, why, sizeof why);
    if (*word != DONE) {
        say_why(c, *word, why);
        return CT_OK;
    }
    status = fold_and_copy(c, &all);
    if (status != CT_ERR_UNSUPPORTED)
        return status;
    *word = NOT_THIS_CALL; /* by its first step: no kernels for this device, or for so many ranks */
    say_why(c, *word, ct_last_error());
    return CT_OK;
}

/* ---- The rounds ------------------------------------------------------------------- */

static ct_status show(struct call *c)
{
    ct_status status = flat_turn(c->group->flat, sizeof(struct offer));
    struct offer offer;

    if (status == CT_OK)
        status = make_offer(c, &offer);
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
        status = make_offer(c, &own);
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
