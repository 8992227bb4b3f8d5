/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - the steps of every collective before and after its algorithm.
 *
 *   check_arguments.c checks the arguments, in the same way for all operations.
 *   choose_algorithm.c chooses the algorithm, from facts that all ranks agree on.
 *   premul_sum scales the input and becomes sum.  The call gets its number and signature.
 *   The executor runs the call: in the caller's thread after the group's queue has drained, or on
 *   the queue's thread (async_call.c).
 *   A failure breaks the group.  Its error message begins with the call's name and number. */
#include "collectives/core/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/core/network_model.h"
#include "runtime/group/group.h"
#include "runtime/group/shm/direct.h"
#include "runtime/p2p/stream_wait.h"
#include "runtime/trace/trace.h"
#include "runtime/types/premul.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/task_queue.h"

/* Reduces sources[group rank] in the group's fold order.  If all ranks are on one host, that is the
 * order of the ranks, and the sources need no sorting. */
ct_status call_fold_to(const struct call *c, void *const *dst, int dsts, const void *const *sources,
                       size_t count, int streaming)
{
    struct fold fold = c->group->order.fold;
    const void **ordered;

    fold.dtype = call_dtype(c);
    fold.op = call_op(c);
    if (fold.nodes == 1) {
        combine_fold_to(&fold, dst, dsts, sources, count, streaming);
        return CT_OK;
    }
    ordered = malloc((size_t)c->group->size * sizeof *ordered);
    if (!ordered)
        return ct_fail(CT_ERR_NOMEM, "no memory to combine %d ranks", c->group->size);
    for (int i = 0; i < c->group->size; i++)
        ordered[i] = sources[c->group->order.fold_rank[i]];
    combine_fold_to(&fold, dst, dsts, ordered, count, streaming);
    free(ordered);
    return CT_OK;
}

/* ---- Running ------------------------------------------------------------- */

static ct_status fail_with_name(const struct call *c, ct_status status, int64_t started)
{
    char text[96], here[160], how_long[128] = "", late[200] = "", where[400] = "";
    struct blame blame;

    status = group_cause(c->group, status, c->signature.seq);
    blame = ct_last_blame();
    signature_describe(&c->signature, text, sizeof text);
    if (status == CT_ERR_TIMEOUT) {
        timeout_gave_up(&c->limit, started, how_long, sizeof how_long);
        blame = late_rank(c->group, c->signature.seq, blame, late, sizeof late);
        where_are_missing(c->group, c->signature.seq, where, sizeof where);
    }
    if (strncmp(ct_last_error(), text, strlen(text)) != 0) /* no path has added the name */
        ct_fail_because(blame, status, "%s on group %s: %s%s%s%s", text,
                        group_here(c->group, here, sizeof here), how_long, *how_long ? ": " : "",
                        *ct_last_error() ? ct_last_error() : late, where);
    return c->refused ? status : group_fail(c->group, status);
}

/* Returns the name of the algorithm, for the log and the trace.  Returns "device" for a call on
 * device memory, since its path is chosen only when the call runs. */
static const char *call_path_of(const struct call *c)
{
    return c->place.space ? "device" : c->algorithm->name;
}

/* Starts the trace event of the call.  The traced bytes are those of one rank's block or, if the
 * ranks' blocks differ in size, all bytes that this rank sends. */
static uint64_t begin_traced_call(const struct call *c)
{
    struct trace *trace = c->group->mesh->trace;
    const struct signature *s = &c->signature;

    if (!trace)
        return 0;
    return trace_begin_now(
        trace, &(struct trace_what){ .kind = TRACE_CALL,
                                     .id = s->seq,
                                     .bytes = s->count ? call_bytes(c) : blocks_bytes(c, &c->send),
                                     .peer = s->root,
                                     .signature = s,
                                     .algorithm = call_path_of(c),
                                     .group = c->group->traced });
}

enum { LOOKS_MS = 5 }; /* time between two checks for a failure of the group */

