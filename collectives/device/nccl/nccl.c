/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - runs calls with NCCL, if each rank has its own device.
 *
 *   prepare:
 *     In the group's first call, all ranks join a communicator (communicator.c).
 *     In each call, the ranks gather whether every rank can run the call with its buffers.
 *   run:
 *     Each rank enqueues the call, and waits for it.
 *
 * So no rank enqueues a call that waits for a rank which does not run it.  The gather costs a few
 * microseconds on a host and tens of microseconds between hosts.  It also finds ranks that make
 * different calls, with which NCCL would hang.
 *
 * NCCL runs the calls below with the bits that ct.h promises.  NCCL sums floats in its own order,
 * so it sums floats only with CT_ORDER=fast, or if the user did not set CT_ORDER.  Other calls use
 * another path. */
#include <stdio.h>
#include <stdlib.h>

#include "collectives/device/nccl/communicator.h"
#include "include/ct_cuda.h"
#include "runtime/util/log.h"

enum can { CANT, SAME_BITS, OWN_ORDER };

/* Returns whether NCCL can fold with the promised bits (SAME_BITS), only in its own order
 * (OWN_ORDER), or not at all (CANT).  NCCL has no 16-bit integers, no bit operations and no complex
 * products.  Unlike ct.h, NCCL sums f8, drops a NaN in MIN and MAX, divides averages of integers,
 * and accepts any byte for "true". */
static enum can can_fold(ct_dtype dtype, ct_op op)
{
    switch ((int)dtype) {
    case CT_I8:
    case CT_U8:
    case CT_I32:
    case CT_U32:
    case CT_I64:
    case CT_U64:
        return op == CT_SUM || op == CT_PRODUCT || op == CT_MIN || op == CT_MAX ? SAME_BITS : CANT;
    case CT_F16:
    case CT_BF16:
    case CT_F32:
    case CT_F64:
        return op == CT_SUM || op == CT_PRODUCT || op == CT_AVG ? OWN_ORDER : CANT;
    case CT_C64:
    case CT_C128: /* NCCL gets twice as many real numbers */
        return op == CT_SUM || op == CT_AVG ? OWN_ORDER : CANT;
    default:
        return CANT;
    }
}

/* Returns 1 if NCCL's result has the promised bits, or NCCL may use its own order.  Only facts that
 * all ranks agree on decide. */
static int nccl_can(const struct call *c)
{
    const ct_group *g = c->group;
    const enum can can = c->signature.op < 0 ? SAME_BITS : can_fold(call_dtype(c), call_op(c));

    if (!sizes_are_agreed(c) || operation_has_counts(c->signature.operation))
        return 0;
    return can == SAME_BITS
           || (can == OWN_ORDER && (g->order.rule == ORDER_FAST || !g->order.is_wished));
}

/* ---- The group ------------------------------------------------------------------------- */

static int is_joined(const ct_group *group)
{
    const struct communicator *comm = group->device->path[PATH_NCCL].own;

    return comm && comm->joined;
}

/* Returns 1 if a call with this override may use NCCL.  With CT_DEVICE=fused a call that can't be
 * fused must not join NCCL, since a stream may wait for the call. */
static int may_use_nccl(const ct_group *group, enum path_number override)
{
    if (device_is_disabled(group, PATH_NCCL)
        || (!is_joined(group) && override == PATH_FUSED && !device_is_disabled(group, PATH_FUSED)))
        return 0;
    return override == PATH_NCCL || (group->size > 1 && group->device->table.apart);
}

static int may_join(const ct_group *group, enum path_number override)
{
    const struct device_table *table = &group->device->table;

    return !is_joined(group) && override != PATH_STAGED && may_use_nccl(group, override)
           && table->with_nccl && table->apart;
}

/* Returns 1 if the group must still join NCCL, because of CT_DEVICE or of an operation's override.
 */
static int nccl_is_to_come(const ct_group *group)
{
    return may_join(group, group->device->table.override)
           || (group->algorithms.choices->paths >> PATH_NCCL & 1 && may_join(group, PATH_NCCL));
}

static const char *nccl_missing(const struct call *c)
{
    return may_join(c->group, device_override(c)) && nccl_can(c)
               ? "the group has not joined NCCL yet, which can't be done in a CUDA graph"
               : NULL;
}

static void nccl_end_group(ct_group *group)
{
    struct communicator *comm = group->device->path[PATH_NCCL].own;
    const int sound = atomic_load(&group->failure.status) == CT_OK;

    if (comm->nccl)
        comm->library->leave(comm->nccl,
                             sound && comm->joined && !device_is_disabled(group, PATH_NCCL));
    free(comm);
}

/* ---- A call ---------------------------------------------------------------------------- */

static int nccl_is_plain(const struct blocks *b)
{
    return !b->list && !b->counts && !b->displs;
}

/* Returns 1 if NCCL can run the call, from facts that only this rank knows. */
static int nccl_can_here(const struct call *c, const struct communicator *comm)
{
    const int in_place = c->send.base == c->recv.base;

    return nccl_is_plain(&c->send) && nccl_is_plain(&c->recv) && !c->scalar
           && c->place.device == comm->device && c->capture != CAPTURE_IS_VOID
           && !(in_place && c->signature.operation == OPERATION_ALL_TO_ALL);
}

static ct_status can_everywhere(struct call *c, const struct communicator *comm, int *can)
{
    const int32_t mine = nccl_can_here(c, comm);
    int32_t few[16], *all = few;
    ct_status status;

    if (c->group->size > (int)(sizeof few / sizeof *few))
        all = malloc((size_t)c->group->size * sizeof *all);
    if (!all)
        return ct_fail(CT_ERR_NOMEM, "no memory to gather from %d ranks", c->group->size);
    status = device_gather(c, &mine, sizeof mine, all);
    *can = status == CT_OK;
    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        *can &= all[i];
    if (all != few)
        free(all);
    return status;
}

