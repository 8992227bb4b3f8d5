/* SPDX-License-Identifier: Apache-2.0 */
/* fused.c - runs calls of ranks that are all on one host.  On each device one rank, the leader,
 * maps the buffers of all ranks and works for all ranks.
 *
 *   In the group's first call, if there are several devices:
 *     The ranks check that the devices have peer access (peer_access_check.c).
 *   prepare:
 *     Each rank publishes handles of its buffers, which other processes can map.
 *     The leaders map the buffers (the first time).  Several leaders exchange whether this
 *     succeeded, so that no leader begins a call that another leader can't finish.
 *   run:
 *     Each leader folds and copies its share (copy_plan.c) in place, and waits for its device.
 *     Each leader publishes its result.  All ranks wait for the leaders' results.
 *
 * Processes that share a device use it in turns of a millisecond.  Kernels that wait for each
 * other's flags would be very slow, so one process does all work on a device.  Cost: two rounds
 * (three with several devices), one launch, and each byte read and written once (copy_plan.c).  A
 * rank that is not a leader reads the call's result in the last round, even if a leader could not
 * prepare.
 *
 * If other processes can't map a rank's buffers, the rank copies the blocks through memory that
 * other processes can map (bounce_buffer.c).  If that memory has no room, or if a buffer is on
 * another device than before, the call uses another path.  All calls use another path if the ranks
 * are on several hosts, the devices have no peer access, or a leader could not map a handle. */
#include "collectives/device/fused/fused_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/group/group_device.h"
#include "runtime/group/shm/direct.h"
#include "runtime/group/shm/rounds.h"
#include "runtime/group/shm/slots.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

static struct fused_group *fused_make_group(ct_group *group)
{
    return device_path_own(group, PATH_FUSED, sizeof(struct fused_group));
}

/* ---- Decisions ----------------------------------------------------------------------------- */

static int check_is_to_come(const ct_group *group)
{
    const struct fused_group *f = fused_of(group);

    return device_leaders(group)->count > 1 && (!f || f->peer_access == PEERS_UNCHECKED)
           && group->device->table.override != PATH_STAGED;
}

static int handover_is_to_come(const ct_group *group)
{
    const struct fused_group *f = fused_of(group);

    return !(f && f->handover.tried)
           && device_first_path(group, group->device->table.override) == PATH_FUSED;
}

static int fused_is_to_come(const ct_group *group)
{
    return !device_is_disabled(group, PATH_FUSED)
           && (check_is_to_come(group) || handover_is_to_come(group));
}

/* Returns 1 if the path could run the call.  If the ranks don't know each other's sizes, a rank may
 * have no block at all.  Then the ranks use the device table to find out together whether the call
 * is on device memory. */
static int fused_can(const struct call *c)
{
    const struct device_table *table = &c->group->device->table;

    if (sizes_are_agreed(c))
        return c->group->size == 1 || c->group->shm != NULL;
    return c->group->shm && table->known && table->override != PATH_STAGED
           && !check_is_to_come(c->group);
}

static const char *fused_missing(const struct call *c)
{
    return atomic_load(&c->group->on_device.in_streams)
               ? NULL
               : "the group has made no call on device memory yet, and its first can't be in a "
                 "CUDA graph";
}

/* Any thread may read ->handover, since the group's first call sets ->handover before in_streams.
 */
static int fused_hands_over(const struct call *c)
{
    const struct fused_group *f = fused_of(c->group);

    return f && f->handover.on && (f->handover.always || c->capture != NOT_CAPTURED);
}

/* ---- The group ----------------------------------------------------------------------------- */

static void disable_without_memory(ct_group *group)
{
    device_disable(group, PATH_FUSED);
    if (group->device->table.override == PATH_FUSED && group->rank == 0)
        log_line(LOG_INFO, "group %s: CT_DEVICE=fused can't be used: the ranks share no memory",
                 group->name);
}

/* Sets up the path for the group.  A captured call does not check peer access, since the check
 * allocates and maps memory. */
