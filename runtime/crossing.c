/* SPDX-License-Identifier: Apache-2.0 */
/* crossing.c - see crossing.h. */
#include "runtime/crossing.h"

#include <stdlib.h>

#include "runtime/device_wait.h"
#include "runtime/error.h"

struct crossing {
    ct_group *group;
    struct place place;
    void *device; /* the caller's buffer */
    void *mark;   /* what comes before that is read or written; NULL: nothing any more */
    size_t bytes;
    void *host;
    struct pinned_block *pinned; /* NULL: it is of malloc() */
};

static void forget_mark(struct crossing *c)
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
        forget_mark(c);
    return status;
}

static ct_status no_memory(size_t bytes)
{
    return ct_fail(CT_ERR_NOMEM, "no host memory for %zu bytes of device memory", bytes);
}

static ct_status find_host_memory(struct crossing *c)
{
    c->pinned = pinned_take(&c->group->pinned, c->place, c->bytes);
    c->host = c->pinned ? c->pinned->data : malloc(c->bytes);
    return c->host ? CT_OK : no_memory(c->bytes);
}

/* What is sent lies in host memory when this returns. */
static ct_status take_over(struct crossing *c, int is_send, int64_t deadline)
{
    const struct space *space = c->place.space;
    ct_status status = space->mark(c->place.device, c->group->stream, &c->mark);

    if (status == CT_OK && is_send)
        status = wait_for_mark(c, deadline);
    if (status == CT_OK && is_send)
        status = space->to_host(c->place.device, c->host, c->device, c->bytes);
    return status;
}

ct_status crossing_begin(ct_group *group, struct place place, void **buf, size_t bytes, int is_send,
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
        status = find_host_memory(c);
        if (status == CT_OK)
            status = take_over(c, is_send, deadline);
        place.space->leave(before);
    }
    if (status != CT_OK) {
        crossing_end(c);
        return status;
    }
    *buf = c->host;
    *crossing = c;
    return CT_OK;
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
    ct_status status = space->enter(&before);

    if (status != CT_OK)
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
    forget_mark(c);
    if (c->pinned)
        pinned_give(&c->group->pinned, c->pinned);
    else
        free(c->host);
    free(c);
}
