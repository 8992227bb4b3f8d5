/* SPDX-License-Identifier: Apache-2.0 */
/* send_recv.c - ct_send, ct_recv, their asynchronous forms, and batches of messages.
 *
 * Each call checks its arguments.  Then request.c starts the message, and message_finish_by() ends
 * it.  A batch (ct_batch_isend_irecv) starts many messages together.  It first checks all messages
 * and makes requests of them.  Then it posts the receives and queues the sends, and writes all
 * sends to the same peer at once.  The call waits for all messages, or returns a work for each
 * message. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/device/memory_kind.h"
#include "runtime/p2p/device_staging.h"
#include "runtime/p2p/work.h"
#include "runtime/trace/trace.h"
#include "runtime/types/dtype.h"
#include "runtime/util/clock.h"

/* A send or receive as its caller describes it. */
struct transfer {
    ct_group *group;
    const char *verb;
    struct signature signature;
    size_t bytes;
    int peer; /* rank in the mesh, or CT_ANY_SOURCE */
    int tag;
    struct place place; /* the kind of memory of the buffer, and its device */
};

/* Checks the arguments, before the call changes anything.  Sets all fields of *t except group and
 * verb, which the caller has set. */
static ct_status transfer_check(struct transfer *t, const void *buf, size_t count, ct_dtype dtype,
                                int peer, int tag, int is_send)
{
    const size_t element = ct_dtype_size(dtype);
    ct_status status;

    if (element == 0)
        return ct_fail(CT_ERR_INVALID, "%s: %d is not a dtype", t->verb, (int)dtype);
    if (count > PTRDIFF_MAX / element)
        return ct_fail(CT_ERR_INVALID, "%s: %zu elements of %s are more than memory can hold",
                       t->verb, count, dtype_name(dtype));
    if (!buf && count > 0)
        return ct_fail(CT_ERR_INVALID, "%s: the buffer is NULL but the count is %zu", t->verb,
                       count);
    if (tag < 0)
        return ct_fail(CT_ERR_INVALID, "%s: tag %d is negative; tags are 0 or more", t->verb, tag);
    if (!(peer == CT_ANY_SOURCE && !is_send) && (peer < 0 || peer >= t->group->size))
        return ct_fail(CT_ERR_INVALID, "%s: rank %d is not in 0..%d, the ranks of group %s",
                       t->verb, peer, t->group->size - 1, t->group->name);
    t->place = (struct place){ NULL, NULL };
    if (count > 0 && spaces_are_there() && (status = place_of(buf, &t->place)) != CT_OK)
        return ct_fail_in(status, "%s: ", t->verb);
    t->signature = (struct signature){
        .count = count, .operation = OPERATION_SEND, .dtype = (uint8_t)dtype, .op = -1, .root = -1
    };
    t->bytes = count * element;
    t->peer = peer == CT_ANY_SOURCE ? CT_ANY_SOURCE : t->group->ranks[peer];
    t->tag = tag;
    return CT_OK;
}

static ct_status begin_transfer(struct transfer *t, ct_group *group, const void *buf, size_t count,
                                ct_dtype dtype, int peer, int tag, int is_send)
{
    ct_status status = group_resolve_member(group, &t->group);

    if (status != CT_OK)
        return ct_fail_in(status, "%s: ", t->verb);
    status = transfer_check(t, buf, count, dtype, peer, tag, is_send);
    if (status != CT_OK)
        return status;
    fault_begin(t->group->mesh->faults, t->group, is_send ? OPERATION_SEND : OPERATION_RECV, 0);
    if (is_send)
        /* without this, a rank that only sends would never receive */
        messages_glance(t->group->mesh);
    return group_begin(t->group, 0);
}

/* If the buffer is on a device, starts a staging, which usually replaces *buf by host memory.  Sets
 * *staging to NULL if the buffer is in host memory. */
static ct_status transfer_stage(const struct transfer *t, void **buf, int is_send, int64_t deadline,
                                struct device_staging **staging)
{
    ct_status status;

    *staging = NULL;
    if (!t->place.space)
        return CT_OK;
    status = device_staging_begin(t->group, t->place, buf, t->bytes, is_send ? t->peer : RECEIVES,
                                  deadline, staging);
    if (status == CT_OK)
        return CT_OK;
    return ct_fail_in(group_cause(t->group, status, 0), "%s: ", t->verb);
}

/* ---- One message ---------------------------------------------------------------- */

/* Starts the message. message_finish_by() ends the staging. */
static void start_message(const struct transfer *t, struct request *request,
                          struct device_staging *staging, void *buf, int is_send)
{
    const uint64_t channel = group_channel(t->group, 1);