static ct_status fused_begin_group(struct call *c)
{
    ct_group *g = c->group;
    struct fused_group *f;
    ct_status status = CT_OK;

    if (g->size > 1 && !g->shm && !device_is_disabled(g, PATH_FUSED))
        disable_without_memory(g);
    if (!fused_is_to_come(g))
        return CT_OK;
    if (!(f = fused_make_group(g)))
        return CT_ERR_NOMEM;
    if (check_is_to_come(g) && c->capture == NOT_CAPTURED)
        status = fused_check_peers(c, f);
    if (f->peer_access == PEERS_OUT_OF_REACH)
        device_disable(g, PATH_FUSED);
    if (status == CT_OK && !device_is_disabled(g, PATH_FUSED) && handover_is_to_come(g))
        status = handover_begin(c, &f->handover, g->device->table.by_streams);
    return status;
}

/* Unmaps other ranks' memory, unless the device still uses it after wait_ms. */
static void unmap(ct_group *group, const struct fused_group *f, int wait_ms)
{
    const struct place place = f->mapped;
    void *before;

    if (!place.space || place.space->enter(&before) != CT_OK)
        return;
    if (place.space->finish(place.device, (struct patience){ .deadline = deadline_after(wait_ms) })
        != CT_ERR_TIMEOUT)
        place.space->put(group);
    place.space->leave(before);
}

/* Unmaps other ranks' memory, since the memory of a rank that has exited is not freed while it is
 * mapped here.  Streams that handed calls over may still use it; then the end of the group unmaps
 * it. */
static void fused_fail_group(ct_group *group)
{
    const struct fused_group *f = fused_of(group);

    if (!f->handover.used)
        unmap(group, f, 0); /* this rank has already waited for its device */
}

static void fused_end_group(ct_group *group)
{
    struct fused_group *f = fused_of(group);

    if (!handover_stays(group, &f->handover)) {
        unmap(group, f, SHM_GROUP_DEVICE_SETTLING_MS);
        handover_end(group, &f->handover);
    }
    bounce_free(&f->checked);
    bounce_free(&f->bounce);
    free(f->offer);
    free(f);
}

/* ---- Rounds -------------------------------------------------------------------------------- */

/* Returns memory for this rank's offer, which is kept for the next call.  NULL if there is no
 * memory. */
static struct offer *room_for_offer(const struct call *c, struct fused_group *f)
{
    const size_t bytes = offer_most(c);

    if (f->offer_bytes < bytes) {
        free(f->offer);
        f->offer = malloc(bytes);
        f->offer_bytes = f->offer ? bytes : 0;
    }
    if (!f->offer)
        ct_fail(CT_ERR_NOMEM, "no memory to offer the buffers of %d ranks", c->group->size);
    return f->offer;
}

/* Makes the offer.  Copies sides that leaders can't map to the bounce buffer.  Sets f->given to the
 * call with the buffers that the leaders map. */
static ct_status offer_call(const struct call *c, struct fused_group *f, size_t *bytes)
{
    int bounce, bounced = 0;
    ct_status status = offer_make(c, f->offer, bytes, &bounce);

    f->given = *c;
    if (status != CT_OK || !bounce
        || c->by_streams) /* earlier work in the stream may not be done yet */
        return status;
    status = bounce_in(c, bounce, &f->given, &bounced);
    if (status != CT_OK || !bounced)
        return status;
    status = offer_make(&f->given, f->offer, bytes, &bounce);
    if (bounce)
        bounce_refuse(&f->bounce);
    return status;
}

static ct_status publish_offer(struct call *c, struct fused_group *f)
{
    ct_status status = shm_group_next_slot(c->group->shm, offer_most(c));
    size_t bytes;

    if (status == CT_OK)
        status = offer_call(c, f, &bytes);
    if (status != CT_OK)
        return status;
    shm_group_write(c->group->shm, 0, f->offer, bytes);
    return shm_group_publish(c->group->shm);
}

static ct_status publish_result(const struct call *c, enum path_result result)
{
    ct_status status = shm_group_next_slot(c->group->shm, sizeof result);

    if (status != CT_OK)
        return status;
    shm_group_write(c->group->shm, 0, &result, sizeof result);
    return shm_group_publish(c->group->shm);
}

/* Publishes this rank's result; ranks read only the leaders' results.  Sets *result to the largest
 * result of all leaders. */
static ct_status share_result(const struct call *c, enum path_result *result)
{
    const struct leaders *l = device_leaders(c->group);
    ct_status status = publish_result(c, *result);

    *result = PATH_OK;
    for (int i = 0; i < l->count && status == CT_OK; i++) {
        enum path_result its;

        status = shm_group_wait(c->group->shm, l->rank[i]);
        if (status != CT_OK)
            break;
        memcpy(&its, shm_group_slot(c->group->shm, l->rank[i]), sizeof its);
        if (its > *result)
            *result = its;
    }
    return status;
}

