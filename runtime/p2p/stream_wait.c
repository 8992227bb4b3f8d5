/* SPDX-License-Identifier: Apache-2.0 */
/* stream_wait.c - ct_wait_on_stream(), which makes later work in a stream wait for a ct_work.  The
 * host does not wait.
 *
 *   The call holds the stream (space->close_gate()).
 *   A collective ends on its group's thread, which then releases the stream.
 *   A message ends in a thread that waits for it.  So the call makes this wait a task of another
 *   thread of the group.  The task waits, copies received bytes to the device, and releases the
 *   stream.
 *
 * The stream is released even if the work fails, since work on a device must not wait forever. */
#include "runtime/p2p/stream_wait.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "include/ct_cuda.h"
#include "runtime/p2p/work.h"
#include "runtime/util/clock.h"
#include "runtime/util/error.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

static void held_stream_release(struct sequel *sequel)
{
    struct held_stream *held = (struct held_stream *)sequel; /* sequel is the first field */

    held->space->open_gate(held->hold);
    free(held);
}

enum { HOLDS_MS = 10000 }; /* time limit for driver calls that enqueue */

ct_status stream_hold(struct place place, void *stream, struct queue *const *owner,
                      struct held_stream **held)
{
    struct held_stream *h = malloc(sizeof *h);
    struct gate_limit limit;
    ct_status status;
    void *before;
    int late;

    if (!h)
        return ct_fail(CT_ERR_NOMEM, "no memory to let a stream wait");
    *h = (struct held_stream){ .sequel = { .run = held_stream_release }, .space = place.space };
    /* This limit is for the driver calls.  The gate's task has not started, so it has no limit yet.
     */
    place.space->begin_limit(&limit, owner, deadline_after(HOLDS_MS));
    status = place.space->enter(&before);
    if (status == CT_OK) {
        status = place.space->close_gate(place.device, stream, owner, &h->hold);
        place.space->leave(before);
    }
    late = place.space->set_limit(&limit, NO_DEADLINE);
    place.space->end_limit(&limit);
    if (status == CT_OK && late) {
        place.space->open_gate(h->hold);
        status = place.space->fail_late();
    }
    if (status == CT_OK)
        *held = h;
    else
        free(h);
    return status;
}

void stream_let_go(struct held_stream *held)
{
    held_stream_release(&held->sequel);
}

void stream_log_host_waits(const char *call)
{
    static _Atomic int said;

    if (!atomic_exchange(&said, 1))
        log_line(LOG_INFO, "%s: the host waits instead of the stream: %s", call, ct_last_error());
}

/* ---- Messages that end on a thread of the group ----------------------------------- */

/* Fails the group, since streams continued without this message and the messages behind it. */
static ct_status fail_late(const struct landing *landing, ct_status status)
{
    const ct_work *work = landing->work;
    char what[600];

    if (status == CT_OK)
        message_describe(work->group, work->request, work->kept.verb, what, sizeof what);
    else
        snprintf(what, sizeof what, "%s", ct_last_error());
    status = landing->space->fail_late();
    ct_fail_in(status, "%s: ", what);
    return group_fail(work->group, status);
}

static ct_status landing_run(struct task *task)
{
    struct landing *landing = (struct landing *)task; /* task is the first field */
    const ct_work *work = landing->work;
    const struct limit *limit = &landing->limit;
    const int64_t started = clock_of_start(limit->ms, clock_coarse_ns());
    struct gate_limit gates;
    ct_status status;

    landing->space->begin_limit(&gates, &work->group->async.landings,
                                started + limit->ms + DRIVER_LATE_MS);
    status = message_finish_by(work->group, work->request, work->kept.verb, &landing->from,
                               landing->caller, limit, started);
    if (landing->space->set_limit(&gates, NO_DEADLINE))
        status = fail_late(landing, status);
    landing->space->end_limit(&gates);
    return status;
}

static ct_status begin_landing(ct_work *work, const struct space *space, const void *caller)
{
    struct landing *landing = malloc(sizeof *landing);
    ct_status status;

    if (!landing)
        return ct_fail(CT_ERR_NOMEM, "no memory to wait for the %s", work->kept.verb);
    *landing = (struct landing){ .task = { .run = landing_run },
                                 .work = work,
                                 .space = space,
                                 .caller = caller,
                                 .limit = group_limit(work->group) };
    status = queue_push(&work->group->async.landings, &landing->task);
    if (status != CT_OK) {
        free(landing);
        return status;
    }
    work->landing = landing;
    work->task = &landing->task;
    work->queue = work->group->async.landings;
    return CT_OK;
}

/* ---- The call ------------------------------------------------------------------------ */

static ct_status ends_by_itself(ct_work *work, const struct space *space, const void *caller)
{
    return work->task ? CT_OK : begin_landing(work, space, caller);
}

static ct_status host_waits(ct_work *work, const struct space *space, const void *caller)
{
    const ct_status status = ends_by_itself(work, space, caller);

    if (status == CT_OK)
        queue_wait(work->queue, work->task, NO_DEADLINE); /* ct_wait() returns the work's status */
    return status;
}

/* Checks the stream of a work for which the host will wait.  Returns CT_ERR_INVALID if the stream
 * is captured; then the host does not wait. */
static ct_status check_stream(struct place place, void *stream)
{
    void *before, *mark = NULL;
    ct_status status = place.space->enter(&before);

    if (status != CT_OK)
        return status;
    status = place.space->mark(place.device, stream, &mark);
    if (mark)
        place.space->forget(place.device, mark);
    place.space->leave(before);
    return status;
}

/* Returns the queue with the thread that ends the work. */
static struct queue *const *queue_of(const ct_work *work)
{
    return work->task && work->queue == work->group->async.queue ? &work->group->async.queue
                                                                 : &work->group->async.landings;
}

/* Makes the stream wait for the work.  Holds the stream first, so that the time limit of a message
 * does not start if this fails.  If the driver can't or must not hold the stream, the host waits,
 * and the program must still call ct_wait(). */
static ct_status stream_wait_for(ct_work *work, struct place place, void *stream,
                                 const void *caller)
{
    struct held_stream *held = NULL;
    ct_status status = work->holds_none ? check_stream(place, stream)
                                        : stream_hold(place, stream, queue_of(work), &held);

    if (status == CT_ERR_UNSUPPORTED) {
        stream_log_host_waits("ct_wait_on_stream");
        status = CT_OK;
    }
    if (status == CT_ERR_TIMEOUT) /* streams that waited for other works have continued */
        return group_fail(work->group, status);
    if (status != CT_OK)
        return status;
    if (!held)
        return host_waits(work, place.space, caller);
    status = ends_by_itself(work, place.space, caller);
    if (status == CT_OK)
        queue_when_done(work->queue, work->task, &held->sequel);
    else
        stream_let_go(held);
    return status;
}

ct_status ct_wait_on_stream(ct_work *work, void *stream)
{
    const void *const caller = __builtin_return_address(0);
    struct place place;
    ct_status status;

    if (!work)
        return CT_OK;
    if (work->group->maker != this_process)
        return ct_fail_in(group_refuse_child(work->group), "ct_wait_on_stream: ");
    status = place_current(&place);
    if (status == CT_OK)
        status = stream_wait_for(work, place, stream, caller);
    return status == CT_OK ? CT_OK : ct_fail_in(status, "ct_wait_on_stream: ");
}
