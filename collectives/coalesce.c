/* SPDX-License-Identifier: Apache-2.0 */
/* coalesce.c - calls that are collected, and then travel together.
 *
 *   ct_coalesce_begin()   from now on call_run() hands each checked call to coalesce_add()
 *   ct_coalesce_end()     neighbours of one kind that have few bytes make one trip: a call over
 *                         a buffer in which theirs lie behind each other; the others go alone
 *                         -> the trips are numbered, as calls are
 *                         -> here or on the group's thread, one after the other: gathered, run
 *                         (call.c), scattered
 *
 * Which calls share a trip is a function of what all ranks agree on.  How many they are is in the
 * signature of the trip, and so is a hash of their counts: ranks whose lists differ find out.  Each
 * element is folded as it would be alone, so the bits are the same.
 *
 * The list belongs to the group; a trip's task to its work. */
#include "collectives/coalesce.h"

#include <stdlib.h>

#include "collectives/exchange.h"
#include "runtime/log.h"
#include "runtime/on_stream.h"
#include "runtime/work.h"

/* Beyond these a call alone costs less than to copy it twice; measured, docs/algorithms.md. */
#define MOST_OF_ONE ((size_t)8 << 10)
#define MOST_OF_TRIP ((size_t)256 << 10)

/* calls[first] and the count - 1 behind it. */
struct trip {
    struct call call;
    int first, count;
};

struct coalesced {
    struct task task; /* first: the trips are its task */
    struct call *calls;
    int used, room;
    struct trip *trips;
    int trip_count;
    char *buffer; /* of one trip after the other */
};

static void list_free(struct coalesced *list)
{
    for (int i = 0; i < list->used; i++)
        call_forget(&list->calls[i]);
    for (int i = 0; i < list->trip_count; i++)
        device_forget(&list->trips[i].call);
    free(list->calls);
    free(list->trips);
    free(list->buffer);
    free(list);
}

void coalesce_drop(ct_group *group)
{
    struct coalesced *list = group->coalesced;

    if (!list)
        return;
    if (list->used > 0)
        log_line(LOG_WARN,
                 "group %s, rank %d: destroyed without ct_coalesce_end(): %d calls were not made",
                 group->name, group->rank, list->used);
    group->coalesced = NULL;
    list_free(list);
}

/* ---- Collecting ----------------------------------------------------------- */

ct_status ct_coalesce_begin(ct_group *group)
{
    ct_status status = group_resolve_member(group, &group);

    if (status != CT_OK)
        return ct_fail_in(status, "ct_coalesce_begin: ");
    if (group->coalesced)
        return ct_fail(CT_ERR_INVALID,
                       "ct_coalesce_begin: group %s collects calls already (%d so far); "
                       "ct_coalesce_end() comes first",
                       group->name, group->coalesced->used);
    status = group_check(group);
    if (status != CT_OK)
        return status;
    group->coalesced = calloc(1, sizeof *group->coalesced);
    return group->coalesced ? CT_OK
                            : ct_fail(CT_ERR_NOMEM, "ct_coalesce_begin: no memory for a list");
}

static ct_status append(struct coalesced *list, const struct call *c)
{
    if (list->used == list->room) {
        const int room = list->room > 0 ? 2 * list->room : 16;
        struct call *calls = realloc(list->calls, (size_t)room * sizeof *calls);

        if (!calls)
            return ct_fail(CT_ERR_NOMEM, "%s: no memory for a list of %d calls",
                           operation_name(c->signature.operation), room);
        list->calls = calls;
        list->room = room;
    }
    list->calls[list->used++] = *c;
    return CT_OK;
}

ct_status coalesce_add(const struct request_of_call *r, ct_group *group, struct place place,
                       int has_work)
{
    ct_status status = group_check(group);
    struct call c;

    if (status != CT_OK)
        return status;
    if (operation_is_agreement(r->operation))
        return ct_fail(CT_ERR_INVALID,
                       "%s: group %s collects calls, and this one can't wait for "
                       "ct_coalesce_end()",
                       operation_name(r->operation), group->name);
    if (has_work)
        return ct_fail(CT_ERR_INVALID,
                       "%s: group %s collects calls, which have no work of their own: give NULL, "
                       "and a place to ct_coalesce_end()",
                       operation_name(r->operation), group->name);
    call_make(&c, r, group, place);
    c.limit = r->limit;
    status = call_copy_inputs(&c, r->op, 1);
    if (status == CT_OK && place.space)
        status = device_note(&c, 0);
    if (status == CT_OK)
        status = append(group->coalesced, &c);
    if (status == CT_OK)
        return CT_OK;
    call_forget(&c);
    return status == CT_ERR_INVALID ? status : group_break(group, status);
}

/* ---- What goes together ------------------------------------------------------ */

