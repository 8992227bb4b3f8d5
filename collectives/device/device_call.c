/* SPDX-License-Identifier: Apache-2.0 */
/* device_call.c - runs a collective on device memory on one of the paths.
 *
 *   The call marks the current end of the group's stream, and waits for this mark when the call
 *   runs.
 *   In the group's first call the ranks exchange their devices and the users' choices
 *   (group/device_group.c), and the paths do their first work for the group.
 *   The call tries one path after the other, until a path runs the call:
 *      nccl    if each rank has its own device
 *      fused   on each device of a host one rank, the leader, works for all ranks
 *      staged  copies to the host, runs an algorithm for host memory, copies back
 *
 * When the call returns, or its work is done, any stream sees the results.  The ranks agree on the
 * path during the call, so that no rank waits in a path for a rank that uses another path.
 *
 * An operation's override (algorithm_overrides.h) sets the first path.  Without an override the
 * first path is that of CT_DEVICE, then NCCL if each rank has its own device, then fused
 * (device_first_path()).  An override is not mandatory: the other paths follow, and staged is the
 * last.  All ranks use the same order: an operation's override is part of the ranks' signatures,
 * and CT_DEVICE is part of the device table.
 *
 * A call in a stream that is being captured becomes part of the CUDA graph, and runs when the graph
 * is launched.  If no path can do this, all ranks refuse the call. */
#include "collectives/device/device_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/device/fused/fused_group.h"
#include "collectives/device/nccl/communicator.h"
#include "collectives/device/staged/staged.h"
#include "include/ct_cuda.h"
#include "runtime/group/group_device.h"
#include "runtime/group/shm/direct.h"
#include "runtime/util/clock.h"
#include "runtime/util/task_queue.h"

const struct device_path *const device_paths[PATH_COUNT] = {
    [PATH_NCCL] = &nccl_path,
    [PATH_FUSED] = &fused_path,
    [PATH_STAGED] = &staged_path,
};

/* ---- In the caller's thread ---------------------------------------------------------------- */

static void device_forget(struct call *c)
{
    if (c->mark)
        c->place.space->forget(c->place.device, c->mark);
    c->mark = NULL;
}

/* Values of group->in_streams, for threads that make further calls.  AGREED means that the device
 * table was made, in a call for which all ranks know all sizes. */
enum { NO_CALL_YET, SOME_CALL, AGREED };

static int path_can(const struct device_path *path, const struct call *c)
{
    return !path->can || path->can(c);
}

static int is_to_come(const ct_group *group, int path)
{
    return (int)(atomic_load(&group->device->to_come) >> path & 1);
}

/* Returns 1 if such a call must still set up a path for the group. */
static int begins_path(const struct call *c)
{
    for (int i = PATH_NCCL; i < PATH_COUNT; i++)
        if (is_to_come(c->group, i) && path_can(device_paths[i], c))
            return 1;
    return 0;
}

static int may_need_memory(const struct call *c, int i)
{
    const struct device_path *path = device_paths[i];

    return !device_is_disabled(c->group, (enum path_number)i) && path->needs_memory
           && path_can(path, c) && path->needs_memory(c);
}

/* Returns 0 if no stream may wait for the call.  These calls are the group's first call, the first
 * call for which all ranks know all sizes, a call that sets up a path, and a call that needs more
 * of libct's own device memory than is allocated. */
static int device_may_hold_stream(const struct call *c)
{
    const int known = atomic_load(&c->group->on_device.in_streams);
    enum path_number first;

    if (!c->place.space) /* calls on host memory use no stream */
        return 1;
    if (known == NO_CALL_YET || (known == SOME_CALL && sizes_are_agreed(c)))
        return 0;
    if (known == SOME_CALL) /* then the call is staged */
        return 1;
    if (sizes_are_agreed(c) && begins_path(c))
        return 0;
    first = device_first_path(c->group, device_override(c));
    if (!device_is_disabled(c->group, first) && path_can(device_paths[first], c))
        return !may_need_memory(c, (int)first);
    for (int i = PATH_NCCL; i < PATH_COUNT; i++)
        if (may_need_memory(c, i))
            return 0;
    return 1;
}

static int streams_hand_over(const struct call *c)
{
    enum path_number first;

    if (!sizes_are_agreed(c) || atomic_load(&c->group->on_device.in_streams) != AGREED)
        return 0;
    first = device_first_path(c->group, device_override(c));
    return !is_to_come(c->group, (int)first) && device_paths[first]->hands_over
           && device_paths[first]->hands_over(c);
}