static void say_order(const struct call *c, struct communicator *comm)
{
    if (comm->said_order || c->group->rank != 0 || c->signature.op < 0
        || can_fold(call_dtype(c), call_op(c)) != OWN_ORDER || c->group->order.rule == ORDER_FAST)
        return;
    comm->said_order = 1;
    log_line(LOG_INFO,
             "group %s: NCCL sums floats in its own order; CT_ORDER=nodes or CT_ORDER=rank makes "
             "libct sum them",
             c->group->name);
}

/* Logs, once, that the user's override has no effect. */
static void say_cant(const struct call *c, struct communicator *comm)
{
    char text[96];

    if (comm->said_cant || c->group->rank != 0)
        return;
    comm->said_cant = 1;
    if (!c->group->device->table.apart) {
        log_line(LOG_WARN, "group %s: CT_DEVICE=nccl can't be used: " NCCL_SAME_GPU,
                 c->group->name);
        return;
    }
    signature_describe(&c->signature, text, sizeof text);
    log_line(LOG_INFO, "group %s: CT_DEVICE=nccl can't be used for some calls, first for %s%s",
             c->group->name, text,
             can_fold(call_dtype(c), call_op(c)) == OWN_ORDER ? ", whose order CT_ORDER says" : "");
}

static ct_status nccl_prepare(struct call *c, enum path_result *result)
{
    const enum path_number override = device_override(c);
    struct communicator *comm;
    ct_status status = CT_OK;
    int can = 0;

    *result = PATH_SKIP_CALL;
    if (!sizes_are_agreed(c) || !may_use_nccl(c->group, override)
        || (c->capture != NOT_CAPTURED && !is_joined(c->group)))
        return CT_OK;
    if (!(comm = communicator_of(c->group)))
        return CT_ERR_NOMEM;
    if (!c->group->device->table.apart || !nccl_can(c)) {
        if (override == PATH_NCCL)
            say_cant(c, comm);
        return CT_OK;
    }
    if (!comm->joined)
        status = communicator_join(c, comm);
    if (status == CT_OK && comm->joined)
        status = can_everywhere(c, comm, &can);
    if (status == CT_OK && can)
        *result = PATH_OK;
    return status;
}

/* Runs the call.  A captured call is done when it is in the graph, since libct takes no part in a
 * launch. */
static ct_status nccl_run(struct call *c, enum path_result *result)
{
    void *const captured = c->capture == CAPTURED ? c->group->on_device.stream : NULL;
    struct communicator *comm = communicator_of(c->group);
    char why[600];
    ct_status status;

    *result = PATH_OK;
    say_order(c, comm);
    status = comm->library->start(comm->nccl, &c->signature, c->send.base, c->recv.base, captured);
    if (status == CT_OK)
        status = communicator_wait(c, comm);
    if (status == CT_OK)
        return CT_OK;
    snprintf(why, sizeof why, "%s", ct_last_error());
    communicator_fail(c->group, comm);
    return ct_fail(status, "%s", why);
}

const struct device_path nccl_path = {
    .name = "nccl",
    .can = nccl_can,
    .is_to_come = nccl_is_to_come,
    .missing_for_capture = nccl_missing,
    .prepare = nccl_prepare,
    .run = nccl_run,
    .end_group = nccl_end_group,
};

/* ---- NCCL's communicator for the program ------------------------------------------------- */

/* The argument and the result of the call in ct_nccl_comm(). */
struct wanted {
    struct place place; /* zeros if this rank has no device */
    void *comm;         /* NULL if there is no communicator */
    char why[300];      /* the reason if there is no device or no communicator */
};

/* Makes the device table and joins NCCL, since this may be the group's first use of devices. */
static ct_status join_for_program(struct call *c, struct communicator *comm, struct wanted *w)
{
    struct device_table *table = &c->group->device->table;
    ct_status status = table->known ? CT_OK : device_table_make(c, table);

    if (status == CT_ERR_UNSUPPORTED) { /* not disabled for good, since the rank may have a context
                                           in a later call */
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
        status = join_for_program(&c, comm, w);
    if (status != CT_OK || !d->table.known)
        return status;
    if (!d->table.apart)
        snprintf(w->why, sizeof w->why, NCCL_SAME_GPU);
    else if (comm->joined && !device_is_disabled(c.group, PATH_NCCL))
        w->comm = comm->library->handle(comm->nccl);
    else
        snprintf(w->why, sizeof w->why, "%s", d->path[PATH_NCCL].why);
    return CT_OK;
}

static ct_status nccl_comm_run(struct call *c)
{
    return find_comm(c, c->recv.base);
}

static const struct algorithm nccl_comm_algorithm = { .name = "nccl_comm", .run = nccl_comm_run };
const struct algorithm *const nccl_comm_algorithms[] = { &nccl_comm_algorithm, NULL };

ct_status ct_nccl_comm(ct_group *group, void **comm)
{
    struct wanted wanted = { .comm = NULL };
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_NCCL_COMM,
        .algorithms = nccl_comm_algorithms,
        .dtype = CT_U8,
        .op = NONE,
        .root = NONE,
        .count = sizeof wanted,
        .recv = { .base = &wanted, .count = sizeof wanted, .blocks = 1 },
    };
    ct_status status;

    if (!comm)
        return ct_fail(CT_ERR_INVALID, "ct_nccl_comm: the pointer for the communicator is NULL");
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
