/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_comm.c - the communicator of NCCL's for the program. */
#include "collectives/device/device_call.h"

#include <stdio.h>
#include <string.h>

#include "collectives/core/registry.h"
#include "include/ct_cuda.h"

/* What ct_nccl_comm() hands to its call, and gets back. */
struct wanted {
    struct place place; /* no device: there is none, and why */
    char why[300];
    void *comm; /* NULL: it can't be, and why */
};

static ct_status find_comm(struct call *outer, struct wanted *w)
{
    struct call c = *outer;
    struct staging *s = staging_of(c.group);
    struct talking *t = s ? &s->talking : NULL;
    ct_status status = s ? CT_OK : CT_ERR_NOMEM;

    c.place = s && s->devices.known ? s->devices.place : w->place;
    if (status == CT_OK && t->state == NOT_TRIED) {
        if (!s->devices.known)
            status = device_cards(&c, &s->devices);
        if (status == CT_ERR_UNSUPPORTED) { /* now; it may come back with a context */
            if (c.place.device)
                snprintf(w->why, sizeof w->why, "%s", ct_last_error());
            return CT_OK;
        }
        if (status == CT_OK && s->devices.apart)
            status = talking_begin(&c, t);
    }
    if (status == CT_OK && !s->devices.apart)
        snprintf(w->why, sizeof w->why, NCCL_SAME_GPU);
    else if (status == CT_OK && t->state == TALKS)
        w->comm = t->by->handle(t->talk);
    else if (status == CT_OK)
        snprintf(w->why, sizeof w->why, "%s", t->why);
    return status;
}

static ct_status run_nccl_comm(struct call *c)
{
    return find_comm(c, c->recv.base);
}

static const struct algorithm nccl_comm = { "nccl_comm", NULL, run_nccl_comm, 0 };
const struct algorithm *const nccl_comm_algorithms[] = { &nccl_comm, NULL };

ct_status ct_nccl_comm(ct_group *group, void **comm)
{
    struct wanted wanted = { .comm = NULL };
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_NCCL_COMM,
        .dtype = CT_U8,
        .op = NONE,
        .root = NONE,
        .count = sizeof wanted,
        .recv = { .base = &wanted, .count = sizeof wanted, .blocks = 1 },
    };
    ct_status status;

    if (!comm)
        return ct_fail(CT_ERR_INVALID, "ct_nccl_comm: no place for the communicator was given");
    if (place_current(&wanted.place) != CT_OK) {
        snprintf(wanted.why, sizeof wanted.why, "%s", ct_last_error());
        wanted.place.device = NULL;
    }
    status = call_run(&request, NULL);
    if (status != CT_OK)
        return status;
    if (!wanted.comm)
        return ct_fail(CT_ERR_UNSUPPORTED, "ct_nccl_comm: %s", wanted.why);
    *comm = wanted.comm;
    return CT_OK;
}