/* Decides whether the stream waits for the call, and whether streams hand the call over. */
static void device_choose_way(struct call *c, int has_work)
{
    if (c->capture != NOT_CAPTURED) /* an earlier call may still find out what streams can do */
        queue_drain(c->group->async.queue);
    c->stream_waits = !has_work && c->group->on_device.stream && c->capture == NOT_CAPTURED
                      && device_may_hold_stream(c);
    /* A call by streams only enqueues, so it runs in the caller's thread and no stream waits for
     * it. */
    c->by_streams = (c->stream_waits || c->capture != NOT_CAPTURED) && streams_hand_over(c);
    c->stream_waits &= !c->by_streams;
}

static ct_status note_stream(struct call *c, int has_work)
{
    const struct space *space = c->place.space;
    void *const stream = c->group->on_device.stream;
    ct_status status = CT_OK;

    if (!has_work && stream && sizes_are_agreed(c))
        status = space->capture_of(c->place.device, stream, &c->capture);
    if (c->capture != NOT_CAPTURED)
        c->signature.algorithm |= SIGNATURE_CAPTURED;
    if (status == CT_OK)
        device_choose_way(c, has_work);
    c->is_behind_streams = !c->by_streams && atomic_load(&c->group->on_device.in_streams) == AGREED
                           && handover_is_in_another(c->group, stream);
    if (status == CT_OK && c->capture == NOT_CAPTURED && !c->by_streams)
        status = space->mark(c->place.device, stream, &c->mark);
    return status;
}

static ct_status device_prepare(struct call *c, int has_work)
{
    void *before;
    ct_status status;

    if (!c->place.space)
        return CT_OK;
    status = c->place.space->enter(&before);
    if (status != CT_OK)
        return status;
    status = note_stream(c, has_work);
    c->place.space->leave(before);
    if (status == CT_ERR_CUDA && c->group->on_device.stream)
        ct_fail_in(status,
                   "%s: the stream of ct_set_stream() (is it of the GPU that has the buffers, and "
                   "not destroyed?): ",
                   operation_name(c->signature.operation));
    return status;
}

/* ---- Paths ------------------------------------------------------------------------------------
 */

/* Lists the paths of a call in the order in which the call tries them, PATH_STAGED last.  Returns
 * the number of paths. */
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

/* Waits for the work that was in the group's stream when the call was made. */
static ct_status device_wait_for_mark(struct call *c)
{
    const ct_status status =
        c->mark ? device_wait(c->group, c->place, c->mark, c->deadline, &c->group->failure.status)
                : CT_OK;

    device_forget(c);
    return status;
}

/* Makes hosts wait for the devices, from now to the end of the call. */
static ct_status go_by_hosts(struct call *c)
{
    const int is_marked = !c->by_streams || c->capture != NOT_CAPTURED;
    const ct_status status =
        is_marked ? CT_OK
                  : c->place.space->mark(c->place.device, c->group->on_device.stream, &c->mark);

    c->by_streams = 0;
    return status == CT_OK ? device_wait_for_mark(c) : status;
}

static ct_status prepare_and_run(struct call *c, const struct device_path *path,
                                 enum path_result *result)
{
    ct_status status = path->prepare(c, result);

    if (status != CT_OK || *result != PATH_OK)
        return status;
    status = path->run(c, result);
    if (*result == PATH_OK)
        atomic_store(&c->group->algorithms.last, path->name);
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

/* Tries all paths.  Sets *result to PATH_OK, or to another value if no path could run the call. */
static ct_status try_paths(struct call *c, enum path_result *result)
{
    enum path_number order[PATH_COUNT];
    const int count = order_of(c, order);
    ct_status status = CT_OK;

    *result = PATH_SKIP_CALL;
    for (int i = 0; i < count && status == CT_OK && *result != PATH_OK; i++) {
        status = try_path(c, order[i], result);
        if (status == CT_OK && *result != PATH_OK && c->by_streams)
            status = go_by_hosts(c); /* only the first path hands calls over by streams */
    }
    return status;
}

/* ---- CT_EXPLAIN -------------------------------------------------------------------------- */

static const char *reason(const struct call *c, enum path_number taken)
{
    if (c->override == taken)
        return c->group->algorithms.choices->source[c->signature.operation];
    if (c->override == PATH_NONE && c->group->device->table.override == taken)
        return "CT_DEVICE";
    return "the first that can";
}

static enum path_number taken_by(const struct call *c)
{
    const char *const name = atomic_load(&c->group->algorithms.last);

