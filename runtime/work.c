/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - waiting for calls in flight. */
#include "runtime/work.h"

#include <stdlib.h>

#include "runtime/clock.h"

static void work_free(ct_work *work)
{
    work->release(work->owner);
    free(work);
}

static int is_done(ct_work *work)
{
    return work->task ? queue_test(work->group->queue, work->task)
                      : atomic_load(&work->group->halted)
                            || request_poll(work->group->mesh, work->request);
}

static int sender_of(const ct_work *work)
{
    return ct_group_rank(work->group, work->request->peer);
}

/* A message's time runs while somebody waits for it: it may lie for hours before. */
static ct_status finish_message(ct_work *work, int *from, const void *caller)
{
    ct_group *g = work->group;
    struct request *request = work->request;
    const struct limit limit = group_limit(g);
    const int peer = request_peer(g->mesh, request);
    ct_status status;

    record_message(&g->record, &request->signature, peer < 0 ? -1 : ct_group_rank(g, peer),
                   request->tag, request->is_send, caller);
    status = request_wait(g->mesh, request, deadline_after(limit.ms), &g->halted);
    record_end(&g->record, 0, status == CT_OK ? CONTROL_IDLE : CONTROL_FAILED);
    if (status != CT_OK)
        status = group_cause(g, status);
    if (status == CT_ERR_TIMEOUT)
        return ct_fail(
            status, "%s, rank %d, tag %d on group %s: nothing happened in %d ms (limit set by %s)",
            work->verb, work->request->peer < 0 ? work->request->peer : sender_of(work),
            work->request->tag, g->name, limit.ms, limit.by);
    if (status != CT_OK)
        return ct_fail_in(status, "%s on group %s: ", work->verb, g->name);
    if (from)
        *from = sender_of(work);
    return CT_OK;
}

static ct_status finish(ct_work *work, int *from, const void *caller)
{
    return work->task ? queue_wait(work->group->queue, work->task, NO_DEADLINE)
                      : finish_message(work, from, caller);
}

static ct_status wait_from(ct_work *work, int *from, const void *caller)
{
    ct_status status;

    if (!work)
        return CT_OK;
    status = finish(work, from, caller);
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
    deadline = deadline_after(timeout_ms);
    if (work->task) {
        const ct_status status = queue_wait(work->group->queue, work->task, deadline);

        if (status == CT_ERR_TIMEOUT && !queue_test(work->group->queue, work->task))
            return ct_fail(CT_ERR_TIMEOUT,
                           "ct_wait_for: not done after %d ms; the work is still "
                           "owed a ct_wait()",
                           timeout_ms);
    } else if (!request_done_by(work->group->mesh, work->request, deadline, &work->group->halted)
               && !atomic_load(&work->group->halted)) {
        return ct_fail(CT_ERR_TIMEOUT,
                       "ct_wait_for: %s not done after %d ms; the work is still "
                       "owed a ct_wait()",
                       work->verb, timeout_ms);
    }
    return ct_wait(work);
}

ct_status ct_test(ct_work *work, int *done)
{
    if (!done)
        return ct_fail(CT_ERR_INVALID, "ct_test: no place for the answer was given");
    *done = !work || is_done(work);
    return CT_OK;
}
