/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - waits for asynchronous calls and messages. */
#include "runtime/p2p/work.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/group/group.h"
#include "runtime/p2p/device_staging.h"
#include "runtime/types/dtype.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

static void free_kept(struct group_work *kept)
{
    ct_work *work = (ct_work *)kept;

    work->release(work->owner);
    free(work->landing);
    free(work);
}

void work_keep(ct_work *work)
{
    work->kept.free = free_kept;
    group_keep_work(work->group, &work->kept);
}

static void work_free(ct_work *work)
{
    group_forget_work(work->group, &work->kept);
    free_kept(&work->kept);
}

/* Waits until a received message may be copied to device memory, since the work is not done before.
 * Returns 0 if the deadline passed.  Returns 1 at once for other messages. */
static int is_clear(const ct_work *work, int64_t deadline)
{
    struct request *const request = work->request;

    return !request->copy || request->is_send || device_staging_is_clear(request, deadline);
}

static int is_done(ct_work *work)
{
    if (work->task)
        return queue_test(work->queue, work->task);
    return atomic_load(&work->group->failure.interrupted)
           || (request_poll(work->group->mesh, work->request) && is_clear(work, 0));
}

void message_describe(const ct_group *g, const struct request *request, const char *verb,
                      char *text, size_t size)
{
    const int named = request->peer == CT_ANY_SOURCE ? -1 : ct_group_rank(g, request->peer);
    char peer[160] = "anybody", here[160];

    if (named >= 0 && named == request->peer)
        snprintf(peer, sizeof peer, "rank %d", named);
    else if (named >= 0)
        snprintf(peer, sizeof peer, "rank %d (rank %d of %s)", named, request->peer, g->root->name);
    if (request->is_probe) {
        char tag[16] = "any";

        if (request->tag != CT_ANY_TAG)
            snprintf(tag, sizeof tag, "%d", request->tag);
        snprintf(text, size, "%s for a message from %s (tag %s) on group %s", verb, peer, tag,
                 group_here(g, here, sizeof here));
        return;
    }
    snprintf(text, size, "%s of %llu %s %s %s (tag %d) on group %s", verb,
             (unsigned long long)request->signature.count,
             dtype_name((ct_dtype)request->signature.dtype), request->is_send ? "to" : "from", peer,
             request->tag, group_here(g, here, sizeof here));
}

ct_status message_finish_by(ct_group *g, struct request *request, const char *verb, int *from,
                            const void *caller, const struct limit *limit, int64_t started)
{
    const int peer = request_peer(g->mesh, request);
    char what[200], how_long[128], where[200] = "";
    struct blame blame;
    ct_status status;

    record_message(&g->record, &request->signature, peer < 0 ? -1 : ct_group_rank(g, peer),
                   request->tag, request->is_send, caller);
    status = request_wait(g->mesh, request, started + limit->ms, &g->failure.interrupted);
    if (status == CT_OK && request->copy && !request->is_send)
        status = device_staging_land(request, started + limit->ms);
    device_staging_end(request);
    record_end(&g->record, 0, status == CT_OK ? CONTROL_IDLE : CONTROL_FAILED);
    if (from && status == CT_OK)
        *from = ct_group_rank(g, request->peer);
    if (status == CT_OK)
        return CT_OK;
    status = group_cause(g, status, 0);
    message_describe(g, request, verb, what, sizeof what);
    blame = ct_last_blame();
    if (status == CT_ERR_TIMEOUT && request->peer != CT_ANY_SOURCE)
        blame = late_peer(g, ct_group_rank(g, request->peer), where, sizeof where);
    timeout_gave_up(limit, started, how_long, sizeof how_long);
    if (status == CT_ERR_TIMEOUT)
        ct_fail_because(blame, status, "%s: %s%s", what, how_long, where);
    else
        ct_fail_in(status, "%s: ", what);
    group_note_blame(g);
    return status;
}

/* Starts the time limit now, since a message may have been ready for hours before a thread waits
 * for it. */
static ct_status message_finish(ct_group *g, struct request *request, const char *verb, int *from,
                                const void *caller)
{
    const struct limit limit = group_limit(g);

    return message_finish_by(g, request, verb, from, caller, &limit,
                             clock_of_start(limit.ms, clock_coarse_ns()));
}

