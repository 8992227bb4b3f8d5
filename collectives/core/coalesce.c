/* SPDX-License-Identifier: Apache-2.0 */
/* coalesce.c - calls that are collected, and then travel together.
 *
 *   ct_coalesce_begin()   from now on call_run() hands each checked call to coalesce_add()
 *   ct_coalesce_end()     some make one trip, the others go alone (coalesce_plan.c)
 *                         -> the trips are numbered, as calls are
 *                         -> made here or on the group's thread, one after the other
 *
 * The list belongs to the group; a trip's task to its work. */
#include "collectives/core/coalesce.h"

#include <stdlib.h>

#include "collectives/core/coalesce_plan.h"
#include "runtime/p2p/stream_wait.h"
#include "runtime/p2p/work.h"
#include "runtime/util/log.h"

struct coalesced {
    struct task task; /* first: the trips are its task */
    struct call *calls;
    int used, room;
    struct trips trips;
};

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
    if (status == CT_OK && c.executor->prepare)
        status = c.executor->prepare(&c, 1);
    if (status == CT_OK)
        status = append(group->coalesced, &c);
    if (status == CT_OK)
        return CT_OK;
    call_forget(&c);
    return status == CT_ERR_INVALID ? status : group_fail(group, status);
}

/* ---- The end -------------------------------------------------------------------- */

/* What follows a failure would only say it again: the group is broken. */
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
        all &= list->calls[i].executor->may_hold_stream(&list->calls[i]);
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

/* Nobody asks how it fared; the next call on the group does. */
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

/* What comes later in the group's stream waits for them.  CT_ERR_UNSUPPORTED: no stream can. */
static ct_status enqueue(ct_group *group, struct coalesced *list)
{
    struct held_stream *held;
    ct_status status = stream_hold(list->calls[0].place, group->stream, &held);

    if (status != CT_OK)
        return status;
    list->task.sequels = &held->sequel;
    list->task.abandon = abandon_list;
    list->task.run = make_all_unowned;
    status = queue_push(&group->queue, &list->task);
    if (status != CT_OK)
        stream_let_go(held);
    return status;
}

static void number(ct_group *group, struct coalesced *list)
{
    const struct limit limit = group_limit(group);

    for (int i = 0; i < list->trips.count; i++) {
        struct call *c = &list->trips.trips[i].call;

        call_number(c);
        if (c->limit.ms == 0)
            c->limit = limit;
    }
}

/* *goes_on: by itself, and has taken over the list. */
static ct_status make_list(ct_group *group, struct coalesced *list, ct_work **work, int *goes_on)
{
    ct_status status = trips_plan(&list->trips, list->calls, list->used);

    if (status != CT_OK)
        return status == CT_ERR_INVALID ? status : group_fail(group, status);
    number(group, list);
    list->task.run = make_all;
    status = CT_ERR_UNSUPPORTED;
    if (work)
        status = start(group, list, work);
    else if (group->stream && are_all_on_devices(list) && may_all_hold_stream(list))
        status = enqueue(group, list);
    *goes_on = status == CT_OK;
    if (work || status != CT_ERR_UNSUPPORTED)
        return status == CT_OK ? CT_OK : group_fail(group, status);
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
