/* SPDX-License-Identifier: Apache-2.0 */
/* hier_leader.c - what the executor of a device does for its team when NCCL is between the
 * executors.
 *
 *   broadcast    the root's to its executor's buffer; NCCL there; to all others of the team
 *   all_reduce   a fold into the executor's buffer; NCCL there; to all others
 *   reduce       a fold into the scratch, in pieces of its size; NCCL there; to the root
 *   all others   block by block, by hier_blocks.c
 *
 * The device's own work and NCCL's are in two streams: the host waits between them. */
#include "collectives/device/nccl/hier_leader.h"

#include <stdio.h>
#include <string.h>

#include "runtime/group/device_wait.h"
#include "runtime/util/clock.h"

size_t team_scratch = (size_t)16 << 20;

/* ---- What a team shows ------------------------------------------------------------------- */

ct_status team_show(struct team *t)
{
    size_t bytes;
    int bounce;
    ct_status status = offer_make(t->call, t->offer, &bytes, &bounce);

    if (!t->flat || status != CT_OK)
        return status;
    flat_call(t->flat, &t->call->signature, t->call->deadline, &t->call->group->broken);
    status = flat_turn(t->flat, offer_most(t->call));
    if (status != CT_OK)
        return status;
    flat_show(t->flat, 0, t->offer, bytes);
    status = flat_arrive(t->flat);
    return status == CT_OK && t->e->mine >= 0 ? flat_wait_all(t->flat) : status;
}

static int map(const struct team *t, int i, const struct offer *o)
{
    const struct call *c = t->call;
    const int apart = o->handles[SENDS] > 1 || o->handles[RECVS] > 1;

    if (apart && team_needs_buffer(c, t->e))
        return 0;
    return offer_take(c, o, SENDS, t->send + (size_t)i * (size_t)t->sends, t->sends) == CT_OK
           && offer_take(c, o, RECVS, t->recv + (size_t)i * (size_t)t->recvs, t->recvs) == CT_OK;
}

int team_reach(struct team *t)
{
    const struct talking *talking = &t->call->group->staging->talking;

    for (int i = 0; i < t->size; i++) {
        const struct offer *o = t->flat ? flat_slot(t->flat, i) : t->offer;

        if (!o->usable || o->scaled
            || memcmp(o->device, t->e->id[t->e->mine], sizeof o->device) != 0 || !map(t, i, o))
            return 0;
    }
    return t->call->place.device == talking->device;
}

/* ---- What an executor does ----------------------------------------------------------------- */

static ct_status finish(const struct team *t)
{
    struct call *c = t->call;

    return device_wait(c->group, c->place, NULL, c->deadline, &c->group->broken);
}

/* The team's bytes from `at` on. */
static ct_status fold(const struct team *t, char *to, size_t at, size_t bytes)
{
    const struct call *c = t->call;
    const struct fold order = { call_dtype(c), call_op(c), t->size, 1, &t->size };
    const void *src[FLAT_MOST];
    void *const dst = to;
    const struct fold_part part = { &dst, src, 1, bytes / c->element };

    for (int i = 0; i < t->size; i++)
        src[i] = team_sent(t, i, 0) + at;
    return c->place.space->fold(c->place.device, NULL, &order, NULL, &part, 1);
}

static ct_status copy_to(const struct team *t, void *const *dst, int dsts, const char *from,
                         size_t bytes)
{
    static const int one = 1;
    const struct fold order = { CT_U8, CT_MAX, 1, 1, &one };
    const struct place *place = &t->call->place;
    const void *const src = from;
    const struct fold_part part = { dst, &src, dsts, bytes };

    return dsts == 0 ? CT_OK : place->space->fold(place->device, NULL, &order, NULL, &part, 1);
}

static ct_status copy(const struct team *t, char *to, const char *from, size_t bytes)
{
    void *const dst = to;

    return copy_to(t, &dst, to != from, from, bytes);
}

/* To all others of the team but one (-1: to all); one read for all of them. */
static ct_status spread(const struct team *t, const char *from, int but, size_t bytes)
{
    void *dst[FLAT_MOST];
    int dsts = 0;

    for (int i = 1; i < t->size; i++)
        if (i != but)
            dst[dsts++] = team_received(t, i, 0);
    return copy_to(t, dst, dsts, from, bytes);
}

