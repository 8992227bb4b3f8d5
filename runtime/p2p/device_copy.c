/* SPDX-License-Identifier: Apache-2.0 */
/* device_copy.c - the steps of what a device does for a message (device_rendezvous.c): it takes
 * what was lent, when a trial has shown that it can, or brings to the host what it has lent. */
#include "runtime/device/peer_access_check.h"
#include "runtime/group/device_peer_access.h"
#include "runtime/p2p/device_staging_internal.h"
#include "runtime/util/error.h"

void crossing_borrows(struct crossing *c, const struct loan *loan)
{
    c->loan = *loan;
}

void crossing_is_not_taken(struct crossing *c)
{
    c->is_taken = 0;
}

void *crossing_host(const struct crossing *c)
{
    return c->host;
}

static ct_status begin_copy(struct crossing *c, enum copy_way way, void *to, const void *from)
{
    const struct space *space = c->place.space;
    ct_status status = space->begin_copy(c->place.device, way, to, from, c->bytes);

    if (status == CT_OK)
        status = space->mark_copies(c->place.device, way, &c->copied);
    if (status != CT_OK)
        space->end_copies(c->place.device);
    return status;
}

/* Looks once whether the mark has come. */
static enum crossing_step step_to(const struct crossing *c, void *mark, ct_status *status)
{
    *status = c->place.space->wait_for(c->place.device, mark, 0, NULL);
    return *status == CT_OK            ? CROSSING_DONE
           : *status == CT_ERR_TIMEOUT ? CROSSING_GOES_ON
                                       : CROSSING_FAILED;
}

/* Where the device can't say whether the copy is done, all copies are waited for. */
static enum crossing_step step_of_copy(const struct crossing *c, ct_status *status)
{
    const enum crossing_step step = step_to(c, c->copied, status);

    if (step == CROSSING_FAILED)
        c->place.space->end_copies(c->place.device);
    return step;
}

static ct_status map(struct crossing *c, const struct device_handle *handle, void **from)
{
    atomic_store(&c->group->borrows_from, c->place.space);
    return c->place.space->take(c->place.device, handle, &c->group->pinned, from);
}

/* CROSSING_DONE: its device reads what lies in the other's memory.  The sample goes into the
 * buffer, where the message will be. */
static enum crossing_step try_sample(struct crossing *c, ct_status *status)
{
    unsigned char own[sizeof c->loan.device];
    void *from;

    c->place.space->id(c->place.device, own);
    /* What is under way is at the buffer, though it be proved meanwhile. */
    if (!c->trial && reads_as_proved(c->group, own, c->loan.device))
        return CROSSING_DONE;
    if (!c->loan.has_sample)
        return CROSSING_NEEDS_SAMPLE;
    if (!c->trial) {
        *status = map(c, &c->loan.sample, &from);
        if (*status != CT_OK)
            return *status == CT_ERR_UNSUPPORTED ? CROSSING_NEVER_CAN : CROSSING_CANT;
        c->trial = trial_make(c->place, c->device, from, c->loan.device);
        if (!c->trial)
            return CROSSING_CANT;
    }
    *status = trial_step(c->trial);
    if (*status == CT_ERR_TIMEOUT)
        return CROSSING_GOES_ON;
    trial_free(c->trial);
    c->trial = NULL;
    if (*status == CT_OK)
        reach_proved_to_read(c->group, own, c->loan.device);
    return *status == CT_OK                ? CROSSING_DONE
           : *status == CT_ERR_UNSUPPORTED ? CROSSING_NEVER_CAN
                                           : CROSSING_CANT;
}

/* Where anything fails before the copy runs, the bytes can still come through the host. */
static enum crossing_step begin_to_take(struct crossing *c, ct_status *status)
{
    enum crossing_step step = c->mark ? step_to(c, c->mark, status) : CROSSING_DONE;
    void *from;

    if (step != CROSSING_DONE)
        return step;
    crossing_forget_mark(c);
    step = try_sample(c, status);
    if (step != CROSSING_DONE)
        return step;
    *status = map(c, &c->loan.handle, &from);
    if (*status == CT_OK)
        *status = begin_copy(c, COPY_BETWEEN_DEVICES, c->device, from);
    return *status == CT_OK                ? CROSSING_GOES_ON
           : *status == CT_ERR_UNSUPPORTED ? CROSSING_NEVER_CAN
                                           : CROSSING_CANT;
}

static enum crossing_step begin_to_stage(struct crossing *c, ct_status *status)
{
    *status = crossing_find_host_memory(c);
    if (*status == CT_OK)
        *status = begin_copy(c, COPY_TO_HOST, c->host, c->device);
    return *status == CT_OK ? CROSSING_GOES_ON : CROSSING_FAILED;
}

typedef enum crossing_step begin_fn(struct crossing *c, ct_status *status);

static enum crossing_step run_errand(struct crossing *c, begin_fn *begin, int given_up,
                                     ct_status *status)
{
    enum crossing_step step = CROSSING_CANT;
    void *before;

    if (given_up && !c->copied && !c->trial)
        return step;
    *status = c->place.space->enter(&before);
    if (*status != CT_OK)
        return CROSSING_FAILED;
    if (c->copied)
        step = step_of_copy(c, status);
    else if (!given_up)
        step = begin(c, status);
    else if (try_sample(c, status) == CROSSING_GOES_ON) /* into its buffer */
        step = CROSSING_GOES_ON;
    c->place.space->leave(before);
    return step;
}

enum crossing_step crossing_take(struct crossing *c, int given_up, ct_status *status)
{
    enum crossing_step step = CROSSING_DONE;

    *status = CT_OK;
    if (!c->is_taken) /* else the sender is still to say whether it was sound */
        step = run_errand(c, begin_to_take, given_up, status);
    c->is_taken = step == CROSSING_DONE;
    return step;
}

enum crossing_step crossing_stage(struct crossing *c, int given_up, ct_status *status)
{
    *status = CT_OK;
    return run_errand(c, begin_to_stage, given_up, status);
}

void crossings_close(ct_group *group)
{
    const struct space *space = atomic_load(&group->borrows_from);
    void *before;

    if (!space || space->enter(&before) != CT_OK)
        return;
    space->put(&group->pinned);
    space->leave(before);
}
