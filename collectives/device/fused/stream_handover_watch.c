/* SPDX-License-Identifier: Apache-2.0 */
/* stream_handover_watch.c - who watches over calls that streams hand over to each other.
 *
 * Nobody waits in such a call, so a thread of the group's (group->watches) waits for the stream to
 * pass it, and hears meanwhile what becomes of the other ranks.  It does nothing else: a message
 * may come after calls that wait for this thread (handover_turn()).
 *
 *   a rank is gone, or has given up, or the time is over
 *   -> the group breaks
 *   -> the leaders' work is called off: what has not begun does nothing
 *   -> a leader lets its own stream go
 *   -> each waits until the leaders' are over, then lets its own stream go
 *
 * so that nobody's buffers are freed under a leader. */
#include "collectives/device/fused/stream_handover.h"

#include <stdio.h>
#include <stdlib.h>

#include "collectives/device/fused/fused_group.h"
#include "collectives/device/group/liveness.h"
#include "runtime/group/device_wait.h"
#include "runtime/group/shm_group.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/task_queue.h"

enum { OTHERS_MS = 20 };

/* A call that its stream has not come to the end of. */
struct watched {
    struct task task; /* first: to wait for that is its task */
    struct call call; /* its buffers and arrays may be gone */
    void *worked;     /* as in struct handover; NULL: that is `mark` */
    void *mark;
};

/* What this rank's stream waits for: as a leader; as a rank. */
void handover_let_go(const ct_group *group, int kind)
{
    const struct leaders *l = device_leaders(group);

    for (int i = 0; i < l->count && kind == OVER; i++)
        if (i != l->mine)
            atomic_store(handover_word(group, group->rank, i, OVER), 1);
    for (int i = 0; i < group->size && kind == READY && l->mine >= 0; i++)
        if (i != group->rank)
            atomic_store(handover_word(group, i, l->mine, READY), 1);
}

/* Again and again: what was let go takes its words back, and the next one waits for them.  A stream
 * that stands still for something else will come to them later. */
static int let_go_until(const struct watched *w, int kind, void *mark)
{
    const struct space *space = w->call.place.space;
    const int64_t deadline = deadline_after(FLAT_DEVICE_SETTLING_MS);
    ct_status status;

    do {
        handover_let_go(w->call.group, kind);
        status = space->wait_for(w->call.place.device, mark, clock_ms() + 1, NULL);
    } while (status == CT_ERR_TIMEOUT && clock_ms() < deadline);
    if (status == CT_ERR_TIMEOUT)
        fused_of(w->call.group)->handover.waited_for = 1;
    return status != CT_ERR_TIMEOUT;
}

static void has_worked(const struct watched *w)
{
    if (device_leaders(w->call.group)->mine >= 0 && w->call.group->flat)
        flat_untouch_in_stream(w->call.group->flat);
}

/* The group is broken.  What comes later in this rank's stream may be to free its buffers: not
 * while a leader is at them.  0: it stands still nevertheless. */
static int let_all_go(const struct watched *w)
{
    handover_call_off(w->call.group);
    if (device_leaders(w->call.group)->mine >= 0
        && let_go_until(w, READY, w->worked ? w->worked : w->mark))
        has_worked(w);
    if (w->call.group->flat)
        flat_await_untouched(w->call.group->flat); /* what is offered is of a later call */
    return let_go_until(w, OVER, w->mark);
}

/* Nobody else may be waiting for the ranks whose streams this one waits for. */
static ct_status wait_among_others(struct call *c, void *mark)
{
    struct watch others = { .call = c };
    ct_status status = CT_ERR_TIMEOUT;

    while (status == CT_ERR_TIMEOUT) {
        const int64_t soon = clock_ms() + OTHERS_MS;
        const int64_t until = soon < c->deadline ? soon : c->deadline;

        status = device_wait(c->group, c->place, mark, until, &c->group->failure.status);
        if (status == CT_ERR_TIMEOUT && until == c->deadline)
            break;
        if (status == CT_ERR_TIMEOUT && watch_look(&others) != CT_OK)
            status = CT_ERR_PEER;
    }
    watch_end(&others);
    return status;
}

static ct_status watch_in(struct watched *w)
{
    struct call *c = &w->call;
    char text[96], here[160], words[512];
    ct_status status;

    /* Those before it in the stream had their own time. */
    c->deadline = deadline_after(c->limit.ms);
    status = wait_among_others(c, w->mark);
    if (status == CT_OK) {
        has_worked(w);
        c->place.space->call_leaves_stream();
        return CT_OK;
    }
    status = group_cause(c->group, status);
    snprintf(words, sizeof words, "%s", ct_last_error());
    signature_describe(&c->signature, text, sizeof text);
    ct_fail(status, "%s on group %s, in its stream: %s", text,
            group_here(c->group, here, sizeof here), words);
    log_line(LOG_WARN, "%s", ct_last_error());
    status = group_fail(c->group, status);
    if (let_all_go(w))
        c->place.space->call_leaves_stream();
    return status;
}

static ct_status watch(struct task *task)
{
    struct watched *w = (struct watched *)task;
    const struct space *space = w->call.place.space;
    void *before;
    ct_status status = space->enter(&before);

    if (status != CT_OK)
        return status;
    status = watch_in(w);
    space->forget(w->call.place.device, w->mark);
    if (w->worked)
        space->forget(w->call.place.device, w->worked);
    space->leave(before);
    return status;
}

static void abandon(struct task *task)
{
    free(task);
}

ct_status handover_watch(const struct call *c)
{
    struct handover *h = &fused_of(c->group)->handover;
    struct watched *w = malloc(sizeof *w);
    ct_status status;

    if (!w)
        return ct_fail(CT_ERR_NOMEM, "no memory to watch a stream");
    *w = (struct watched){ .task = { .run = watch, .abandon = abandon },
                           .call = *c,
                           .worked = h->worked };
    status = c->place.space->mark(c->place.device, c->group->stream, &w->mark);
    if (status == CT_OK) {
        status = queue_push(&c->group->watches, &w->task);
        if (status != CT_OK)
            c->place.space->forget(c->place.device, w->mark);
    }
    if (status == CT_OK)
        h->worked = NULL;
    else
        free(w);
    return status;
}
