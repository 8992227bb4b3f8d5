/* SPDX-License-Identifier: Apache-2.0 */
/* stream_handover.c - streams that hand a fused call over to each other.
 *
 *   the ranks meet on the host, as for any fused call: whose buffers are where (fused.c)
 *   -> a leader enqueues in its stream: wait until each rank is ready, take that back; fold and
 * copy; say to each that it is over
 *   -> each rank enqueues in its stream: ready; wait until it is over, take that back
 *   -> the call returns; the devices go on by themselves
 *
 * A word is 1 or 0 and is taken back by who waited for it, so what is enqueued is the same in every
 * call: a graph that is launched again works.  The words lie in host memory that all ranks share
 * and each has pinned whole, so a host can let its own stream go on with one store, whatever has
 * become of the others.  The other way to hand over is by the hosts (fused.c): a host
 * waits for each device.  Which is faster no GPU has shown.
 *
 * Who watches over it: stream_handover_watch.c. */
#include "collectives/device/fused/stream_handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/device/fused/fused_group.h"
#include "runtime/util/log.h"
#include "runtime/util/task_queue.h"

enum { CANT, CAN, NOT_NOW };
enum { MOST_RANKS = 64 };
enum { UNUSED = sizeof(uint32_t) * KINDS * MOST_RANKS }; /* where a word of no call's lies */

_Atomic uint32_t *handover_word(const ct_group *group, int rank, int leader, int kind)
{
    const struct handover *h = &fused_of(group)->handover;

    return (_Atomic uint32_t *)(void *)(h->parts + (size_t)rank * h->memory.bytes)
           + (size_t)leader * KINDS + (size_t)kind;
}

const _Atomic uint32_t *handover_called_off(const ct_group *group)
{
    const int mine = device_leaders(group)->mine;

    return fused_of(group)->handover.parts && mine >= 0
               ? handover_word(group, group->rank, mine, CALLED_OFF)
               : NULL;
}

void handover_call_off(const ct_group *group)
{
    const struct leaders *l = device_leaders(group);

    for (int i = 0; i < l->count && group->size > 1; i++)
        atomic_store(handover_word(group, l->rank[i], i, CALLED_OFF), 1);
}

/* ---- What is enqueued ----------------------------------------------------------------- */

struct list {
    struct word_op op[2 * MOST_RANKS];
    int count;
};

static void set(struct list *list, _Atomic uint32_t *word, uint32_t value)
{
    list->op[list->count++] = (struct word_op){ word, value, 0 };
}

static void wait_for(struct list *list, _Atomic uint32_t *word)
{
    list->op[list->count++] = (struct word_op){ word, 1, 1 };
}

static ct_status enqueue(const struct call *c, const struct list *list)
{
    return list->count == 0
               ? CT_OK
               : c->place.space->words(c->place.device, c->group->stream, list->op, list->count);
}

/* A group has one stream at a time, and its calls are in one order.  Of another stream than before
 * the first call would overtake what is still in that one.  In a graph that is the program's. */
void handover_turn(const struct call *c)
{
    struct handover *h = &fused_of(c->group)->handover;

    if (c->capture != NOT_CAPTURED)
        return;
    if (h->stream && h->stream != c->group->stream)
        queue_drain(c->group->watches);
    h->stream = c->group->stream;
}

/* To the leaders but itself, where it is one. */
static void say_ready(const struct call *c, const struct leaders *l, struct list *list)
{
    for (int i = 0; i < l->count; i++)
        if (i != l->mine)
            set(list, handover_word(c->group, c->group->rank, i, READY), 1);
}

/* From here on the call can't take another path.  A graph's launches are not counted. */
static ct_status set_out(struct call *c, const struct leaders *l)
{
    struct handover *h = &fused_of(c->group)->handover;
    ct_status status = CT_OK;

    if (c->is_in_stream)
        return CT_OK;
    if (l->mine >= 0 && c->capture == NOT_CAPTURED && c->group->flat)
        status = flat_touch_in_stream(c->group->flat);
    if (status != CT_OK)
        return status;
    c->is_in_stream = h->used = 1;
    h->captured |= c->capture != NOT_CAPTURED;
    if (c->capture == NOT_CAPTURED)
        c->place.space->call_enters_stream();
    return CT_OK;
}

