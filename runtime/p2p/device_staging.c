/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "runtime/device/peer_access_check.h"
#include "runtime/group/device_wait.h"
#include "runtime/p2p/device_staging_internal.h"
#include "runtime/util/error.h"

void staging_forget_mark(struct device_staging *s)
{
    if (s->mark)
        s->place.space->forget(s->place.device, s->mark);
    s->mark = NULL;
}

static ct_status wait_for_mark(struct device_staging *s, int64_t deadline)
{
    ct_status status;

    if (!s->mark)
        return CT_OK;
    status = device_wait(s->group, s->place, s->mark, deadline, &s->group->failure.interrupted);
    if (status == CT_OK)
        staging_forget_mark(s);
    return status;
}

static ct_status no_memory(size_t bytes)
{
    return ct_fail(CT_ERR_NOMEM, "no host memory for %zu bytes of device memory", bytes);
}

ct_status staging_find_host_memory(struct device_staging *s)
{
    s->pinned = pinned_take(&s->group->pinned, s->place, s->bytes);
    s->host = s->pinned ? s->pinned->data : malloc(s->bytes);
    return s->host ? CT_OK : no_memory(s->bytes);
}

static int add_sample(struct device_staging *s)
{
    const struct space *space = s->place.space;
    void *sample;

    s->rts.has_sample =
        space->test_pattern(s->place.device, &sample) == CT_OK
        && space->give(s->place.device, sample, TEST_PATTERN_BYTES, &s->rts.sample) == CT_OK;
    return s->rts.has_sample;
}

/* 1: a DEVICE_RTS can go out.  0: the sender copies to host memory itself. */
static int offer_device_memory(struct device_staging *s, int to)
{
    const struct space *space = s->place.space;
    enum device_rendezvous may;

    if (s->bytes <= DEVICE_RENDEZVOUS_ABOVE || s->group->no_device_rendezvous)
        return 0;
    may = device_rendezvous_with(s->group->mesh, to);
    if (may == NO_DEVICE_RENDEZVOUS || (may == DEVICE_RENDEZVOUS_WITH_SAMPLE && !add_sample(s)))
        return 0;
    space->id(s->place.device, s->rts.device);
    return space->give(s->place.device, s->device, s->bytes, &s->rts.handle) == CT_OK;
}

/* When this returns, what is sent lies in host memory, or a DEVICE_RTS for it is made. */
static ct_status take_over(struct device_staging *s, int to, int64_t deadline)
{
    const struct space *space = s->place.space;
    ct_status status = space->mark(s->place.device, s->group->stream, &s->mark);

    if (status == CT_OK && to == RECEIVES)
        return staging_find_host_memory(s);
    if (status == CT_OK)
        status = wait_for_mark(s, deadline);
    if (status != CT_OK || (s->has_device_rts = offer_device_memory(s, to)))
        return status;
    status = staging_find_host_memory(s);
    if (status == CT_OK)
        status = space->to_host(s->place.device, s->host, s->device, s->bytes);
    return status;
}

ct_status device_staging_begin(ct_group *group, struct place place, void **buf, size_t bytes,
                               int to, int64_t deadline, struct device_staging **staging)
{
    struct device_staging *s = malloc(sizeof *s);
    ct_status status;
    void *before;

    if (!s)
        return no_memory(bytes);
    *s = (struct device_staging){ .copy = { &staging_copy_ops },
                                  .group = group,
                                  .place = place,
                                  .device = *buf,
                                  .bytes = bytes };
    status = place.space->enter(&before);
    if (status == CT_OK) {
        status = take_over(s, to, deadline);
        place.space->leave(before);
    }
    if (status != CT_OK) {
        staging_free(s);
        return status;
    }
    if (!s->has_device_rts)
        *buf = s->host;
    *staging = s;
    return CT_OK;
}

void device_staging_attach(struct device_staging *s, struct request *request)
{
    request->copy = s ? &s->copy : NULL;
    if (s && s->has_device_rts)
        request_send_device_rts(request, &s->rts);
}

int device_staging_is_clear(struct request *receive, int64_t deadline)
{
    struct device_staging *const s = device_staging_of(receive->copy);
    ct_status status;
    void *before;

    if (!s->mark || s->place.space->enter(&before) != CT_OK)
        return 1; /* device_staging_land() reports why it can't */
    status = wait_for_mark(s, deadline);
    s->place.space->leave(before);
    return status != CT_ERR_TIMEOUT;
}

ct_status device_staging_land(struct request *receive, int64_t deadline)
{
    struct device_staging *const s = device_staging_of(receive->copy);
    const struct space *space = s->place.space;
    void *before;
    ct_status status = s->has_arrived ? CT_OK : space->enter(&before);

    if (status != CT_OK || s->has_arrived)
        return status;
    status = wait_for_mark(s, deadline);
    if (status == CT_OK)
        status = space->from_host(s->place.device, s->device, s->host, s->bytes);
    space->leave(before);
    return status;
}

void device_staging_end(struct request *request)
{
    if (request->copy)
        staging_free(device_staging_of(request->copy));
    request->copy = NULL;
}

void staging_free(struct device_staging *s)
{
    staging_forget_mark(s);
    if (s->copied)
        s->place.space->forget(s->place.device, s->copied);
    access_check_free(s->trial);
    if (s->pinned)
        pinned_give(&s->group->pinned, s->pinned);
    else
        free(s->host);
    free(s);
}