    if (staging) {
        request_prepare(request, is_send, channel, t->peer, t->tag, buf, t->bytes, &t->signature);
        device_staging_attach(staging, request);
        requests_start(t->group->mesh, request, 1);
    } else if (is_send) {
        request_send(t->group->mesh, request, channel, t->peer, t->tag, buf, t->bytes,
                     &t->signature);
    } else {
        request_recv(t->group->mesh, request, channel, t->peer, t->tag, buf, t->bytes,
                     &t->signature);
    }
}

static ct_status run_blocking(const struct transfer *t, void *buf, int is_send, int *from,
                              const void *caller)
{
    struct request request;
    struct device_staging *staging;
    const struct limit limit = group_limit(t->group);
    const int64_t started = clock_of_start(limit.ms, clock_coarse_ns());
    uint64_t traced;
    ct_status status = transfer_stage(t, &buf, is_send, started + limit.ms, &staging);

    if (status == CT_ERR_TIMEOUT)
        return ct_fail(status, "%s (limit %d ms, set by %s)", ct_last_error(), limit.ms, limit.by);
    if (status != CT_OK)
        return status;
    traced = trace_message(t->group->mesh->trace, &t->signature, t->group->traced, t->peer, t->tag,
                           t->bytes, !is_send);
    start_message(t, &request, staging, buf, is_send);
    status = message_finish_by(t->group, &request, t->verb, from, caller, &limit, started);
    trace_end(t->group->mesh->trace, traced, status);
    if (status == CT_OK)
        fault_end(t->group->mesh->faults);
    return status;
}

static ct_status run_asynchronous(const struct transfer *t, void *buf, int is_send, ct_work **work)
{
    struct request *request = malloc(sizeof *request);
    ct_work *w = malloc(sizeof *w);
    struct device_staging *staging;
    const ct_status status =
        request && w
            ? transfer_stage(t, &buf, is_send, deadline_after(t->group->limit.ms), &staging)
            : ct_fail(CT_ERR_NOMEM, "%s: no memory for the work", t->verb);

    if (status != CT_OK) {
        free(request);
        free(w);
        return status;
    }
    *w = (ct_work){ .group = t->group,
                    .request = request,
                    .kept.verb = t->verb,
                    .owner = request,
                    .release = free };
    start_message(t, request, staging, buf, is_send);
    fault_end(t->group->mesh->faults);
    requests_in_background(t->group->mesh, request, 1);
    work_keep(w);
    *work = w;
    return CT_OK;
}

ct_status ct_send(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst, int tag)
{
    struct transfer t = { .verb = "send" };
    const ct_status status = begin_transfer(&t, group, buf, count, dtype, dst, tag, 1);

    if (status != CT_OK)
        return status;
    if (t.peer == t.group->mesh->rank
        && !request_is_posted(t.group->mesh, group_channel(t.group, 1), t.peer, tag))
        return ct_fail(CT_ERR_INVALID,
                       "send: before rank %d sends to itself, it must call ct_irecv with tag %d; "
                       "otherwise nobody could receive the message",
                       dst, tag);
    return run_blocking(&t, (void *)(uintptr_t)buf, 1, NULL, __builtin_return_address(0));
}

ct_status ct_recv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src, int tag,
                  int *from)
{
    struct transfer t = { .verb = "recv" };
    const ct_status status = begin_transfer(&t, group, buf, count, dtype, src, tag, 0);

    return status == CT_OK ? run_blocking(&t, buf, 0, from, __builtin_return_address(0)) : status;
}

ct_status ct_isend(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst, int tag,
                   ct_work **work)
{
    struct transfer t = { .verb = "isend" };
    ct_status status;

    if (!work)
        return ct_fail(CT_ERR_INVALID, "isend: the pointer for the work is NULL");
    *work = NULL;
    status = begin_transfer(&t, group, buf, count, dtype, dst, tag, 1);
    return status == CT_OK ? run_asynchronous(&t, (void *)(uintptr_t)buf, 1, work) : status;
}

ct_status ct_irecv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src, int tag,
                   ct_work **work)
{
    struct transfer t = { .verb = "irecv" };
    ct_status status;

    if (!work)
        return ct_fail(CT_ERR_INVALID, "irecv: the pointer for the work is NULL");
    *work = NULL;
    status = begin_transfer(&t, group, buf, count, dtype, src, tag, 0);
    return status == CT_OK ? run_asynchronous(&t, buf, 0, work) : status;
}

/* ---- Probes --------------------------------------------------------------------- */

