/* SPDX-License-Identifier: Apache-2.0 */
/* sendrecv.c - sends and receives messages within a call.  The messages use the group's channel and
 * have the call's signature and deadline.  If the group has a message carrier, the carrier
 * transports the messages. */
#include "collectives/core/sendrecv.h"

#include <stdlib.h>

#include "collectives/core/message_carrier.h"

#include "runtime/group/group.h"
#include "runtime/util/clock.h"

static void verb_prepare(struct call *c, struct request *request, int is_send, int other,
                         struct span data)
{
    request_prepare(request, is_send, group_channel(c->group, 0), c->group->ranks[other], 0,
                    data.data, data.bytes, call_compared(c));
}

static void verb_start(struct call *c, struct request *requests, int count)
{
    if (c->group->carrier)
        c->group->carrier->start(c->group, requests, count);
    else
        requests_start(c->group->mesh, requests, count);
}

static void verb_cancel(struct call *c, struct request *request)
{
    if (c->group->carrier)
        c->group->carrier->cancel(c->group, request);
    else
        request_cancel(c->group->mesh, request);
}

static ct_status verb_wait_for(struct call *c, struct request *request)
{
    const ct_status status =
        c->group->carrier
            ? c->group->carrier->wait(c->group, request, c->deadline)
            : request_wait(c->group->mesh, request, c->deadline, &c->group->failure.status);

    if (status == CT_ERR_TIMEOUT)
        return ct_fail_late(request->peer);
    if (status == CT_OK)
        fault_pass(c->group->mesh->faults);
    return status;
}

ct_status send_to(struct call *c, int to, struct span out)
{
    struct request request;

    verb_prepare(c, &request, 1, to, out);
    verb_start(c, &request, 1);
    return verb_wait_for(c, &request);
}

ct_status recv_from(struct call *c, int from, struct span in)
{
    struct request request;

    verb_prepare(c, &request, 0, from, in);
    verb_start(c, &request, 1);
    return verb_wait_for(c, &request);
}

ct_status exchange(struct call *c, int to, struct span out, int from, struct span in)
{
    struct request both[2]; /* [0] receives, [1] sends */
    ct_status status;

    verb_prepare(c, &both[0], 0, from, in);
    verb_prepare(c, &both[1], 1, to, out);
    verb_start(c, both, 2);
    status = verb_wait_for(c, &both[0]);
    if (status != CT_OK) {
        verb_cancel(c, &both[1]);
        return status;
    }
    return verb_wait_for(c, &both[1]);
}

ct_status batch_begin(struct batch *batch, struct call *c, int size)
{
    *batch = (struct batch){ .call = c, .size = size };
    batch->requests = malloc(sizeof *batch->requests * (size_t)(size > 0 ? size : 1));
    return batch->requests ? CT_OK : ct_fail(CT_ERR_NOMEM, "no memory for %d messages", size);
}

void batch_send(struct batch *batch, int to, struct span out)
{
    verb_prepare(batch->call, &batch->requests[batch->used++], 1, to, out);
}

void batch_recv(struct batch *batch, int from, struct span in)
{
    verb_prepare(batch->call, &batch->requests[batch->used++], 0, from, in);
}

static void give_up_from(struct batch *batch, int i)
{
    for (; i < batch->started; i++)
        verb_cancel(batch->call, &batch->requests[i]);
    free(batch->requests);
    *batch = (struct batch){ 0 };
}

void batch_start(struct batch *batch)
{
    if (batch->used > batch->started)
        verb_start(batch->call, batch->requests + batch->started, batch->used - batch->started);
    batch->started = batch->used;
}

ct_status batch_wait(struct batch *batch)
{
    ct_status status = CT_OK;
    int i = 0;

    batch_start(batch);

    while (i < batch->used && status == CT_OK)
        status = verb_wait_for(batch->call, &batch->requests[i++]);
    give_up_from(batch, i);
    return status;
}

void batch_cancel(struct batch *batch)
{
    give_up_from(batch, 0);
}

size_t piece_of_each(const struct call *c)
{
    const size_t most = (size_t)1 << 20, align = 64;
    const size_t share = SCRATCH_BYTES / (size_t)c->group->size / align * align;

    return share > most ? most : share > align ? share : align;
}

struct span part_of(const struct call *c, void *data, size_t count, int i)
{
    return part_of_some(c, data, count, i, c->group->size);
}

struct span part_of_some(const struct call *c, void *data, size_t count, int i, int parts)
{
    const size_t p = (size_t)parts, r = (size_t)i;
    const size_t share = count / p, rest = count % p;
    const size_t start = r * share + (r < rest ? r : rest);

    return span_of((char *)data + start * c->element, (share + (r < rest)) * c->element);
}