    for (int i = PATH_NCCL; i < PATH_STAGED; i++)
        if (!strcmp(device_paths[i]->name, name))
            return (enum path_number)i;
    return PATH_STAGED;
}

/* Logs the path that the call used, the reason, and the other paths that were tried.  With
 * CT_LOG=info, the log tells once why a path can't run a call. */
static void device_explain(const struct call *c)
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

/* ---- The call -------------------------------------------------------------------------------- */

/* Returns 1 if this rank, which has no device memory in the call, must find out with the other
 * ranks whether the call is on device memory.  The ranks can do so once they have the device table.
 * The result is the same on all ranks. */
static int takes_part(const struct call *c)
{
    if (!c->group->device)
        return 0;
    for (int i = PATH_NCCL; i < PATH_STAGED; i++)
        if (!device_is_disabled(c->group, (enum path_number)i) && path_can(device_paths[i], c))
            return 1;
    return 0;
}

static ct_status begin_group(struct call *c, struct device_group *d)
{
    ct_status status = d->table.known ? CT_OK : device_table_make(c, &d->table);

    for (int i = PATH_NCCL; i < PATH_COUNT && status == CT_OK; i++)
        if (device_paths[i]->begin_group)
            status = device_paths[i]->begin_group(c);
    return status;
}

static ct_status run_paths(struct call *c, struct device_group *d, enum path_result *result)
{
    ct_status status = c->is_behind_streams ? call_await_streams(c) : CT_OK;

    if (status == CT_OK && !c->by_streams)
        status = device_wait_for_mark(c);
    if (status == CT_OK && sizes_are_agreed(c))
        status = begin_group(c, d);
    return status == CT_OK ? try_paths(c, result) : status;
}

/* How long this thread waits, after a failure, for devices that use its buffers. */
enum { SETTLES_MS = SHM_GROUP_DEVICE_SETTLING_MS + DRIVER_LATE_MS };

static ct_status run_on_device(struct call *c, struct device_group *d, enum path_result *result)
{
    const ct_status status = run_paths(c, d, result);

    if (status != CT_OK)
        c->place.space->set_limit(&d->limit, deadline_after(SETTLES_MS));
    return status;
}

static ct_status capture_fails(const struct call *c)
{
    const char *const why = c->group->device->path[PATH_NCCL].why;

    if (c->capture == CAPTURE_IS_VOID)
        return ct_fail(CT_ERR_INVALID, "the capture of the group's stream is void: something that "
                                       "was done meanwhile can't be in a CUDA graph");
    for (int i = PATH_NCCL; i < PATH_COUNT; i++) {
        const struct device_path *path = device_paths[i];
        const char *missing = path->missing_for_capture ? path->missing_for_capture(c) : NULL;

        if (missing)
            return ct_fail(CT_ERR_INVALID, "%s: make such a call once before the capture", missing);
    }
    return ct_fail(CT_ERR_INVALID,
                   "a CUDA graph can contain only calls that use NCCL, or that the GPUs of one "
                   "host do directly in the buffers; on some rank this call does neither "
                   "(docs/gpu.md)%s%s; call it outside the capture",
                   *why ? ": " : "", why);
}

/* Refuses the call on all ranks, since all ranks have found that no path can capture it.  A rank
 * that does not capture makes a different call, and the gather detects this. */
static ct_status refuse_capture(struct call *c)
{
    char *const all = malloc((size_t)c->group->size);
    const char mine = 0;
    ct_status status;

    if (!all)
        return ct_fail(CT_ERR_NOMEM, "no memory to gather from %d ranks", c->group->size);
    status = device_gather(c, &mine, sizeof mine, all);
    free(all);
    c->refused = status == CT_OK;
    return status == CT_OK ? capture_fails(c) : status;
}

static void note_for_streams(const struct call *c, struct device_group *d)
{
    unsigned to_come = 0;
    int none = NO_CALL_YET;

    if (!sizes_are_agreed(c)) {
        atomic_compare_exchange_strong(&c->group->on_device.in_streams, &none, SOME_CALL);
        return;
    }
    for (int i = PATH_NCCL; i < PATH_COUNT; i++)
        if (device_paths[i]->is_to_come && device_paths[i]->is_to_come(c->group))
            to_come |= 1u << i;
    atomic_store(&d->to_come, to_come);
    atomic_store(&c->group->on_device.in_streams, AGREED);
}

static ct_status run_here(struct call *c, struct device_group *d)
{
    enum path_result result = PATH_SKIP_CALL;
    ct_status status;
    void *before;

    status = c->place.space->enter(&before);
    if (status != CT_OK)
        return status;
    status = run_on_device(c, d, &result);
    if (status == CT_OK && result != PATH_OK)
        status = refuse_capture(c); /* a call outside a capture always finds a path */
    c->place.space->leave(before);
    if (status == CT_OK)
        note_for_streams(c, d);
    if (status == CT_OK && c->group->algorithms.choices->explain)
        device_explain(c);
    return status;
}

/* Runs a call in which this rank has no buffer on a device.  The rank may still be the leader of a
 * device. */
static ct_status run_elsewhere(struct call *c, struct device_group *d)
{
    const struct space *space = d->table.place.space;
    enum path_result result = PATH_SKIP_CALL;
    ct_status status;
    void *before;

    status = space->enter(&before);
    if (status != CT_OK)
        return status;
    c->place = d->table.place;
    c->elsewhere = 1;
    status = run_on_device(c, d, &result);
    c->place = (struct place){ NULL, NULL };
    space->leave(before);
    return status != CT_OK || result == PATH_OK ? status : c->algorithm->run(c);
}

static ct_status fail_group(ct_group *group, ct_status status)
{
    char words[1024];

    snprintf(words, sizeof words, "%s", ct_last_error());
    for (int i = PATH_NCCL; i < PATH_COUNT; i++)
        if (device_paths[i]->fail_group && group->device->path[i].own)
            device_paths[i]->fail_group(group);
    return ct_fail(status, "%s", words);
}

/* Runs the call under a time limit.  If the driver blocks this thread longer, the gates open,
 * streams continue without the call, and the call has failed. */
static ct_status run_in_time(struct call *c, struct device_group *d)
{
    const struct space *space = c->place.space ? c->place.space : d->table.place.space;
    ct_status status;

    space->begin_limit(&d->limit, &c->group->async.queue, c->deadline + DRIVER_LATE_MS);
    status = c->place.space ? run_here(c, d) : run_elsewhere(c, d);
    if (space->set_limit(&d->limit, deadline_after(SETTLES_MS))
        && (status == CT_OK || status == CT_ERR_TIMEOUT))
        status = space->fail_late();
    if (status != CT_OK && !c->refused)
        status = fail_group(c->group, status);
    space->end_limit(&d->limit);
    return status;
}

static ct_status device_run(struct call *c)
{
    struct device_group *d;

    if (!c->place.space && !takes_part(c))
        return c->algorithm->run(c);
    if (!(d = device_group_of(c->group)))
        return CT_ERR_NOMEM;
    return run_in_time(c, d);
}

const struct executor device_executor = {
    .prepare = device_prepare,
    .run = device_run,
    .may_hold_stream = device_may_hold_stream,
    .forget = device_forget,
};

void device_end_group(ct_group *group)
{
    struct device_group *d = group->device;

    if (!d)
        return;
    /* NCCL ends first, since other paths may wait for work that NCCL enqueued. */
    for (int i = PATH_NCCL; i < PATH_COUNT; i++)
        if (d->path[i].own)
            device_paths[i]->end_group(group);
    leaders_free(&d->table.leaders);
    free(d);
    group->device = NULL;
}

/* CU_STREAM_PER_THREAD, which equals cudaStreamPerThread. */
#define PER_THREAD ((void *)(uintptr_t)2)

ct_status ct_set_stream(ct_group *group, void *stream)
{
    ct_group *g;
    const ct_status status = group_resolve_member(group, &g);
    char words[1024];
    struct place place;

    if (status != CT_OK)
        return ct_fail_in(status, "ct_set_stream: ");
    if (stream == PER_THREAD)
        return ct_fail(CT_ERR_INVALID,
                       "ct_set_stream: each thread has another per-thread default stream, and "
                       "libct uses several threads; pass a stream that you created");
    /* Loads the kernels now, since the driver waits for all running work when it loads kernels.  In
     * the group's first call the stream might already wait for another rank.  If this fails here,
     * the group's first call reports the reason. */
    snprintf(words, sizeof words, "%s", ct_last_error());
    if (stream && place_current(&place) != CT_OK)
        ct_fail(CT_OK, "%s", words);
    g->on_device.stream = stream;
    return CT_OK;
}