/* ---- A leader maps the buffers ------------------------------------------------------------ */

static int some_by_streams(const struct call *c, const struct offer *const *offers)
{
    int some = 0;

    for (int i = 0; i < c->group->size; i++)
        some |= offers[i]->by_streams;
    return some;
}

/* Maps rank i's blocks.  If the result is not PATH_OK, writes the reason to why[]. */
static enum path_result map_rank(const struct call *c, struct fused_group *f, int i, char *why,
                                 size_t size)
{
    const struct leaders *l = device_leaders(c->group);
    const struct offer *o = f->offers[i];
    /* A single device may change from call to call.  Several devices must be the devices that were
     * checked. */
    const unsigned char *device = l->count > 1 ? l->id[l->of[i]] : f->offers[0]->device;
    ct_status status;

    if (!o->usable) {
        snprintf(why, size, "%s", o->why);
        return some_by_streams(c, f->offers) ? PATH_HOST_SYNC : PATH_SKIP_CALL;
    }
    if (o->by_streams != f->offers[0]->by_streams) {
        snprintf(why, size, "not all ranks' calls are in a stream and without a work");
        return PATH_HOST_SYNC;
    }
    if (memcmp(o->device, device, sizeof o->device) != 0) {
        snprintf(why, size, "rank %d's buffers are on another device than rank %d's%s",
                 c->group->ranks[i], c->group->ranks[l->count > 1 ? i : 0],
                 l->count > 1 ? " in the group's first call" : "");
        return PATH_SKIP_CALL;
    }
    status = offer_take(c, o, SENDS, f->all.send + i * f->all.sends, f->all.sends);
    if (status == CT_OK)
        status = offer_take(c, o, RECVS, f->all.recv + i * f->all.recvs, f->all.recvs);
    if (status == CT_OK)
        return PATH_OK;
    snprintf(why, size, "%s", ct_last_error());
    if (status == CT_ERR_INVALID && some_by_streams(c, f->offers))
        return PATH_HOST_SYNC;
    return status == CT_ERR_UNSUPPORTED ? PATH_DISABLE : PATH_SKIP_CALL;
}

/* Logs why a call can't be fused.  The first message has level info, so that the user learns why
 * calls are slow. */
static void log_why(const struct call *c, struct fused_group *f, enum path_result result,
                    const char *why)
{
    if (result == PATH_HOST_SYNC) {
        log_line(LOG_DEBUG, "group %s: streams don't hand this call over: %s", c->group->name, why);
        return;
    }
    log_line(result == PATH_DISABLE || !f->said ? LOG_INFO : LOG_DEBUG,
             "group %s: no device works for all ranks%s: %s", c->group->name,
             result == PATH_DISABLE ? " from now on" : " in this call", why);
    f->said = 1;
}

static enum path_result map_all(const struct call *c, struct fused_group *f)
{
    enum path_result result = PATH_OK;
    char why[160];

    for (int i = 0; i < c->group->size && result == PATH_OK; i++)
        result = map_rank(c, f, i, why, sizeof why);
    if (result != PATH_OK)
        log_why(c, f, result, why);
    return result;
}

/* ---- A leader works for all ------------------------------------------------------------------ */

static ct_status enqueue_plan(const struct call *c, const struct fused_group *f,
                              const struct copy_plan *plan)
{
    static const int one = 1;
    struct fold fold = { CT_U8, CT_MAX, 1, 1, &one }; /* copies bytes */
    struct in_stream in;
    const void *scalars[SHM_GROUP_MOST];
    int scaled = 0;

    if (c->by_streams) /* only here, since another thread may set another stream */
        in = (struct in_stream){ c->group->on_device.stream, handover_called_off(c->group) };
    if (plan->folds) {
        fold = c->group->order.fold;
        fold.dtype = call_dtype(c);
        fold.op = call_op(c);
    }
    for (int i = 0; i < c->group->size; i++) {
        scaled |= f->offers[i]->scaled;
        scalars[i] = f->offers[i]->scaled ? f->offers[i]->scalar : NULL;
    }
    return c->place.space->fold(c->place.device, c->by_streams ? &in : NULL, &fold,
                                scaled ? scalars : NULL, plan->parts, plan->count);
}

