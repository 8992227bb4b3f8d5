/* SPDX-License-Identifier: Apache-2.0 */
/* stream_handover.c - streams that hand a fused call over to each other.
 *
 *   the ranks meet on the host, as for any fused call: whose buffers are where (fused.c)
 *   -> an executor enqueues in its stream: wait until each rank is ready, take that back; fold and
 * copy; say to each that it is over
 *   -> each rank enqueues in its stream: ready; wait until it is over, take that back
 *   -> the call returns; the devices go on by themselves
 *
 * A word is 1 or 0 and is taken back by who waited for it, so what is enqueued is the same in every
 * call: a graph that is launched again works.  The words lie in host memory that all ranks share
 * and each has pinned whole, so a host can let its own stream go on with one store, whatever has
 * become of the others.  The other way to hand over is by the hosts (fused_executor.c): a host
 * waits for each device.  Which is faster no GPU has shown.
 *
 * Who watches over it: stream_handover_watch.c. */
#include "collectives/device/fused/stream_handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/device/device_call.h"
#include "runtime/group/shm_group.h"
#include "runtime/util/log.h"
#include "runtime/util/task_queue.h"

enum { CANT, CAN, NOT_NOW };
enum { MOST_RANKS = 64 };
enum { UNUSED = sizeof(uint32_t) * KINDS * MOST_RANKS }; /* where a word of no call's lies */

_Atomic uint32_t *handover_word(const ct_group *group, int rank, int executor, int kind)
{
    const struct handover *h = &group->staging->handover;

    return (_Atomic uint32_t *)(void *)(h->parts + (size_t)rank * h->memory.bytes)
           + (size_t)executor * KINDS + (size_t)kind;
}

const _Atomic uint32_t *handover_called_off(const ct_group *group)
{
    const struct staging *s = group->staging;
    const int mine = s->devices.executors.mine;

    return s->handover.parts && mine >= 0 ? handover_word(group, group->rank, mine, CALLED_OFF)
                                          : NULL;
}

void handover_call_off(const ct_group *group)
{
    const struct executors *e = &group->staging->devices.executors;

    for (int i = 0; i < e->count && group->size > 1; i++)
        atomic_store(handover_word(group, e->rank[i], i, CALLED_OFF), 1);
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
    struct handover *h = &c->group->staging->handover;

    if (c->capture != NOT_CAPTURED)
        return;
    if (h->stream && h->stream != c->group->stream)
        queue_drain(c->group->watches);
    h->stream = c->group->stream;
}

/* To the executors but itself, where it is one. */
static void say_ready(const struct call *c, const struct executors *e, struct list *list)
{
    for (int i = 0; i < e->count; i++)
        if (i != e->mine)
            set(list, handover_word(c->group, c->group->rank, i, READY), 1);
}

/* From here on the call can't go another way.  A graph's launches nobody counts. */
static ct_status set_out(struct call *c, const struct executors *e)
{
    struct handover *h = &c->group->staging->handover;
    ct_status status = CT_OK;

    if (c->is_in_stream)
        return CT_OK;
    if (e->mine >= 0 && c->capture == NOT_CAPTURED && c->group->flat)
        status = flat_touch_in_stream(c->group->flat);
    if (status != CT_OK)
        return status;
    c->is_in_stream = h->used = 1;
    h->captured |= c->capture != NOT_CAPTURED;
    if (c->capture == NOT_CAPTURED)
        c->place.space->call_enters_stream();
    return CT_OK;
}

/* Ours first: another executor may wait for it, as we for its. */
ct_status handover_take(struct call *c, const struct executors *e)
{
    struct list ready = { .count = 0 }, list = { .count = 0 };
    ct_status status = set_out(c, e);

    if (status != CT_OK)
        return status;
    say_ready(c, e, &ready);
    status = enqueue(c, &ready);
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            wait_for(&list, handover_word(c->group, i, e->mine, READY));
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            set(&list, handover_word(c->group, i, e->mine, READY), 0);
    return status == CT_OK ? enqueue(c, &list) : status;
}

ct_status handover_give(struct call *c, const struct executors *e)
{
    struct list list = { .count = 0 };
    ct_status status = CT_OK;

    if (e->count > 1 && c->capture == NOT_CAPTURED)
        status = c->place.space->mark(c->place.device, c->group->stream,
                                      &c->group->staging->handover.worked);
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            set(&list, handover_word(c->group, i, e->mine, OVER), 1);
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

ct_status handover_follow(struct call *c, const struct executors *e)
{
    struct list list = { .count = 0 };
    ct_status status = set_out(c, e);

    if (status != CT_OK)
        return status;
    if (e->mine < 0)
        say_ready(c, e, &list);
    for (int i = 0; i < e->count; i++)
        if (i != e->mine)
            wait_for(&list, handover_word(c->group, c->group->rank, i, OVER));
    for (int i = 0; i < e->count; i++)
        if (i != e->mine)
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

ct_status handover_begin(struct call *c, struct handover *h, int wished)
{
    int32_t could[MOST_RANKS], mine;
    int cant = 0, not_now = 0;
    ct_status status;

    h->tried = 1;
    h->wished = wished;
    h->on = c->group->size == 1; /* it has no words to say */
    if (!c->group->flat || c->group->size < 2 || c->group->size > MOST_RANKS)
        return CT_OK;
    if (!h->memory.data) {
        status = host_memory_make(c, &h->memory, UNUSED + sizeof(uint32_t), 1);
        if (status != CT_OK)
            return status;
    }
    mine = can_here(c, h);
    status = device_tell(c, &mine, sizeof mine, could);
    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++) {
        cant |= could[i] == CANT;
        not_now |= could[i] == NOT_NOW;
    }
    h->on = !cant && !not_now;
    h->tried = cant || !not_now;
    if (wished && cant && c->group->rank == 0)
        log_line(LOG_INFO,
                 "group %s: CT_HANDOVER=stream can't be: not all ranks' streams can wait for words "
                 "that they share",
                 c->group->name);
    return CT_OK;
}
