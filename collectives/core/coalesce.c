/* SPDX-License-Identifier: Apache-2.0 */
/* coalesce.c - collects calls, and runs small neighbouring calls of a kind as one.
 *
 *   ct_coalesce_begin()   From now on call_run() passes each checked call to coalesce_add().
 *   ct_coalesce_end()     Neighbouring calls of one kind with few bytes become one trip.  A trip is
 *                         a call over a buffer that holds the blocks of its calls one after the
 *                         other.  Any other call becomes a trip alone.
 *                         The trips are numbered like calls.
 *                         The trips run one after the other, in this thread or on the group's
 *                         thread.  A trip gathers the blocks into the buffer, runs (call.c), and
 *                         scatters the results back.
 *
 * Only facts that all ranks agree on decide which calls share a trip.  The trip's signature has the
 * number of its calls and a hash of their counts, so ranks with different lists get an error.  Each
 * element is folded as in a call alone, so the result has the same bits.
 *
 * A trip reads the input of all its calls before it writes the output of any.  So no call of a trip
 * may write memory that another call reads or writes.  To check this, the calls' blocks are sorted
 * by address (mostly they are in order already) and compared in one pass.
 *
 * The group owns the list of calls until ct_coalesce_end() makes a task of the list. */
#include "collectives/core/call.h"

#include <stdlib.h>

#include "collectives/core/sendrecv.h"
#include "runtime/p2p/stream_wait.h"
#include "runtime/p2p/work.h"
#include "runtime/util/log.h"

/* Bytes above which a call runs alone, since two copies of the bytes would cost more than a call.
 * Measured: docs/algorithms.md. */
#define MOST_OF_ONE ((size_t)8 << 10)
#define MOST_OF_TRIP ((size_t)256 << 10)

/* A call that does the work of calls[first] and of the count - 1 calls behind calls[first]. */
struct trip {
    struct call call;
    int first, count;
};

struct trips {
    struct trip *trips;
    int count;
    char *buffer; /* all trips use this buffer, one after the other */
};

struct coalesced {
    struct task task; /* first, so that a pointer to the task also points to the list */
    struct call *calls;
    int used, room;
    struct trips trips;
};

static void trips_forget(struct trips *trips)
{
    for (int i = 0; i < trips->count; i++) {
        struct call *c = &trips->trips[i].call;

        if (c->mark)
            c->executor->forget(c);
    }
    free(trips->trips);
    free(trips->buffer);
}

static void list_free(struct coalesced *list)
{
    for (int i = 0; i < list->used; i++)
        call_forget(&list->calls[i]);
    trips_forget(&list->trips);
    free(list->calls);
    free(list);
}

void coalesce_drop(ct_group *group)
{
    struct coalesced *list = group->async.coalesced;

    if (!list)
        return;
    if (list->used > 0)
        log_line(LOG_WARN,
                 "group %s, rank %d: destroyed without ct_coalesce_end(): %d calls were not made",
                 group->name, group->rank, list->used);
    group->async.coalesced = NULL;
    list_free(list);
}

/* ---- Collecting ----------------------------------------------------------- */

ct_status ct_coalesce_begin(ct_group *group)
{
    ct_status status = group_resolve_member(group, &group);

    if (status != CT_OK)
        return ct_fail_in(status, "ct_coalesce_begin: ");
    if (group->async.coalesced)
        return ct_fail(CT_ERR_INVALID,
                       "ct_coalesce_begin: group %s collects calls already (%d so far); "
                       "ct_coalesce_end() comes first",
                       group->name, group->async.coalesced->used);
    status = group_check(group);
    if (status != CT_OK)
        return status;
    group->async.coalesced = calloc(1, sizeof *group->async.coalesced);
    return group->async.coalesced
               ? CT_OK
               : ct_fail(CT_ERR_NOMEM, "ct_coalesce_begin: no memory for a list");
}

static ct_status coalesce_append(struct coalesced *list, const struct call *c)
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
                       "%s: group %s collects calls, and a collected call has no work; pass NULL "
                       "here and &work to ct_coalesce_end()",
                       operation_name(r->operation), group->name);
    call_make(&c, r, group, place);
    c.limit = r->limit;
    status = call_copy_inputs(&c, r->op, 1);
    if (status == CT_OK && c.executor->prepare)
        status = c.executor->prepare(&c, 1);
    if (status == CT_OK)
        status = coalesce_append(group->async.coalesced, &c);
    if (status == CT_OK)
        return CT_OK;
    call_forget(&c);
    return status == CT_ERR_INVALID ? status : group_fail(group, status);
}

/* ---- Buffers that overlap ---------------------------------------------------- */

/* A block of a call that shares a trip. */
struct coalesced_piece {
    uintptr_t from, to;
    int call, written;
};

/* The two furthest ends of the pieces so far.  The two belong to different calls. */
struct extent {
    uintptr_t to[2];
    int call[2];
};