/* Waits until the device no longer uses the buffers, and returns status.  A failed call returns its
 * buffers to the users, so no kernel may still use them.  Therefore every rank waits for the
 * leaders (shm_group_settle()), and here a leader waits for the work that it has enqueued. */
static ct_status drain_after_failure(struct call *c, ct_status status)
{
    const struct space *space = c->place.space;
    char why[240];

    snprintf(why, sizeof why, "%s", ct_last_error());
    if (space->finish(c->place.device,
                      (struct patience){ .deadline = deadline_after(SHM_GROUP_DEVICE_SETTLING_MS) })
        == CT_ERR_TIMEOUT)
        return ct_fail(status, "%s; the device is still at the buffers of this call", why);
    if (c->group->shm)
        shm_group_untouch(c->group->shm);
    return ct_fail(status, "%s", why);
}

/* Enqueues the call in the stream.  Even after a failure it enqueues the end of the call, since
 * another leader may be using this rank's buffers. */
static ct_status enqueue_in_stream(struct call *c, const struct fused_group *f,
                                   const struct copy_plan *plan)
{
    const struct leaders *l = device_leaders(c->group);
    ct_status status = handover_open(c, l);

    if (status == CT_OK && l->mine >= 0)
        status = enqueue_plan(c, f, plan);
    if (status == CT_ERR_UNSUPPORTED) /* it is too late for another path */
        status = CT_ERR_CUDA;
    return handover_close(c, l, status);
}

static ct_status fold_and_copy(struct call *c, const struct fused_group *f,
                               const struct copy_plan *plan)
{
    struct shm_group *shm = c->group->shm;
    ct_status status = shm ? shm_group_touch_by_device(shm) : CT_OK;

    if (status != CT_OK)
        return status;
    status = enqueue_plan(c, f, plan);
    if (status == CT_OK)
        status = device_wait(c->group, c->place, NULL, c->deadline, &c->group->failure.status);
    if (status != CT_OK)
        return drain_after_failure(c, status);
    if (shm)
        shm_group_untouch(shm);
    return CT_OK;
}

/* Plans this leader's share of the call. */
static ct_status make_share(const struct call *c, const struct fused_group *f,
                            struct copy_plan *plan)
{
    const struct leaders *l = device_leaders(c->group);
    const ct_status status = plan_make(c, &f->all, plan);

    if (status == CT_OK && l->count > 1)
        plan_cut(l, plan, c->element);
    return status;
}

/* Turns a status into a path result.  All leaders get the same result, since their shares differ
 * only in bytes. */
static ct_status result_of(const struct call *c, struct fused_group *f, ct_status status,
                           enum path_result *result)
{
    *result = PATH_OK;
    if (status != CT_ERR_UNSUPPORTED)
        return status;
    *result =
        /* no kernels for this device or for so many ranks, so nothing was enqueued */
        PATH_SKIP_CALL;
    log_why(c, f, *result, ct_last_error());
    return CT_OK;
}

static ct_status work_for_all(struct call *c, struct fused_group *f, enum path_result *result)
{
    struct copy_plan plan;
    ct_status status = make_share(c, f, &plan);

    if (status == CT_OK)
        status = fold_and_copy(c, f, &plan);
    plan_free(&plan);
    return result_of(c, f, status, result);
}

/* Plans this leader's share, and enqueues an empty plan.  If the kernels do not exist, this fails
 * before any stream waits. */
static ct_status prepare_share(const struct call *c, struct fused_group *f, struct copy_plan *plan,
                               enum path_result *result)
{
    ct_status status = make_share(c, f, plan);
    const struct copy_plan none = { .folds = plan->folds };

    if (status == CT_OK)
        status = enqueue_plan(c, f, &none);
    return result_of(c, f, status, result);
}

/* ---- A call ---------------------------------------------------------------------------------- */

/* Maps all ranks' buffers.  A leader that can't map them publishes this in the last round, in which
 * the other ranks wait for the leader. */
static ct_status prepare_leader(struct call *c, struct fused_group *f, enum path_result *result)
{
    ct_status status = all_blocks_make(c, &f->all);

    if (status == CT_OK)
        status = shm_group_wait_all(c->group->shm);
    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++)
        f->offers[i] = shm_group_slot(c->group->shm, i);
    *result = map_all(c, f);
    if (device_leaders(c->group)->count > 1)
        status = share_result(c, result);
    return status == CT_OK && *result != PATH_OK ? share_result(c, result) : status;
}

