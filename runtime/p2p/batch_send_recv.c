/* SPDX-License-Identifier: Apache-2.0 */
/* batch_send_recv.c - ct_batch_isend_irecv: many sends and receives, begun together.
 *
 *   all are checked  ->  each becomes a request  ->  receives are posted, sends queued
 *   -> what goes to one peer is written at once (send_queue.c)
 *   -> here all are waited for, or each has a work of its own */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/p2p/device_staging.h"
#include "runtime/p2p/send_recv.h"
#include "runtime/util/clock.h"

/* The works of a batch share its memory: the last to be waited for frees it. */
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

static int is_own(const struct transfer *t, const ct_p2p *op, enum ct_p2p_kind kind, int tag)
{
    return op->kind == kind && op->tag == tag
           && (op->peer == t->group->rank || (kind == CT_P2P_RECV && op->peer == CT_ANY_SOURCE));
}

/* Who waits here for all of them can't post a receive later: each send to this rank needs one. */
static ct_status check_own(const struct transfer *t, const ct_p2p *ops, int count, int at)
{
    const int tag = ops[at].tag;
    int balance = 0;

    if (!is_own(t, &ops[at], CT_P2P_SEND, tag)
        || request_is_posted(t->group->mesh, group_channel(t->group, 1), t->peer, tag))
        return CT_OK;
    for (int i = 0; i < count; i++)
        balance += is_own(t, &ops[i], CT_P2P_RECV, tag) - is_own(t, &ops[i], CT_P2P_SEND, tag);
    return balance >= 0 ? CT_OK
                        : ct_fail(CT_ERR_INVALID,
                                  "send: to itself, rank %d needs a receive with tag %d for each "
                                  "of them, here or posted before, or nobody could receive it",
                                  t->group->rank, tag);
}

/* Those that never start. */
static void forget(struct request *requests, int count)
{
    for (int i = 0; i < count; i++)
        device_staging_end(&requests[i]);
}

/* All of them, before any is started.  Those that are right become requests. */
static ct_status prepare(ct_group *group, const ct_p2p *ops, int count, int blocks,
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
            status = transfer_stage(&t, &buf, is_send, deadline_after(group->timeout_ms), &staging);
        if (status != CT_OK) {
            forget(requests, i);
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
    messages_glance(mesh); /* sends may end without having received anything */
    status = group_begin(group, 0);
    if (status == CT_OK)
        requests_start(mesh, requests, count);
    return status;
}

/* Each is waited for, whatever becomes of the others: their peers count on them. */
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
                               .verb = request->is_send ? "isend" : "irecv",
                               .owner = batch,
                               .release = release_batch };
    }
    atomic_init(&batch->owed, count);
    return CT_OK;
}

static ct_status run_batch(ct_group *group, const ct_p2p *ops, int count, ct_work **works,
                           struct p2p_batch *batch, const void *caller)
{
    ct_status status = prepare(group, ops, count, works == NULL, batch->requests);

    if (status != CT_OK)
        return status;
    if (works)
        status = make_works(group, batch, count, works);
    if (status != CT_OK) {
        forget(batch->requests, count);
        return status;
    }
    status = start_batch(group, batch->requests, count);
    if (status == CT_OK && !works)
        return finish_batch(group, batch->requests, count, caller);
    if (status == CT_OK) {
        fault_end(group->mesh->faults);
        requests_in_background(group->mesh, batch->requests, count);
        return CT_OK;
    }
    forget(batch->requests, count);
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
                       ops ? "" : ", but no list of them");
    batch = malloc(sizeof *batch + (size_t)count * sizeof batch->requests[0]);
    if (!batch)
        return ct_fail(CT_ERR_NOMEM, BATCH ": no memory for %d messages", count);
    status = run_batch(group, ops, count, works, batch, __builtin_return_address(0));
    if (status != CT_OK || !works || count == 0)
        free(batch);
    return status;
}