static ct_status begin_probe(struct transfer *t, struct request *request, ct_group *group, int src,
                             int tag)
{
    ct_status status = group_resolve_member(group, &t->group);

    if (status != CT_OK)
        return ct_fail_in(status, "%s: ", t->verb);
    if (tag < 0 && tag != CT_ANY_TAG)
        return ct_fail(CT_ERR_INVALID, "%s: tag %d is negative; tags are 0 or more, or CT_ANY_TAG",
                       t->verb, tag);
    status = transfer_check(t, NULL, 0, CT_U8, src, tag == CT_ANY_TAG ? 0 : tag, 0);
    if (status != CT_OK)
        return status;
    fault_begin(t->group->mesh->faults, t->group, OPERATION_RECV, 0);
    if ((status = group_begin(t->group, 0)) != CT_OK)
        return status;
    request_prepare_probe(request, group_channel(t->group, 1), t->peer, tag);
    requests_start(t->group->mesh, request, 1);
    return CT_OK;
}

static ct_status end_probe(const struct transfer *t, struct request *request, ct_message *message,
                           const void *caller)
{
    const struct limit limit = group_limit(t->group);
    int from;
    const ct_status status = message_finish_by(t->group, request, t->verb, &from, caller, &limit,
                                               clock_of_start(limit.ms, clock_coarse_ns()));

    if (status != CT_OK)
        return status;
    fault_end(t->group->mesh->faults);
    if (message)
        *message = (ct_message){ from, request->out.frame.tag, request->out.frame.signature.count,
                                 (ct_dtype)request->out.frame.signature.dtype };
    return CT_OK;
}

ct_status ct_probe(ct_group *group, int src, int tag, ct_message *message)
{
    struct transfer t = { .verb = "probe" };
    struct request request;
    const ct_status status = begin_probe(&t, &request, group, src, tag);

    return status == CT_OK ? end_probe(&t, &request, message, __builtin_return_address(0)) : status;
}

ct_status ct_iprobe(ct_group *group, int src, int tag, int *found, ct_message *message)
{
    struct transfer t = { .verb = "iprobe" };
    struct request request;
    ct_status status;

    if (!found)
        return ct_fail(CT_ERR_INVALID, "iprobe: the pointer for the result is NULL");
    *found = 0;
    status = begin_probe(&t, &request, group, src, tag);
    if (status != CT_OK)
        return status;
    if (!request_poll(t.group->mesh, &request)) {
        request_cancel(t.group->mesh, &request);
        fault_end(t.group->mesh->faults);
        return CT_OK;
    }
    status = end_probe(&t, &request, message, __builtin_return_address(0));
    *found = status == CT_OK;
    return status;
}

/* ---- Batches -------------------------------------------------------------------- */

/* The works of a batch share this memory.  The last ct_wait() frees it. */
struct p2p_batch {
    _Atomic int owed;
    struct request requests[];
};

#define BATCH "batch_isend_irecv"

static void release_batch(void *owner)
{
    struct p2p_batch *batch = owner;

    if (atomic_fetch_sub(&batch->owed, 1) == 1)
        free(batch);
}

static int p2p_is_own(const struct transfer *t, const ct_p2p *op, enum ct_p2p_kind kind, int tag)
{
    return op->kind == kind && op->tag == tag
           && (op->peer == t->group->rank || (kind == CT_P2P_RECV && op->peer == CT_ANY_SOURCE));
}

/* Checks that each send to this rank itself has a receive, in the batch or posted earlier.  A call
 * that waits for the whole batch could not post a receive later. */
static ct_status check_own(const struct transfer *t, const ct_p2p *ops, int count, int at)
{
    const int tag = ops[at].tag;
    int balance = 0;

    if (!p2p_is_own(t, &ops[at], CT_P2P_SEND, tag)
        || request_is_posted(t->group->mesh, group_channel(t->group, 1), t->peer, tag))
        return CT_OK;
    for (int i = 0; i < count; i++)
        balance +=
            p2p_is_own(t, &ops[i], CT_P2P_RECV, tag) - p2p_is_own(t, &ops[i], CT_P2P_SEND, tag);
    return balance >= 0
               ? CT_OK
               : ct_fail(CT_ERR_INVALID,
                         "send: rank %d sends to itself; each such send needs a receive with tag "
                         "%d, here or posted before, or nobody could receive the message",
                         t->group->rank, tag);
}

/* Ends the stagings of requests that are not started. */
static void end_stagings(struct request *requests, int count)
{
    for (int i = 0; i < count; i++)
        device_staging_end(&requests[i]);
}

/* Checks all messages and makes requests of them, before any message is started. */
static ct_status prepare_batch(ct_group *group, const ct_p2p *ops, int count, int blocks,
                               struct request *requests)
{
    for (int i = 0; i < count; i++) {
        const ct_p2p *op = &ops[i];
        const int is_send = op->kind == CT_P2P_SEND;
        struct transfer t = { .group = group, .verb = is_send ? "send" : "recv" };
        struct device_staging *staging = NULL;
        void *buf = op->buf;
        ct_status status =
            is_send || op->kind == CT_P2P_RECV
                ? transfer_check(&t, op->buf, op->count, op->dtype, op->peer, op->tag, is_send)
                : ct_fail(CT_ERR_INVALID, "kind %d is neither CT_P2P_SEND nor CT_P2P_RECV",
                          (int)op->kind);

        if (status == CT_OK && blocks)
            status = check_own(&t, ops, count, i);
        if (status == CT_OK)
            status = transfer_stage(&t, &buf, is_send, deadline_after(group->limit.ms), &staging);
        if (status != CT_OK) {
            end_stagings(requests, i);
            return ct_fail_in(status, BATCH ", op %d of %d: ", i, count);
        }
        request_prepare(&requests[i], is_send, group_channel(group, 1), t.peer, t.tag, buf, t.bytes,
                        &t.signature);
        device_staging_attach(staging, &requests[i]);
    }
    return CT_OK;
}