static ct_status prepare_among_ranks(struct call *c, struct fused_group *f,
                                     enum path_result *result)
{
    const struct leaders *l = device_leaders(c->group);
    ct_status status = publish_offer(c, f);

    if (status != CT_OK)
        return status;
    if (l->mine >= 0)
        return prepare_leader(c, f, result);
    *result = PATH_OK;
    return l->count > 1 ? publish_result(c, PATH_SKIP_CALL) : CT_OK;
}

static ct_status prepare_alone(struct call *c, struct fused_group *f, enum path_result *result)
{
    ct_status status = all_blocks_make(c, &f->all);
    size_t bytes;

    if (status == CT_OK)
        status = offer_call(c, f, &bytes);
    if (status != CT_OK)
        return status;
    f->offers[0] = f->offer;
    *result = map_all(c, f);
    return CT_OK;
}

static int is_checked(const ct_group *group, const struct fused_group *f)
{
    return device_leaders(group)->count == 1 || f->peer_access == PEERS_REACHED;
}

static ct_status run_among_ranks(struct call *c, struct fused_group *f, enum path_result *result)
{
    ct_status status = CT_OK;

    *result = PATH_SKIP_CALL;
    if (device_leaders(c->group)->mine >= 0)
        status = work_for_all(c, f, result);
    return status == CT_OK ? share_result(c, result) : status;
}

/* Lets all ranks agree before any rank enqueues a part of the call in its stream. */
static ct_status run_in_streams(struct call *c, struct fused_group *f, enum path_result *result)
{
    struct copy_plan plan = { .count = 0 };
    ct_status status = CT_OK;

    *result = PATH_SKIP_CALL;
    if (device_leaders(c->group)->mine >= 0)
        status = prepare_share(c, f, &plan, result);
    if (status == CT_OK && c->group->size > 1)
        status = share_result(c, result);
    if (status == CT_OK && *result == PATH_OK)
        status = enqueue_in_stream(c, f, &plan);
    plan_free(&plan);
    return status;
}

static ct_status fused_carry_out(struct call *c, struct fused_group *f, enum path_result *result)
{
    const ct_status status = c->by_streams         ? run_in_streams(c, f, result)
                             : c->group->size == 1 ? work_for_all(c, f, result)
                                                   : run_among_ranks(c, f, result);

    return status == CT_OK && *result == PATH_OK ? bounce_out(c, &f->given) : status;
}

/* Ends a step of a call and frees the memory that the next step does not need. */
static ct_status end_step(struct call *c, struct fused_group *f, ct_status status, int is_last)
{
    if (status != CT_OK && c->by_streams)
        handover_fail(c);
    if (is_last || status != CT_OK)
        all_blocks_free(&f->all);
    return status;
}

static ct_status fused_prepare(struct call *c, enum path_result *result)
{
    struct fused_group *f;
    ct_status status;

    *result = PATH_SKIP_CALL;
    if (!fused_can(c) || (c->capture != NOT_CAPTURED && !c->by_streams))
        return CT_OK;
    if (!(f = fused_make_group(c->group)))
        return CT_ERR_NOMEM;
    if (!is_checked(c->group, f))
        return CT_OK;
    status = c->by_streams ? handover_turn(c) : CT_OK;
    status = status != CT_OK         ? status
             : !room_for_offer(c, f) ? CT_ERR_NOMEM
             : c->group->size == 1   ? prepare_alone(c, f, result)
                                     : prepare_among_ranks(c, f, result);
    return end_step(c, f, status, *result != PATH_OK);
}

static ct_status fused_run(struct call *c, enum path_result *result)
{
    struct fused_group *f = fused_of(c->group);

    return end_step(c, f, fused_carry_out(c, f, result), 1);
}

const struct device_path fused_path = {
    .name = "fused",
    .can = fused_can,
    .is_to_come = fused_is_to_come,
    .missing_for_capture = fused_missing,
    .hands_over = fused_hands_over,
    .needs_memory = bounce_must_grow,
    .begin_group = fused_begin_group,
    .prepare = fused_prepare,
    .run = fused_run,
    .fail_group = fused_fail_group,
    .end_group = fused_end_group,
};
