/* SPDX-License-Identifier: Apache-2.0 */
/* coalesce_plan.c - which collected calls travel together, and how.
 *
 *   trips_plan()   neighbours of one kind that have few bytes make one trip: a call over a buffer
 *                  in which theirs lie behind each other; the others go alone
 *   trip_make()    gathered, run (call.c), scattered
 *
 * Which calls share a trip is a function of what all ranks agree on.  How many they are is in the
 * signature of the trip, and so is a hash of their counts: ranks whose lists differ find out.  Each
 * element is folded as it would be alone, so the bits are the same. */
#include "collectives/core/coalesce_plan.h"

#include <stdlib.h>

#include "collectives/core/coalesce.h"
#include "collectives/core/sendrecv.h"

/* Beyond these a call alone costs less than to copy it twice; measured, docs/algorithms.md. */
#define MOST_OF_ONE ((size_t)8 << 10)
#define MOST_OF_TRIP ((size_t)256 << 10)

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

static ct_status lay_out_all(struct trips *trips, struct call *calls, int used)
{
    ct_status status = CT_OK;
    size_t bytes;

    for (int i = 0; i < used && status == CT_OK;) {
        struct trip *trip = &trips->trips[trips->count++];
        const int count = neighbours(&calls[i], used - i, &bytes);

        *trip = (struct trip){ .call = calls[i], .first = i, .count = count };
        calls[i].mark = NULL; /* the trip's now */
        if (count > 1)
            lay_out(trip, &calls[i], trips->buffer);
        status = call_choose(&trip->call);
        if (count > 1)
            trip->call.signature.algorithm |= (uint32_t)count << SIGNATURE_ROW_BITS;
        i += count;
    }
    return status;
}

static ct_status check_all_apart(const struct trips *trips, const struct call *calls)
{
    ct_status status = CT_OK;

    for (int i = 0; i < trips->count && status == CT_OK; i++)
        if (trips->trips[i].count > 1)
            status = coalesce_check_apart(calls, trips->trips[i].first, trips->trips[i].count);
    return status;
}

ct_status trips_plan(struct trips *trips, struct call *calls, int used)
{
    size_t most = 1, bytes;
    ct_status status;

    for (int i = 0; i < used;) {
        i += neighbours(&calls[i], used - i, &bytes);
        most = bytes > most ? bytes : most;
    }
    trips->trips = malloc((size_t)used * sizeof *trips->trips);
    trips->buffer = malloc(most);
    if (!trips->trips || !trips->buffer)
        return ct_fail(CT_ERR_NOMEM, "ct_coalesce_end: no memory for %d calls", used);
    status = lay_out_all(trips, calls, used);
    return status == CT_OK ? check_all_apart(trips, calls) : status;
}

void trips_forget(struct trips *trips)
{
    for (int i = 0; i < trips->count; i++) {
        struct call *c = &trips->trips[i].call;

        if (c->mark)
            c->executor->forget(c);
    }
    free(trips->trips);
    free(trips->buffer);
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
ct_status trip_make(struct trip *trip, const struct call *calls)
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