/* Ours first: another leader may wait for it, as we for its. */
ct_status handover_take(struct call *c, const struct leaders *l)
{
    struct list ready = { .count = 0 }, list = { .count = 0 };
    ct_status status = set_out(c, l);

    if (status != CT_OK)
        return status;
    say_ready(c, l, &ready);
    status = enqueue(c, &ready);
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            wait_for(&list, handover_word(c->group, i, l->mine, READY));
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            set(&list, handover_word(c->group, i, l->mine, READY), 0);
    return status == CT_OK ? enqueue(c, &list) : status;
}

ct_status handover_give(struct call *c, const struct leaders *l)
{
    struct list list = { .count = 0 };
    ct_status status = CT_OK;

    if (l->count > 1 && c->capture == NOT_CAPTURED)
        status = c->place.space->mark(c->place.device, c->group->stream,
                                      &fused_of(c->group)->handover.worked);
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            set(&list, handover_word(c->group, i, l->mine, OVER), 1);
    return status == CT_OK ? enqueue(c, &list) : status;
}

/* ---- As a rank, and where it fails ------------------------------------------------------ */

/* Nothing of a call that was not captured whole may run. */
void handover_fail(struct call *c)
{
    char words[1024];

    if (!c->is_in_stream)
        return;
    snprintf(words, sizeof words, "%s", ct_last_error());
    if (c->capture != NOT_CAPTURED)
        c->place.space->spoil(c->place.device, c->group->stream);
    else if (handover_watch(c) != CT_OK)
        log_line(LOG_WARN, "group %s: a stream may stand still: %s", c->group->name,
                 ct_last_error());
    ct_fail(CT_ERR_CUDA, "%s", words);
}

ct_status handover_follow(struct call *c, const struct leaders *l)
{
    struct list list = { .count = 0 };
    ct_status status = set_out(c, l);

    if (status != CT_OK)
        return status;
    if (l->mine < 0)
        say_ready(c, l, &list);
    for (int i = 0; i < l->count; i++)
        if (i != l->mine)
            wait_for(&list, handover_word(c->group, c->group->rank, i, OVER));
    for (int i = 0; i < l->count; i++)
        if (i != l->mine)
            set(&list, handover_word(c->group, c->group->rank, i, OVER), 0);
    status = enqueue(c, &list);
    return status == CT_OK && c->capture == NOT_CAPTURED ? handover_watch(c) : status;
}

/* ---- Begin ------------------------------------------------------------------------ */

/* What only this rank knows of.  While a stream is captured nothing can be pinned. */
static int can_here(struct call *c, struct handover *h)
{
    const struct space *space = c->place.space;
    char *const parts = h->memory.data - (size_t)c->group->rank * h->memory.bytes;
    ct_status status;

    if (!h->memory.shared)
        return CANT;
    if (h->parts)
        return CAN;
    if (c->capture != NOT_CAPTURED)
        return NOT_NOW;
    memset(h->memory.data, 0, h->memory.bytes);
    status = space->pin(c->place.device, parts, (size_t)c->group->size * h->memory.bytes);
    if (status != CT_OK) /* unsupported: while some stream stands still */
        return status == CT_ERR_UNSUPPORTED ? NOT_NOW : CANT;
    h->parts = parts;
    h->pinned = c->place;
    return space->try_word(c->place.device, (void *)(h->memory.data + UNUSED)) == CT_OK ? CAN
                                                                                        : CANT;
}

ct_status handover_begin(struct call *c, struct handover *h, int always)
{
    int32_t could[MOST_RANKS], mine;
    int cant = 0, not_now = 0;
    ct_status status;

    h->tried = 1;
    h->always = always;
    h->on = c->group->size == 1; /* it has no words to say */
    if (!c->group->flat || c->group->size < 2 || c->group->size > MOST_RANKS)
        return CT_OK;
    if (!h->memory.data) {
        status = host_memory_make(c, &h->memory, UNUSED + sizeof(uint32_t), 1);
        if (status != CT_OK)
            return status;
    }
    mine = can_here(c, h);
    status = device_gather(c, &mine, sizeof mine, could);
    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++) {
        cant |= could[i] == CANT;
        not_now |= could[i] == NOT_NOW;
    }
    h->on = !cant && !not_now;
    h->tried = cant || !not_now;
    if (always && cant && c->group->rank == 0)
        log_line(LOG_INFO,
                 "group %s: CT_HANDOVER=stream can't be: not all ranks' streams can wait for words "
                 "that they share",
                 c->group->name);
    return CT_OK;
}
