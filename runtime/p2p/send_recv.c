/* SPDX-License-Identifier: Apache-2.0 */
/* send_recv.c - ct_send, ct_recv and their asynchronous forms: arguments checked, then request.c.
 */
#include "runtime/p2p/send_recv.h"

#include <stdlib.h>

#include "runtime/p2p/device_staging.h"
#include "runtime/trace/trace.h"
#include "runtime/types/dtype.h"
#include "runtime/util/clock.h"

ct_status transfer_check(struct transfer *t, const void *buf, size_t count, ct_dtype dtype,
                         int peer, int tag, int is_send)
{
    const size_t element = ct_dtype_size(dtype);
    ct_status status;

    if (element == 0)
        return ct_fail(CT_ERR_INVALID, "%s: %d is no dtype", t->verb, (int)dtype);
    if (count > PTRDIFF_MAX / element)
        return ct_fail(CT_ERR_INVALID, "%s: %zu elements of %s are more than memory can hold",
                       t->verb, count, dtype_name(dtype));
    if (!buf && count > 0)
        return ct_fail(CT_ERR_INVALID, "%s: the buffer is NULL but the count is %zu", t->verb,
                       count);
    if (tag < 0)
        return ct_fail(CT_ERR_INVALID, "%s: tag %d; tags are 0 or more", t->verb, tag);
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

static ct_status check(struct transfer *t, ct_group *group, const void *buf, size_t count,
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
        messages_glance(t->group->mesh); /* it may end without having received anything */
    return group_begin(t->group, 0);
}

ct_status transfer_stage(const struct transfer *t, void **buf, int is_send, int64_t deadline,
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
    return ct_fail_in(group_cause(t->group, status), "%s: ", t->verb);
}

/* message_finish_by() ends the staging. */
static void start(const struct transfer *t, struct request *request, struct device_staging *staging,
                  void *buf, int is_send)
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

static ct_status blocking(const struct transfer *t, void *buf, int is_send, int *from,
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
    start(t, &request, staging, buf, is_send);
    status = message_finish_by(t->group, &request, t->verb, from, caller, &limit, started);
    trace_end(t->group->mesh->trace, traced, status);
    if (status == CT_OK)
        fault_end(t->group->mesh->faults);
    return status;
}

static ct_status asynchronous(const struct transfer *t, void *buf, int is_send, ct_work **work)
{
    struct request *request = malloc(sizeof *request);
    ct_work *w = malloc(sizeof *w);
    struct device_staging *staging;
    const ct_status status =
        request && w
            ? transfer_stage(t, &buf, is_send, deadline_after(t->group->timeout_ms), &staging)
            : ct_fail(CT_ERR_NOMEM, "%s: no memory for the work", t->verb);

    if (status != CT_OK) {
        free(request);
        free(w);
        return status;
    }
    *w = (ct_work){
        .group = t->group, .request = request, .verb = t->verb, .owner = request, .release = free
    };
    start(t, request, staging, buf, is_send);
    fault_end(t->group->mesh->faults);
    requests_in_background(t->group->mesh, request, 1);
    *work = w;
    return CT_OK;
}

ct_status ct_send(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst, int tag)
{
    struct transfer t = { .verb = "send" };
    const ct_status status = check(&t, group, buf, count, dtype, dst, tag, 1);

    if (status != CT_OK)
        return status;
    if (t.peer == t.group->mesh->rank
        && !request_is_posted(t.group->mesh, group_channel(t.group, 1), t.peer, tag))
        return ct_fail(CT_ERR_INVALID,
                       "send: to itself, rank %d first needs a ct_irecv with tag "
                       "%d, or nobody could ever receive it",
                       dst, tag);
    return blocking(&t, (void *)(uintptr_t)buf, 1, NULL, __builtin_return_address(0));
}

ct_status ct_recv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src, int tag,
                  int *from)
{
    struct transfer t = { .verb = "recv" };
    const ct_status status = check(&t, group, buf, count, dtype, src, tag, 0);

    return status == CT_OK ? blocking(&t, buf, 0, from, __builtin_return_address(0)) : status;
}

ct_status ct_isend(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst, int tag,
                   ct_work **work)
{
    struct transfer t = { .verb = "isend" };
    ct_status status;

    if (!work)
        return ct_fail(CT_ERR_INVALID, "isend: no place for the work was given");
    *work = NULL;
    status = check(&t, group, buf, count, dtype, dst, tag, 1);
    return status == CT_OK ? asynchronous(&t, (void *)(uintptr_t)buf, 1, work) : status;
}

ct_status ct_irecv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src, int tag,
                   ct_work **work)
{
    struct transfer t = { .verb = "irecv" };
    ct_status status;

    if (!work)
        return ct_fail(CT_ERR_INVALID, "irecv: no place for the work was given");
    *work = NULL;
    status = check(&t, group, buf, count, dtype, src, tag, 0);
    return status == CT_OK ? asynchronous(&t, buf, 0, work) : status;
}