ct_status call_await_streams(const struct call *c)
{
    int64_t until = 0;

    while (!queue_drain_by(c->group->async.watches, until)) {
        const int64_t now = clock_ms();
        const ct_status status = group_check(c->group);

        if (status != CT_OK)
            return status;
        if (now >= c->deadline)
            return ct_fail(CT_ERR_TIMEOUT,
                           "the group's stream has not completed the earlier calls");
        until = now + LOOKS_MS < c->deadline ? now + LOOKS_MS : c->deadline;
    }
    return CT_OK;
}

ct_status call_run_now(struct call *c)
{
    const uint64_t now = clock_coarse_ns();
    const int64_t started = clock_of_start(c->limit.ms, now);
    uint64_t traced;
    ct_status status;

    call_choose_fastest(c);
    traced = begin_traced_call(c);

    fault_begin(c->group->mesh->faults, c->group, c->signature.operation, c->signature.seq);
    /* before group_begin(): if the group has failed, the report compares this call with others */
    record_begin(&c->group->record, &c->signature, 0, c->caller, now);
    status = group_begin(c->group, c->signature.seq);
    if (status != CT_OK) {
        record_end(&c->group->record, c->signature.seq, CONTROL_FAILED);
        trace_end(c->group->mesh->trace, traced, status);
        return status;
    }
    if (log_wants(LOG_DEBUG))
        log_line(LOG_DEBUG, "%s #%llu on group %s by %s", operation_name(c->signature.operation),
                 (unsigned long long)c->signature.seq, c->group->name, call_path_of(c));
    c->deadline = started + c->limit.ms;
    channel_call(c->group->mesh, &c->group->channel, &c->signature);
    if (c->group->host_shm)
        shm_group_begin_call(c->group->host_shm, &c->signature, c->deadline,
                             &c->group->failure.status);
    if (operation_is_barrier(c->signature.operation))
        status = call_await_streams(c);
    if (status == CT_OK)
        status = c->executor->run(c);
    if (status == CT_OK && c->signature.root >= 0
        && atomic_load_explicit(&c->group->channel.unexpected, memory_order_relaxed))
        status = calls_compare_unexpected(c->group->mesh, &c->group->channel);
    if (status == CT_OK)
        fault_end(c->group->mesh->faults);
    else
        status = fail_with_name(c, status, started);
    if (status != CT_OK && !c->refused && c->group->host_shm)
        shm_group_settle(c->group->host_shm);
    record_end(&c->group->record, c->signature.seq,
               status == CT_OK || c->refused ? CONTROL_IDLE : CONTROL_FAILED);
    trace_end(c->group->mesh->trace, traced, status);
    group_end(c->group);
    return status;
}

static ct_status host_run(struct call *c)
{
    return c->algorithm->run(c);
}

static int host_may_hold_stream(const struct call *c)
{
    (void)c;
    return 1;
}

static const struct executor host_executor = { .run = host_run,
                                               .may_hold_stream = host_may_hold_stream };

/* Returns the executor of a call.  For operations where a rank may have no block at all, the
 * buffers of a rank don't tell whether the call is on device memory.  Such a call gets the device
 * executor, which finds out together with the other ranks. */
static const struct executor *executor_of(const ct_group *group, int operation, struct place place)
{
    return place.space || !operation_sizes_are_agreed(operation) ? group->on_device.executor
                                                                 : &host_executor;
}

/* Hashes the counts for the signature, since all ranks must pass the same counts.  Never returns 0.
 */
static uint32_t hash_counts(const struct blocks *b)
{
    uint64_t hash = 1469598103934665603u;

    for (int i = 0; b->counts && i < b->blocks; i++)
        hash = (hash ^ b->counts[i]) * 1099511628211u;
    return (uint32_t)(hash ^ hash >> 32) | 1;
}