/* Of the buffer that holds all blocks; 0: it goes alone. */
static size_t trip_bytes(const struct call *c)
{
    const size_t p = (size_t)c->group->size;

    if (c->place.space)
        return MOST_OF_TRIP; /* the host can't gather it */
    switch (c->signature.operation) {
    case OPERATION_ALL_REDUCE:
    case OPERATION_BROADCAST:
        return call_bytes(c);
    case OPERATION_ALL_GATHER:
    case OPERATION_REDUCE_SCATTER:
        return call_bytes(c) > MOST_OF_ONE ? call_bytes(c) : p * call_bytes(c);
    default:
        return MOST_OF_TRIP;
    }
}

static int is_of_kind(const struct signature *a, const struct signature *b)
{
    return a->operation == b->operation && a->dtype == b->dtype && a->op == b->op
           && a->root == b->root;
}

/* How many calls from the first on go together; *bytes: in how large a buffer. */
static int neighbours(const struct call *calls, int count, size_t *bytes)
{
    int n = 0;

    *bytes = 0;
    while (n < count && trip_bytes(&calls[n]) <= MOST_OF_ONE
           && is_of_kind(&calls[0].signature, &calls[n].signature)
           && *bytes + trip_bytes(&calls[n]) <= MOST_OF_TRIP)
        *bytes += trip_bytes(&calls[n++]);
    return n > 1 ? n : 1;
}

/* What is the first one's alone becomes that of all: one call over the buffer, in place. */
static void lay_out(struct trip *trip, const struct call *calls, char *buffer)
{
    struct call *c = &trip->call;
    const size_t p = (size_t)calls->group->size;
    uint64_t count = 0, hash = 1469598103934665603u;
    struct blocks own, all;

    for (int i = 0; i < trip->count; i++) {
        count += calls[i].signature.count;
        hash = (hash ^ calls[i].signature.count) * 1099511628211u;
    }
    c->signature.count = count;
    c->signature.history = (uint32_t)(hash ^ hash >> 32);
    all = (struct blocks){ .base = buffer, .count = count, .blocks = 1 };
    own = all;
    if (c->signature.operation == OPERATION_ALL_GATHER
        || c->signature.operation == OPERATION_REDUCE_SCATTER) {
        all.blocks = (int)p;
        own.base = buffer + (size_t)c->group->rank * count * c->element;
    }
    c->send = c->signature.operation == OPERATION_REDUCE_SCATTER ? all : own;
    c->recv = c->signature.operation == OPERATION_ALL_GATHER ? all : own;
    if (c->signature.operation == OPERATION_BROADCAST)
        c->send = (struct blocks){ 0 };
}

static ct_status make_trips(struct coalesced *list)
{
    ct_status status = CT_OK;
    size_t bytes;

    for (int i = 0; i < list->used && status == CT_OK;) {
        struct trip *trip = &list->trips[list->trip_count++];
        const int count = neighbours(&list->calls[i], list->used - i, &bytes);

        *trip = (struct trip){ .call = list->calls[i], .first = i, .count = count };
        list->calls[i].mark = NULL; /* the trip's now */
        if (count > 1)
            lay_out(trip, &list->calls[i], list->buffer);
        status = call_choose(&trip->call);
        if (count > 1)
            trip->call.signature.algorithm |= (uint32_t)count << SIGNATURE_ROW_BITS;
        i += count;
    }
    return status;
}

static ct_status check_all_apart(const struct coalesced *list)
{
    ct_status status = CT_OK;

    for (int i = 0; i < list->trip_count && status == CT_OK; i++)
        if (list->trips[i].count > 1)
            status = coalesce_check_apart(list->calls, list->trips[i].first, list->trips[i].count);
    return status;
}

/* ---- Travelling --------------------------------------------------------------- */

enum way { GATHER, SCATTER };

/* Each call's blocks into those of the trip, or back. */
static void copy_blocks(const struct trip *trip, const struct call *calls, int received,
                        enum way way)
{
    const struct call *c = &trip->call;
    size_t at = 0;

    for (int i = trip->first; i < trip->first + trip->count; i++) {
        const struct blocks *whole = received ? &c->recv : &c->send;
        const struct blocks *parts = received ? &calls[i].recv : &calls[i].send;

        for (int b = 0; b < whole->blocks; b++) {
            const struct span part = block_at(&calls[i], parts, b);
            char *place = block_at(c, whole, b).data + at;

            if (way == GATHER)
                copy_span(span_of(place, part.bytes), part.data);
            else
                copy_span(part, place);
        }
        at += call_bytes(&calls[i]);
    }
}

/* A broadcast has but one buffer, which the root gives and the others receive. */
static ct_status make_trip(struct trip *trip, const struct call *calls)
{
    const int one_way = trip->call.signature.operation == OPERATION_BROADCAST;
    const int is_root = call_is_root(&trip->call);
    ct_status status;

    if (trip->count > 1 && (!one_way || is_root))
        copy_blocks(trip, calls, one_way, GATHER);
    status = call_run_now(&trip->call);
    if (status == CT_OK && trip->count > 1 && !(one_way && is_root))
        copy_blocks(trip, calls, 1, SCATTER);
    return status;
}