static void extend(struct extent *e, const struct coalesced_piece *piece)
{
    const int nearer = e->call[0] != piece->call && e->to[0] >= piece->to;

    if (!nearer && e->call[0] != piece->call) {
        e->to[1] = e->to[0];
        e->call[1] = e->call[0];
        e->call[0] = piece->call;
    }
    if (e->to[nearer] < piece->to) {
        e->to[nearer] = piece->to;
        e->call[nearer] = piece->call;
    }
}

static int reaches(const struct extent *e, const struct coalesced_piece *piece)
{
    return e->to[e->call[0] == piece->call] > piece->from;
}

static int by_place(const void *a, const void *b)
{
    const struct coalesced_piece *first = a, *second = b;

    return (first->from > second->from) - (first->from < second->from);
}

static int add_pieces(const struct call *c, const struct blocks *b, int call, int written,
                      struct coalesced_piece *pieces)
{
    int n = 0;

    for (int i = 0; i < b->blocks; i++) {
        const struct span block = block_at(c, b, i);

        if (block.bytes > 0)
            pieces[n++] =
                (struct coalesced_piece){ (uintptr_t)block.data,
                                          (uintptr_t)block.data + block.bytes, call, written };
    }
    return n;
}

static ct_status coalesce_check_pieces(const struct call *calls, struct coalesced_piece *pieces,
                                       int n)
{
    struct extent all = { .call = { -1, -1 } }, written = all;
    int in_order = 1;

    for (int i = 1; i < n && in_order; i++)
        in_order = pieces[i - 1].from <= pieces[i].from;
    if (!in_order)
        qsort(pieces, (size_t)n, sizeof *pieces, by_place);
    for (int i = 0; i < n; i++) {
        if (reaches(pieces[i].written ? &all : &written, &pieces[i]))
            return ct_fail(CT_ERR_INVALID,
                           "ct_coalesce_end: the buffers of call %d since ct_coalesce_begin(), %s, "
                           "overlap those of another call that is sent with it; no call was made",
                           pieces[i].call + 1,
                           operation_name(calls[pieces[i].call].signature.operation));
        extend(&all, &pieces[i]);
        if (pieces[i].written)
            extend(&written, &pieces[i]);
    }
    return CT_OK;
}

static ct_status check_apart(const struct call *calls, int first, int count)
{
    size_t most = 1;
    struct coalesced_piece *pieces;
    ct_status status;
    int n = 0;

    for (int i = first; i < first + count; i++)
        most += (size_t)(calls[i].send.blocks + calls[i].recv.blocks);
    pieces = malloc(most * sizeof *pieces);
    if (!pieces)
        return ct_fail(CT_ERR_NOMEM, "ct_coalesce_end: no memory to compare %d calls", count);
    for (int i = first; i < first + count; i++) {
        n += add_pieces(&calls[i], &calls[i].send, i, 0, pieces + n);
        n += add_pieces(&calls[i], &calls[i].recv, i, 1, pieces + n);
    }
    status = coalesce_check_pieces(calls, pieces, n);
    free(pieces);
    return status;
}

/* ---- What goes together ------------------------------------------------------ */

/* Returns the bytes of the trip's buffer that the call needs.  If these are more than MOST_OF_ONE,
 * the call runs alone. */
static size_t trip_bytes(const struct call *c)
{
    const size_t p = (size_t)c->group->size;

    if (c->place.space)
        return MOST_OF_TRIP; /* the host can't gather device memory */
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

/* Returns how many calls, from the first on, share a trip.  Sets *bytes to the size of the trip's
 * buffer. */
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

/* Makes trip->call, a copy of the trip's first call, a call for all calls of the trip.  The blocks
 * of trip->call are in `buffer`, in place. */
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
        calls[i].mark = NULL; /* the trip owns the mark now */
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
            status = check_apart(calls, trips->trips[i].first, trips->trips[i].count);
    return status;
}

static ct_status trips_plan(struct trips *trips, struct call *calls, int used)
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

/* ---- Travelling --------------------------------------------------------------- */

enum direction { GATHER, SCATTER };

/* Copies each call's blocks to the trip's blocks (GATHER), or back (SCATTER).  If `received` is 1,
 * copies the blocks of recv, else those of send. */
static void copy_blocks(const struct trip *trip, const struct call *calls, int received,
                        enum direction direction)
{
    const struct call *c = &trip->call;
    size_t at = 0;

    for (int i = trip->first; i < trip->first + trip->count; i++) {
        const struct blocks *whole = received ? &c->recv : &c->send;
        const struct blocks *parts = received ? &calls[i].recv : &calls[i].send;

        for (int b = 0; b < whole->blocks; b++) {
            const struct span part = block_at(&calls[i], parts, b);
            char *place = block_at(c, whole, b).data + at;

            if (direction == GATHER)
                copy_span(span_of(place, part.bytes), part.data);
            else
                copy_span(part, place);
        }
        at += call_bytes(&calls[i]);
    }
}