void call_make(struct call *c, const struct request_of_call *r, ct_group *group, struct place place)
{
    *c = (struct call){ .group = group,
                        .network = &group->algorithms.network->model,
                        .algorithms = r->algorithms,
                        .element = operation_is_barrier(r->operation) ? 1 : ct_dtype_size(r->dtype),
                        .send = r->send,
                        .recv = r->recv,
                        .wait_all = r->wait_all,
                        .caller = r->caller,
                        .place = place,
                        .signature = { .count = r->count,
                                       .operation = (uint8_t)r->operation,
                                       .dtype = (uint8_t)r->dtype,
                                       .op = (int16_t)(op_is_premul(r->op) ? CT_SUM
                                                       : r->op == NONE     ? -1
                                                                           : r->op),
                                       .root = r->root == NONE ? -1 : r->root } };
    c->executor = executor_of(group, r->operation, place);
    if (operation_has_counts(r->operation))
        c->signature.history =
            hash_counts(r->operation == OPERATION_ALL_GATHER_V ? &r->recv : &r->send);
}

void call_forget(struct call *c)
{
    if (c->mark)
        c->executor->forget(c);
    free(c->copied);
}

void call_number(struct call *c)
{
    c->signature.seq = ++c->group->seq;
    c->signature.history ^= c->group->history;
    c->group->history = signature_history(&c->signature);
}

/* Passes the call to the group's thread, which then owns the call.  Without a work returns
 * CT_ERR_UNSUPPORTED if no stream can wait for the call. */
static ct_status call_hand_over(const struct call *c, ct_work **work)
{
    ct_status status;

    if (work)
        return call_start(c, work);
    status = call_enqueue(c);
    if (status == CT_ERR_UNSUPPORTED)
        stream_log_host_waits(operation_name(c->signature.operation));
    return status;
}

/* Chooses the algorithm, and copies input that the caller may change before the call has run. */
static ct_status call_prepare(struct call *c, const struct request_of_call *r, int has_work)
{
    ct_status status = call_choose(c);

    if (status == CT_OK && c->executor->prepare)
        status = c->executor->prepare(c, has_work);
    if (status != CT_OK)
        return status;
    return has_work || c->stream_waits || op_is_premul(r->op)
               ? call_copy_inputs(c, r->op, has_work || c->stream_waits)
               : CT_OK;
}

/* Frees the call and returns status.  Breaks the group, except after CT_ERR_INVALID, to end the
 * waits of other ranks that are or will be in this call. */
static ct_status call_give_up(struct call *c, ct_status status)
{
    call_forget(c);
    return status == CT_ERR_INVALID ? status : group_fail(c->group, status);
}

/* Runs the call on the group's thread if the call has a work or a stream waits for it.  Otherwise
 * runs the call in this thread. */
static ct_status call_carry_out(struct call *c, ct_work **work)
{
    /* CT_ERR_UNSUPPORTED if the call is for this thread, or if no stream can wait for the call */
    ct_status status = work || c->stream_waits ? call_hand_over(c, work) : CT_ERR_UNSUPPORTED;

    if (status == CT_OK) /* the thread owns the call now */
        return CT_OK;
    if (work || status != CT_ERR_UNSUPPORTED)
        return call_give_up(c, status);
    queue_drain(c->group->async.queue);
    status = call_run_now(c); /* breaks the group if the call fails */
    call_forget(c);
    return status;
}

ct_status call_run(const struct request_of_call *r, ct_work **work)
{
    ct_group *group = NULL;
    struct place place;
    struct call c;
    ct_status status;

    if (work)
        *work = NULL;
    status = check_call(r, &group, &place);
    if (status != CT_OK) /* If the arguments are valid, the other ranks make this call too, so they
                            must learn that it failed. */
        return !group || status == CT_ERR_INVALID || status == CT_ERR_NOT_MEMBER
                   ? status
                   : group_fail(group, status);
    if (group->async.coalesced)
        return coalesce_add(r, group, place, work != NULL);
    if (r->root != NONE && !group->shm)
        /* sees other ranks' failures, since a root may make many calls without receiving */
        messages_look(group->mesh);
    status = group_check(group);
    if (status != CT_OK)
        return status;
    call_make(&c, r, group, place);
    status = call_prepare(&c, r, work != NULL);
    if (status != CT_OK)
        return call_give_up(&c, status);
    call_number(&c);
    c.limit = r->limit.ms > 0 ? r->limit : group_limit(group);
    return call_carry_out(&c, work);
}
