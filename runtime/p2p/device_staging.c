/* SPDX-License-Identifier: Apache-2.0 */
/* device_staging.c - see device_staging.h; what devices do for a crossing meanwhile: device_copy.c.
 */
#include <stdlib.h>

#include "runtime/device/peer_access_check.h"
#include "runtime/group/device_wait.h"
#include "runtime/p2p/device_staging_internal.h"
#include "runtime/util/error.h"

void crossing_forget_mark(struct crossing *c)
{
    if (c->mark)
        c->place.space->forget(c->place.device, c->mark);
    c->mark = NULL;
}

static ct_status wait_for_mark(struct crossing *c, int64_t deadline)
{
    ct_status status;

    if (!c->mark)
        return CT_OK;
    status = device_wait(c->group, c->place, c->mark, deadline, &c->group->halted);
    if (status == CT_OK)
        crossing_forget_mark(c);
    return status;
}

static ct_status no_memory(size_t bytes)
{
    return ct_fail(CT_ERR_NOMEM, "no host memory for %zu bytes of device memory", bytes);
}

ct_status crossing_find_host_memory(struct crossing *c)
{
    c->pinned = pinned_take(&c->group->pinned, c->place, c->bytes);
    c->host = c->pinned ? c->pinned->data : malloc(c->bytes);
    return c->host ? CT_OK : no_memory(c->bytes);
}

static int add_sample(struct crossing *c)
{
    const struct space *space = c->place.space;
    void *sample;

    c->loan.has_sample =
        space->sample(c->place.device, &sample) == CT_OK
        && space->give(c->place.device, sample, SAMPLE_BYTES, &c->loan.sample) == CT_OK;
    return c->loan.has_sample;
}

/* Who gives memory that nobody can map copies it himself. */
static int lend(struct crossing *c, int to)
{
    const struct space *space = c->place.space;
    enum lending may;

    if (c->bytes <= LEND_ABOVE || c->group->lends_nothing)
        return 0;
    may = may_lend_to(c->group->mesh, to);
    if (may == LENDS_NOTHING || (may == LENDS_WITH_SAMPLE && !add_sample(c)))
        return 0;
    space->id(c->place.device, c->loan.device);
    return space->give(c->place.device, c->device, c->bytes, &c->loan.handle) == CT_OK;
}

/* What is sent is there, and lies in host memory when this returns, or is lent. */
static ct_status take_over(struct crossing *c, int to, int64_t deadline)
{
    const struct space *space = c->place.space;
    ct_status status = space->mark(c->place.device, c->group->stream, &c->mark);

    if (status == CT_OK && to == RECEIVES)
        return crossing_find_host_memory(c);
    if (status == CT_OK)
        status = wait_for_mark(c, deadline);
    if (status != CT_OK || (c->is_lent = lend(c, to)))
        return status;
    status = crossing_find_host_memory(c);
    if (status == CT_OK)
        status = space->to_host(c->place.device, c->host, c->device, c->bytes);
    return status;
}

ct_status crossing_begin(ct_group *group, struct place place, void **buf, size_t bytes, int to,
                         int64_t deadline, struct crossing **crossing)
{
    struct crossing *c = malloc(sizeof *c);
    ct_status status;
    void *before;

    if (!c)
        return no_memory(bytes);
    *c = (struct crossing){ .group = group, .place = place, .device = *buf, .bytes = bytes };
    status = place.space->enter(&before);
    if (status == CT_OK) {
        status = take_over(c, to, deadline);
        place.space->leave(before);
    }
    if (status != CT_OK) {
        crossing_end(c);
        return status;
    }
    if (!c->is_lent)
        *buf = c->host;
    *crossing = c;
    return CT_OK;
}

void crossing_attach(struct crossing *c, struct request *request)
{
    request->crossing = c;
    if (c && c->is_lent)
        request_lends(request, &c->loan);
}

int crossing_is_clear(struct crossing *c, int64_t deadline)
{
    ct_status status;
    void *before;

    if (!c->mark || c->place.space->enter(&before) != CT_OK)
        return 1; /* who lands says why it can't */
    status = wait_for_mark(c, deadline);
    c->place.space->leave(before);
    return status != CT_ERR_TIMEOUT;
}

ct_status crossing_land(struct crossing *c, int64_t deadline)
{
    const struct space *space = c->place.space;
    void *before;
    ct_status status = c->is_taken ? CT_OK : space->enter(&before);

    if (status != CT_OK || c->is_taken)
        return status;
    status = wait_for_mark(c, deadline);
    if (status == CT_OK)
        status = space->from_host(c->place.device, c->device, c->host, c->bytes);
    space->leave(before);
    return status;
}

void crossing_end(struct crossing *c)
{
    if (!c)
        return;
    crossing_forget_mark(c);
    if (c->copied)
        c->place.space->forget(c->place.device, c->copied);
    trial_free(c->trial);
    if (c->pinned)
        pinned_give(&c->group->pinned, c->pinned);
    else
        free(c->host);
    free(c);
}