static ct_status start_batch(ct_group *group, struct request *requests, int count)
{
    struct mesh *mesh = group->mesh;
    ct_status status;

    for (int i = 0; i < count; i++)
        fault_begin(mesh->faults, group, requests[i].is_send ? OPERATION_SEND : OPERATION_RECV, 0);
    messages_glance(mesh); /* without this, a rank that only sends would never receive */
    status = group_begin(group, 0);
    if (status == CT_OK)
        requests_start(mesh, requests, count);
    return status;
}

/* Waits for all messages, even after a failure, since the peers need the other messages.  Returns
 * the first failure. */
static ct_status finish_batch(ct_group *group, struct request *requests, int count,
                              const void *caller)
{
    const struct limit limit = group_limit(group);
    const int64_t started = clock_of_start(limit.ms, clock_coarse_ns());
    ct_status first = CT_OK;
    char words[1024] = "";

    for (int i = 0; i < count; i++) {
        const ct_status status =
            message_finish_by(group, &requests[i], requests[i].is_send ? "send" : "recv", NULL,
                              caller, &limit, started);

        if (status == CT_OK || first != CT_OK)
            continue;
        first = ct_fail_in(status, BATCH ", op %d of %d: ", i, count);
        snprintf(words, sizeof words, "%s", ct_last_error());
    }
    if (first == CT_OK)
        fault_end(group->mesh->faults);
    return first == CT_OK ? CT_OK : ct_fail(first, "%s", words);
}

static ct_status make_works(ct_group *group, struct p2p_batch *batch, int count, ct_work **works)
{
    for (int i = 0; i < count; i++) {
        struct request *request = &batch->requests[i];

        works[i] = malloc(sizeof *works[i]);
        if (!works[i]) {
            for (; i > 0; i--) {
                free(works[i - 1]);
                works[i - 1] = NULL;
            }
            return ct_fail(CT_ERR_NOMEM, BATCH ": no memory for %d works", count);
        }
        *works[i] = (ct_work){ .group = group,
                               .request = request,
                               .kept.verb = request->is_send ? "isend" : "irecv",
                               .owner = batch,
                               .release = release_batch };
    }
    atomic_init(&batch->owed, count);
    return CT_OK;
}

static ct_status run_batch(ct_group *group, const ct_p2p *ops, int count, ct_work **works,
                           struct p2p_batch *batch, const void *caller)
{
    ct_status status = prepare_batch(group, ops, count, works == NULL, batch->requests);

    if (status != CT_OK)
        return status;
    if (works)
        status = make_works(group, batch, count, works);
    if (status != CT_OK) {
        end_stagings(batch->requests, count);
        return status;
    }
    status = start_batch(group, batch->requests, count);
    if (status == CT_OK && !works)
        return finish_batch(group, batch->requests, count, caller);
    if (status == CT_OK) {
        fault_end(group->mesh->faults);
        requests_in_background(group->mesh, batch->requests, count);
        for (int i = 0; i < count; i++)
            work_keep(works[i]);
        return CT_OK;
    }
    end_stagings(batch->requests, count);
    for (int i = 0; works && i < count; i++) {
        free(works[i]);
        works[i] = NULL;
    }
    return status;
}

ct_status ct_batch_isend_irecv(ct_group *group, const ct_p2p *ops, int count, ct_work **works)
{
    struct p2p_batch *batch;
    ct_status status;

    for (int i = 0; works && i < count; i++)
        works[i] = NULL;
    status = group_resolve_member(group, &group);
    if (status != CT_OK)
        return ct_fail_in(status, BATCH ": ");
    if (count < 0 || (count > 0 && !ops))
        return ct_fail(CT_ERR_INVALID, BATCH ": %d ops%s", count,
                       ops ? "" : ", but the list of them is NULL");
    batch = malloc(sizeof *batch + (size_t)count * sizeof batch->requests[0]);
    if (!batch)
        return ct_fail(CT_ERR_NOMEM, BATCH ": no memory for %d messages", count);
    status = run_batch(group, ops, count, works, batch, __builtin_return_address(0));
    if (status != CT_OK || !works || count == 0)
        free(batch);
    return status;
}