/* Fails in a child of fork().  The work belongs to the parent process, which must still wait for
 * the work. */
static ct_status work_check_process(const ct_work *work, const char *call)
{
    return work->group->maker == this_process
               ? CT_OK
               : ct_fail_in(group_refuse_child(work->group), "%s: ", call);
}

static ct_status work_finish(ct_work *work, int *from, const void *caller)
{
    ct_status status;

    if (!work->task)
        return message_finish(work->group, work->request, work->kept.verb, from, caller);
    status = queue_wait(work->queue, work->task, NO_DEADLINE);
    if (from && work->landing && status == CT_OK)
        *from = work->landing->from;
    return status;
}

static ct_status wait_from(ct_work *work, int *from, const void *caller)
{
    ct_status status;

    if (!work)
        return CT_OK;
    status = work_check_process(work, "ct_wait");
    if (status != CT_OK)
        return status;
    status = work_finish(work, from, caller);
    work_free(work);
    return status;
}

ct_status ct_wait_from(ct_work *work, int *from)
{
    return wait_from(work, from, __builtin_return_address(0));
}

ct_status ct_wait(ct_work *work)
{
    return wait_from(work, NULL, __builtin_return_address(0));
}

ct_status ct_wait_for(ct_work *work, int timeout_ms)
{
    int64_t deadline;

    if (!work)
        return CT_OK;
    if (work_check_process(work, "ct_wait_for") != CT_OK)
        return CT_ERR_INVALID;
    deadline = deadline_after(timeout_ms);
    if (work->task) {
        const ct_status status = queue_wait(work->queue, work->task, deadline);

        if (status == CT_ERR_TIMEOUT && !queue_test(work->queue, work->task))
            return ct_fail(
                CT_ERR_TIMEOUT,
                "ct_wait_for: not done after %d ms; the work must still be passed to ct_wait()",
                timeout_ms);
    } else if (!(request_done_by(work->group->mesh, work->request, deadline,
                                 &work->group->failure.interrupted)
                 && is_clear(work, deadline))
               && !atomic_load(&work->group->failure.interrupted)) {
        return ct_fail(
            CT_ERR_TIMEOUT,
            "ct_wait_for: %s not done after %d ms; the work must still be passed to ct_wait()",
            work->kept.verb, timeout_ms);
    }
    return ct_wait(work);
}

ct_status ct_test(ct_work *work, int *done)
{
    if (!done)
        return ct_fail(CT_ERR_INVALID, "ct_test: the pointer for the answer is NULL");
    if (work && work_check_process(work, "ct_test") != CT_OK)
        return CT_ERR_INVALID;
    *done = !work || is_done(work);
    return CT_OK;
}

/* ---- Works that a thread of the program watches -------------------------------------------- */

ct_status ct_watch(ct_work *work, void *tag, int *done)
{
    if (!done || !tag)
        return ct_fail(CT_ERR_INVALID, "ct_watch: the tag or the pointer for the answer is NULL");
    *done = !work;
    if (!work)
        return CT_OK;
    if (work_check_process(work, "ct_watch") != CT_OK)
        return CT_ERR_INVALID;
    if (!work->task || work->queue != work->group->async.queue)
        return ct_fail(CT_ERR_UNSUPPORTED, "ct_watch: %s is not a collective", work->kept.verb);
    return queue_watch(work->queue, work->task, tag, done);
}

ct_status ct_watched(ct_group *group, void **tag)
{
    const ct_status status = group_resolve_member(group, &group);

    if (status != CT_OK)
        return ct_fail_in(status, "ct_watched: ");
    if (!tag)
        return ct_fail(CT_ERR_INVALID, "ct_watched: the pointer for the tag is NULL");
    *tag = group->async.queue ? queue_serve(group->async.queue) : NULL;
    return CT_OK;
}

ct_status ct_watch_end(ct_group *group)
{
    const ct_status status = group_resolve_member(group, &group);

    if (status != CT_OK)
        return ct_fail_in(status, "ct_watch_end: ");
    if (group->async.queue)
        queue_dismiss(group->async.queue);
    return CT_OK;
}