/* Runs the trip in this thread.  A broadcast has one buffer, which the root sends and the other
 * ranks receive. */
static ct_status trip_make(struct trip *trip, const struct call *calls)
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

/* ---- The end -------------------------------------------------------------------- */

/* Runs all trips.  Stops at a failure, since a failure breaks the group and later trips would fail,
 * too. */
static ct_status make_all(struct task *task)
{
    struct coalesced *list = (struct coalesced *)task;
    ct_status status = CT_OK;

    for (int i = 0; i < list->trips.count && status == CT_OK; i++)
        status = trip_make(&list->trips.trips[i], list->calls);
    return status;
}

static void release_list(void *owner)
{
    list_free(owner);
}

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
        all &= list->calls[i].executor->may_hold_stream(&list->calls[i]);
    return all;
}

static int suits_any_thread(const struct coalesced *list)
{
    int all = 1;

    for (int i = 0; i < list->used; i++)
        all &= call_suits_any_thread(&list->calls[i]);
    return all;
}

static ct_status coalesce_start(ct_group *group, struct coalesced *list, ct_work **work)
{
    ct_work *w = malloc(sizeof *w);
    ct_status status;

    if (!w)
        return ct_fail(CT_ERR_NOMEM, "ct_coalesce_end: no memory for the work");
    *w = (ct_work){ .group = group,
                    .task = &list->task,
                    .holds_none = !may_all_hold_stream(list),
                    .kept.verb = "coalesced calls",
                    .owner = list,
                    .release = release_list };
    list->task.suits_waiters = suits_any_thread(list);
    status = queue_push(&group->async.queue, &list->task);
    if (status != CT_OK) {
        free(w);
        return status;
    }
    w->queue = group->async.queue; /* the first queue_push() created it */
    work_keep(w);
    *work = w;
    return CT_OK;
}

/* Runs all trips and logs a failure, since no work holds the status.  The next call on the group
 * returns the failure. */
static ct_status make_all_unowned(struct task *task)
{
    const ct_group *group = ((struct coalesced *)task)->calls[0].group;
    const ct_status status = make_all(task);

    if (status != CT_OK)
        log_line(LOG_WARN, "group %s, rank %d: collected calls in a stream failed: %s", group->name,
                 group->rank, ct_last_error());
    return status;
}

static void abandon_list(struct task *task)
{
    list_free((struct coalesced *)task);
}

/* Makes the list a task of the group's thread.  Later work in the group's stream waits for the
 * task.  Returns CT_ERR_UNSUPPORTED if no stream can wait. */
static ct_status coalesce_enqueue(ct_group *group, struct coalesced *list)
{
    struct held_stream *held;
    ct_status status =
        stream_hold(list->calls[0].place, group->on_device.stream, &group->async.queue, &held);

    if (status != CT_OK)
        return status;
    list->task.sequels = &held->sequel;
    list->task.abandon = abandon_list;
    list->task.run = make_all_unowned;
    status = queue_push(&group->async.queue, &list->task);
    if (status != CT_OK)
        stream_let_go(held);
    return status;
}

static void coalesce_number(ct_group *group, struct coalesced *list)
{
    const struct limit limit = group_limit(group);

    for (int i = 0; i < list->trips.count; i++) {
        struct call *c = &list->trips.trips[i].call;

        call_number(c);
        if (c->limit.ms == 0)
            c->limit = limit;
    }
}

/* Runs the trips.  Sets *goes_on to 1 if the group's thread runs the trips and owns the list. */
static ct_status make_list(ct_group *group, struct coalesced *list, ct_work **work, int *goes_on)
{
    ct_status status = trips_plan(&list->trips, list->calls, list->used);

    if (status != CT_OK)
        return status == CT_ERR_INVALID ? status : group_fail(group, status);
    coalesce_number(group, list);
    list->task.run = make_all;
    status = CT_ERR_UNSUPPORTED;
    if (work)
        status = coalesce_start(group, list, work);
    else if (group->on_device.stream && are_all_on_devices(list) && may_all_hold_stream(list))
        status = coalesce_enqueue(group, list);
    *goes_on = status == CT_OK;
    if (work || status != CT_ERR_UNSUPPORTED)
        return status == CT_OK ? CT_OK : group_fail(group, status);
    queue_drain(group->async.queue);
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
    list = group->async.coalesced;
    if (!list)
        return ct_fail(CT_ERR_INVALID,
                       "ct_coalesce_end: group %s collects no calls; ct_coalesce_begin() comes "
                       "first",
                       group->name);
    group->async.coalesced = NULL;
    if (!group->shm)
        /* sees failures of other ranks, since a root may make many calls without receiving */
        messages_look(group->mesh);
    status = group_check(group);
    if (status == CT_OK && list->used > 0)
        status = make_list(group, list, work, &goes_on);
    if (!goes_on)
        list_free(list);
    return status;
}