/* What follows a failure would only say it again: the group is broken. */
static ct_status make_all(struct task *task)
{
    struct coalesced *list = (struct coalesced *)task;
    ct_status status = CT_OK;

    for (int i = 0; i < list->trip_count && status == CT_OK; i++)
        status = make_trip(&list->trips[i], list->calls);
    return status;
}

/* ---- The end -------------------------------------------------------------------- */

static ct_status plan(struct coalesced *list)
{
    size_t most = 1, bytes;
    ct_status status;

    for (int i = 0; i < list->used;) {
        i += neighbours(&list->calls[i], list->used - i, &bytes);
        most = bytes > most ? bytes : most;
    }
    list->trips = malloc((size_t)list->used * sizeof *list->trips);
    list->buffer = malloc(most);
    if (!list->trips || !list->buffer)
        return ct_fail(CT_ERR_NOMEM, "ct_coalesce_end: no memory for %d calls", list->used);
    status = make_trips(list);
    return status == CT_OK ? check_all_apart(list) : status;
}

static void release_list(void *owner)
{
    list_free(owner);
}

/* The calls that are on devices. */
static int are_all_on_devices(const struct coalesced *list)
{
    int all = list->used > 0;

    for (int i = 0; i < list->used; i++)
        all &= list->calls[i].place.space != NULL;
    return all;
}

static int may_all_hold_stream(const struct coalesced *list)
{
    int all = 1;

    for (int i = 0; i < list->used; i++)
        all &= !list->calls[i].place.space || device_may_hold_stream(&list->calls[i]);
    return all;
}

static ct_status start(ct_group *group, struct coalesced *list, ct_work **work)
{
    ct_work *w = malloc(sizeof *w);
    ct_status status;

    if (!w)
        return ct_fail(CT_ERR_NOMEM, "ct_coalesce_end: no memory for the work");
    *w = (ct_work){ .group = group,
                    .task = &list->task,
                    .holds_none = !may_all_hold_stream(list),
                    .verb = "coalesced calls",
                    .owner = list,
                    .release = release_list };
    status = queue_push(&group->queue, &list->task);
    w->queue = group->queue; /* made with its first task */
    if (status == CT_OK)
        *work = w;
    else
        free(w);
    return status;
}

static void abandon_list(struct task *task)
{
    list_free((struct coalesced *)task);
}

/* What comes later in the group's stream waits for them.  CT_ERR_UNSUPPORTED: no stream can. */
static ct_status enqueue(ct_group *group, struct coalesced *list)
{
    struct held_stream *held;
    ct_status status = stream_hold(list->calls[0].place, group->stream, &held);

    if (status != CT_OK)
        return status;
    list->task.sequels = &held->sequel;
    list->task.abandon = abandon_list;
    status = queue_push(&group->queue, &list->task);
    if (status != CT_OK)
        stream_let_go(held);
    return status;
}

static void number(ct_group *group, struct coalesced *list)
{
    const struct limit limit = group_limit(group);

    for (int i = 0; i < list->trip_count; i++) {
        struct call *c = &list->trips[i].call;

        call_number(c);
        if (c->limit.ms == 0)
            c->limit = limit;
    }
}

/* *goes_on: by itself, and has taken over the list. */
static ct_status make_list(ct_group *group, struct coalesced *list, ct_work **work, int *goes_on)
{
    ct_status status = plan(list);

    if (status != CT_OK)
        return status == CT_ERR_INVALID ? status : group_break(group, status);
    number(group, list);
    list->task.run = make_all;
    status = CT_ERR_UNSUPPORTED;
    if (work)
        status = start(group, list, work);
    else if (group->stream && are_all_on_devices(list) && may_all_hold_stream(list))
        status = enqueue(group, list);
    *goes_on = status == CT_OK;
    if (work || status != CT_ERR_UNSUPPORTED)
        return status == CT_OK ? CT_OK : group_break(group, status);
    queue_drain(group->queue);
    return make_all(&list->task);
}

ct_status ct_coalesce_end(ct_group *group, ct_work **work)
{
    struct coalesced *list;
    ct_status status;
    int goes_on = 0;

    if (work)
        *work = NULL;
    status = group_resolve_member(group, &group);
    if (status != CT_OK)
        return ct_fail_in(status, "ct_coalesce_end: ");
    list = group->coalesced;
    if (!list)
        return ct_fail(CT_ERR_INVALID,
                       "ct_coalesce_end: group %s collects no calls; ct_coalesce_begin() comes "
                       "first",
                       group->name);
    group->coalesced = NULL;
    if (!group->flat)
        messages_look(group->mesh); /* a root may end without having received */
    status = group_check(group);
    if (status == CT_OK && list->used > 0)
        status = make_list(group, list, work, &goes_on);
    if (!goes_on)
        list_free(list);
    return status;
}
