/* SPDX-License-Identifier: Apache-2.0 */
/* crossing.c - see crossing.h. */
#include "runtime/crossing.h"

#include <stdlib.h>

#include "runtime/error.h"

struct crossing {
    struct place place;
    void *device; /* the caller's buffer */
    void
        *mark; /* what is to be waited for before that is read or written; NULL: nothing any more */
    size_t bytes;
    unsigned char host[];
};

/* The mark is used up. */
static ct_status wait_for_mark(struct crossing *c, int64_t deadline, const _Atomic int *given_up)
{
    void *const mark = c->mark;

    c->mark = NULL;
    return mark ? c->place.space->wait_for(c->place.device, mark, deadline, given_up) : CT_OK;
}

/* What is sent lies in host memory when this returns. */
static ct_status take_over(struct crossing *c, int is_send, void *stream, int64_t deadline,
                           const _Atomic int *given_up)
{
    ct_status status = c->place.space->mark(c->place.device, stream, &c->mark);

    if (status == CT_OK && is_send)
        status = wait_for_mark(c, deadline, given_up);
    if (status == CT_OK && is_send)
        status = c->place.space->to_host(c->place.device, c->host, c->device, c->bytes);
    return status;
}

ct_status crossing_begin(struct place place, void **buf, size_t bytes, int is_send, void *stream,
                         int64_t deadline, const _Atomic int *given_up, struct crossing **crossing)
{
    struct crossing *c = malloc(sizeof *c + bytes);
    ct_status status;
    void *before;

    if (!c)
        return ct_fail(CT_ERR_NOMEM, "no host memory for %zu bytes of device memory", bytes);
    *c = (struct crossing){ .place = place, .device = *buf, .bytes = bytes };
    status = place.space->enter(&before);
    if (status == CT_OK) {
        status = take_over(c, is_send, stream, deadline, given_up);
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

ct_status crossing_land(struct crossing *c, int64_t deadline, const _Atomic int *given_up)
{
    const struct space *space = c->place.space;
    void *before;
    ct_status status = space->enter(&before);

    if (status != CT_OK)
        return status;
    status = wait_for_mark(c, deadline, given_up);
    if (status == CT_OK)
        status = space->from_host(c->place.device, c->device, c->host, c->bytes);
    space->leave(before);
    return status;
}

void crossing_end(struct crossing *c)
{
    void *before;

    if (c && c->mark && c->place.space->enter(&before) == CT_OK) {
        wait_for_mark(c, 0, NULL); /* it need not have come to pass */
        c->place.space->leave(before);
    }
    free(c);
}
