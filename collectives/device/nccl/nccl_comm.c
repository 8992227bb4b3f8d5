/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_comm.c - the communicator of NCCL's for the program. */
#include <stdio.h>
#include <string.h>

#include "collectives/device/nccl/communicator.h"
#include "include/ct_cuda.h"

/* What ct_nccl_comm() hands to its call, and gets back. */
struct wanted {
    struct place place; /* no device: there is none, and why */
    char why[300];
    void *comm; /* NULL: it can't be, and why */
};

/* It need not have been used before, so the device table and NCCL may begin here. */
static ct_status join(struct call *c, struct communicator *comm, struct wanted *w)
{
    struct device_table *table = &c->group->device->table;
    ct_status status = table->known ? CT_OK : device_table_make(c, table);

    if (status == CT_ERR_UNSUPPORTED) { /* now; it may come back with a context */
        if (c->place.device)
            snprintf(w->why, sizeof w->why, "%s", ct_last_error());
        return CT_OK;
    }
    return status == CT_OK && table->apart ? communicator_join(c, comm) : status;
}

static ct_status find_comm(struct call *outer, struct wanted *w)
{
    struct call c = *outer;
    struct device_group *d = device_group_of(c.group);
    struct communicator *comm = d ? communicator_of(c.group) : NULL;
    ct_status status = CT_OK;

    if (!comm)
        return CT_ERR_NOMEM;
    c.place = d->table.known ? d->table.place : w->place;
    if (!comm->joined && !device_is_disabled(c.group, PATH_NCCL))
        status = join(&c, comm, w);
    if (status != CT_OK || !d->table.known)
        return status;
    if (!d->table.apart)
        snprintf(w->why, sizeof w->why, NCCL_SAME_GPU);
    else if (comm->joined && !device_is_disabled(c.group, PATH_NCCL))
        w->comm = comm->library->handle(comm->talk);
    else
        snprintf(w->why, sizeof w->why, "%s", d->path[PATH_NCCL].why);
    return CT_OK;
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
