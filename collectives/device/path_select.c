/* SPDX-License-Identifier: Apache-2.0 */
/* path_select.c - which path a call on device memory takes: one is tried after the other, until one
 * has made it.
 *
 * The first is what an operation's override names (algorithm_wishes.h), else CT_DEVICE, else NCCL
 * where each rank has a device of its own, else the devices of a host (device_first_path()).  An
 * override is no must: the other paths follow, and the host is the last.  All ranks have the same
 * order: an operation's override is part of their signatures, CT_DEVICE of the device table. */
#include "collectives/device/path_select.h"

#include <stdio.h>
#include <string.h>

#include "collectives/device/device_call.h"
#include "collectives/device/fused/fused_group.h"
#include "collectives/device/nccl/communicator.h"
#include "collectives/device/staged/staged.h"
#include "runtime/group/device_wait.h"

const struct device_path *const device_paths[PATH_COUNT] = {
    [PATH_NCCL] = &nccl_path,
    [PATH_FUSED] = &fused_path,
    [PATH_STAGED] = &staged_path,
};

/* The paths of a call, in their order; behind PATH_STAGED comes no other.  How many. */
static int order_of(const struct call *c, enum path_number order[PATH_COUNT])
{
    const enum path_number first = device_first_path(c->group, device_override(c));
    int count = 0;

    order[count++] = first;
    for (int i = PATH_NCCL; i < PATH_COUNT && first != PATH_STAGED; i++)
        if (i != (int)first)
            order[count++] = (enum path_number)i;
    return count;
}

ct_status device_wait_for_mark(struct call *c)
{
    const ct_status status =
        c->mark ? device_wait(c->group, c->place, c->mark, c->deadline, &c->group->failure.status)
                : CT_OK;

    device_forget(c);
    return status;
}

/* The call is as any other from here on. */
static ct_status go_by_hosts(struct call *c)
{
    c->by_streams = 0;
    return device_wait_for_mark(c);
}

static ct_status prepare_and_run(struct call *c, const struct device_path *path,
                                 enum path_result *result)
{
    ct_status status = path->prepare(c, result);

    if (status != CT_OK || *result != PATH_OK)
        return status;
    status = path->run(c, result);
    if (*result == PATH_OK)
        atomic_store(&c->group->last_algorithm, path->name);
    return status;
}

static ct_status try_path(struct call *c, enum path_number number, enum path_result *result)
{
    const struct device_path *const path = device_paths[number];
    ct_status status;

    *result = PATH_SKIP_CALL;
    if (device_is_disabled(c->group, number))
        return CT_OK;
    status = prepare_and_run(c, path, result);
    if (status == CT_OK && *result == PATH_HOST_SYNC && c->capture == NOT_CAPTURED) {
        status = go_by_hosts(c);
        if (status == CT_OK)
            status = prepare_and_run(c, path, result);
    }
    if (status == CT_OK && *result == PATH_DISABLE)
        device_disable(c->group, number);
    return status;
}

ct_status device_try_paths(struct call *c, enum path_result *result)
{
    enum path_number order[PATH_COUNT];
    const int count = order_of(c, order);
    ct_status status = CT_OK;

    *result = PATH_SKIP_CALL;
    for (int i = 0; i < count && status == CT_OK && *result != PATH_OK; i++) {
        status = try_path(c, order[i], result);
        if (status == CT_OK && *result != PATH_OK && c->by_streams)
            status = go_by_hosts(c); /* the first path was to hand it over by streams */
    }
    return status;
}

/* ---- In words -------------------------------------------------------------------------- */

static const char *reason(const struct call *c, enum path_number taken)
{
    if (c->override == taken)
        return c->group->choices->source[c->signature.operation];
    if (c->override == PATH_NONE && c->group->device->table.override == taken)
        return "CT_DEVICE";
    return "the first that can";
}

static enum path_number taken_by(const struct call *c)
{
    const char *const name = atomic_load(&c->group->last_algorithm);

    for (int i = PATH_NCCL; i < PATH_STAGED; i++)
        if (!strcmp(device_paths[i]->name, name))
            return (enum path_number)i;
    return PATH_STAGED;
}

/* Of the others, whether they were tried.  Why one can't a line of CT_LOG=info says, once. */
void device_explain(const struct call *c)
{
    const enum path_number taken = taken_by(c);
    enum path_number order[PATH_COUNT];
    const int count = order_of(c, order);
    char line[400];
    size_t used = explain_begin(c, 1, line, sizeof line);
    int is_behind = 0;

    if (used == 0)
        return;
    if (used < sizeof line)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s, %s",
                                 device_paths[taken]->name, reason(c, taken));
    for (int i = 0; i < count && order[i] != PATH_STAGED && used < sizeof line; i++) {
        if (order[i] == taken)
            is_behind = 1;
        else if (sizes_are_agreed(c) || order[i] == PATH_FUSED)
            used += (size_t)snprintf(line + used, sizeof line - used, "; %s %s",
                                     device_paths[order[i]]->name,
                                     is_behind ? "comes after it" : "can't");
    }
    if (is_behind && used < sizeof line)
        used += (size_t)snprintf(line + used, sizeof line - used, "; staged could");
    else if (used < sizeof line)
        used += (size_t)snprintf(line + used, sizeof line - used, "; %s on the host",
                                 c->algorithm->name);
    explain_end(line, used, sizeof line);
}
