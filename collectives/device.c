/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - a collective on device memory.
 *
 *   what is in the group's stream when the call is made is waited for when it begins
 *   -> fused: the ranks' buffers are on one device; one rank works for all (device_fused.c)
 *   -> staged: else; copied to the host, an algorithm of the host, copied back (device_staged.c)
 *
 * When it returns, or its work is done, the results are there for any stream.  Which way is taken
 * the ranks find out together in the call, so that none waits in one way for who goes another. */
#include "collectives/device.h"

#include <stdlib.h>

#include "include/ct_cuda.h"
#include "runtime/device_wait.h"

ct_status device_note(struct call *c)
{
    const struct space *space = c->place.space;
    void *before;
    ct_status status = space->enter(&before);

    if (status != CT_OK)
        return status;
    status = space->mark(c->place.device, c->group->stream, &c->mark);
    space->leave(before);
    return status;
}

static ct_status run(struct call *c)
{
    ct_status status = CT_OK;
    int done = 0;

    if (c->mark)
        status = device_wait(c->group, c->place, c->mark, c->deadline, &c->group->broken);
    device_forget(c);
    if (status == CT_OK)
        status = device_fused(c, &done);
    return status != CT_OK || done ? status : device_staged(c);
}

void device_forget(struct call *c)
{
    if (c->mark)
        c->place.space->forget(c->place.device, c->mark);
    c->mark = NULL;
}

ct_status device_run(struct call *c)
{
    ct_group *g = c->group;
    ct_status status;
    void *before;

    if (!g->staging && !(g->staging = calloc(1, sizeof *g->staging)))
        return ct_fail(CT_ERR_NOMEM, "no memory for calls on device memory");
    status = c->place.space->enter(&before);
    if (status != CT_OK)
        return status;
    status = run(c);
    c->place.space->leave(before);
    return status;
}

void staging_drop(ct_group *group)
{
    if (group->staging)
        free(group->staging->host);
    free(group->staging);
    group->staging = NULL;
}

ct_status ct_set_stream(ct_group *group, void *stream)
{
    ct_group *g;
    const ct_status status = group_resolve_member(group, &g);

    if (status != CT_OK)
        return ct_fail_in(status, "ct_set_stream: ");
    g->stream = stream;
    return CT_OK;
}
