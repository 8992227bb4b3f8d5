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
 * ranks on several devices or hosts, or a machine where nothing can be mapped, for good. */
#include "collectives/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/flat.h"
#include "runtime/log.h"

enum {
    WORKS_FOR_ALL = 0, /* this rank */
    FINISH_MS = 1000   /* of what is enqueued when a call fails */
};

enum word { DONE = 1, NOT_THIS_CALL, NEVER };

struct offer {
    unsigned char device[16];
    int32_t usable;                  /* 0: not this call */
    int32_t same;                    /* it receives where it sends */
    char why[64];                    /* if it is not */
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

static void give(const struct call *c, const struct blocks *b, struct device_handle *handle,
                 struct offer *offer)
{
    const size_t bytes = blocks_bytes(c, b);

    if (b->blocks == 0 || bytes == 0 || !offer->usable)
        return;
    if (c->place.space->give(c->place.device, b->base, bytes, handle) != CT_OK)
        refuse(offer, ct_last_error());
}

static void make_offer(const struct call *c, struct offer *offer)
{
    const char *wish = getenv("CT_DEVICE");

    memset(offer, 0, sizeof *offer);
    c->place.space->id(c->place.device, offer->device);
    offer->usable = 1;
    offer->same = c->send.base == c->recv.base;
    if (wish && !strcmp(wish, "staged"))
        refuse(offer, "CT_DEVICE=staged");
    else if (!is_plain(&c->send) || !is_plain(&c->recv))
        refuse(offer, "a buffer for each rank");
    else if (c->scales)
        refuse(offer, "premul_sum");
    give(c, &c->send, &offer->send, offer);
    give(c, &c->recv, &offer->recv, offer);
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

static void say_why(const struct call *c, enum word word, const char *why)
{
    log_line(word == NEVER ? LOG_INFO : LOG_DEBUG,
             "group %s: device memory is staged through the host%s: %s", c->group->name,
             word == NEVER ? " from now on" : " in this call", why);
}

/* Who gives up returns to its caller, whose buffers then are the caller's again: it first waits for
 * who says that it is at them (flat_settle()), for a while.  So what was enqueued is waited for
 * even if this rank has given up too. */
static ct_status fold_and_copy(struct call *c, const struct everybody *all)
{
    const struct space *space = c->place.space;
    struct flat *f = c->group->flat;
    ct_status status = f ? flat_touch(f) : CT_OK, last = CT_OK;

    if (status != CT_OK)
        return status;
    status = device_plan(c, all, do_step);
    if (status == CT_OK)
        last = space->finish(c->place.device, c->deadline, &c->group->broken);
    if (status != CT_OK || last != CT_OK) {
        char why[240];

        snprintf(why, sizeof why, "%s", ct_last_error());
        space->finish(c->place.device, deadline_after(FINISH_MS), NULL);
        status = ct_fail(status != CT_OK ? status : last, "%s", why);
    }
    if (f)
        flat_untouch(f);
    return status;
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
    *word = NEVER; /* by its first step: there are no kernels for this device */
    say_why(c, *word, ct_last_error());
    return CT_OK;
}

/* ---- The rounds ------------------------------------------------------------------- */

static ct_status show(struct call *c)
{
    ct_status status = flat_turn(c->group->flat, sizeof(struct offer));
    struct offer offer;

    if (status != CT_OK)
        return status;
    make_offer(c, &offer);
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
    if (c->group->staging->apart || !device_is_agreed(c->signature.operation))
        return CT_OK;
    if (c->group->size == 1) {
        make_offer(c, &own);
        status = work_for_all(c, offers, &word);
    } else if (c->group->flat) {
        status = by_rounds(c, &word);
    }
    c->group->staging->apart = word == NEVER;
    *done = word == DONE;
    if (*done)
        atomic_store(&c->group->last_algorithm, "fused");
    return status;
}