ct_status team_talk(const struct team *t, const char *from, char *to, size_t bytes)
{
    struct call *c = t->call;
    const struct talking *talking = &c->group->staging->talking;
    struct signature what = c->signature;
    ct_status status = finish(t);

    what.count = bytes / c->element;
    if (what.root >= 0)
        what.root = t->e->of[what.root];
    if (status == CT_OK)
        status = talking->by->start(talking->talk, &what, from, to, NULL);
    return status == CT_OK ? talking_wait(c, talking) : status;
}

int team_place(const struct team *t, int rank)
{
    return t->e->of[rank] == t->e->mine ? t->e->place[rank] : -1;
}

static ct_status broadcast(const struct team *t, size_t n)
{
    const int root = team_place(t, t->call->signature.root);
    ct_status status =
        root > 0 ? copy(t, team_received(t, 0, 0), team_received(t, root, 0), n) : CT_OK;

    if (status == CT_OK)
        status = team_talk(t, team_received(t, 0, 0), team_received(t, 0, 0), n);
    return status == CT_OK ? spread(t, team_received(t, 0, 0), root, n) : status;
}

static ct_status all_reduce(const struct team *t, size_t n)
{
    ct_status status = fold(t, team_received(t, 0, 0), 0, n);

    if (status == CT_OK)
        status = team_talk(t, team_received(t, 0, 0), team_received(t, 0, 0), n);
    return status == CT_OK ? spread(t, team_received(t, 0, 0), -1, n) : status;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Only the root has a buffer for it. */
static ct_status reduce(const struct team *t, size_t n)
{
    char *const scratch = t->call->group->staging->scratch.memory;
    const int root = team_place(t, t->call->signature.root);
    ct_status status = CT_OK;

    for (size_t at = 0; at < n && status == CT_OK; at += team_scratch) {
        const size_t bytes = smaller(team_scratch, n - at);

        status = fold(t, scratch, at, bytes);
        if (status == CT_OK)
            status = team_talk(t, scratch, scratch, bytes);
        if (status == CT_OK && root >= 0)
            status = copy(t, team_received(t, root, 0) + at, scratch, bytes);
    }
    return status;
}

static ct_status carry_out(const struct team *t)
{
    const size_t n = call_bytes(t->call);
    ct_status status;

    switch (t->call->signature.operation) {
    case OPERATION_BROADCAST:
        status = broadcast(t, n);
        break;
    case OPERATION_REDUCE:
        status = reduce(t, n);
        break;
    case OPERATION_ALL_REDUCE:
        status = all_reduce(t, n);
        break;
    default:
        status = team_blocks(t);
    }
    return status == CT_OK ? finish(t) : status;
}

/* What was begun ends before the others of the team have their buffers for themselves again. */
static ct_status end_failed(const struct team *t, ct_status status)
{
    const struct place *place = &t->call->place;
    char why[600];

    snprintf(why, sizeof why, "%s", ct_last_error());
    talking_give_up(&t->call->group->staging->talking);
    if (place->space->finish(place->device, deadline_after(FLAT_DEVICE_SETTLING_MS), NULL)
        == CT_ERR_TIMEOUT)
        return ct_fail(status, "%s; the device is still at the buffers of this call", why);
    if (t->flat)
        flat_untouch(t->flat);
    return ct_fail(status, "%s", why);
}

ct_status team_work(const struct team *t)
{
    ct_status status = t->flat ? flat_touch_by_device(t->flat) : CT_OK;

    if (status != CT_OK)
        return status;
    nccl_say_order(t->call, &t->call->group->staging->talking);
    status = carry_out(t);
    if (status != CT_OK)
        return end_failed(t, status);
    if (t->flat)
        flat_untouch(t->flat);
    return CT_OK;
}

ct_status team_wait(const struct team *t)
{
    ct_status status = t->flat ? flat_turn(t->flat, 0) : CT_OK;

    if (t->flat && status == CT_OK)
        status = flat_arrive(t->flat);
    return t->flat && status == CT_OK ? flat_wait(t->flat, 0) : status;
}
