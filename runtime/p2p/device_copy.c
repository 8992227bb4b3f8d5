/* SPDX-License-Identifier: Apache-2.0 */
/* device_copy.c - the steps of a pending copy (device_rendezvous.h): out of the sender's memory,
 * once the peer-access check has passed, or from this rank's device memory to the host. */
#include "runtime/device/peer_access_check.h"
#include "runtime/group/device_peer_access.h"
#include "runtime/p2p/device_staging_internal.h"
#include "runtime/util/error.h"

static ct_status begin_copy(struct device_staging *s, enum copy_way way, void *to, const void *from)
{
    const struct space *space = s->place.space;
    ct_status status = space->begin_copy(s->place.device, way, to, from, s->bytes);

    if (status == CT_OK)
        status = space->mark_copies(s->place.device, way, &s->copied);
    if (status != CT_OK)
        space->end_copies(s->place.device);
    return status;
}

/* Looks once whether the mark has come. */
static enum device_copy_step step_to(const struct device_staging *s, void *mark, ct_status *status)
{
    *status = s->place.space->wait_for(s->place.device, mark, 0, NULL);
    return *status == CT_OK            ? DEVICE_COPY_DONE
           : *status == CT_ERR_TIMEOUT ? DEVICE_COPY_GOES_ON
                                       : DEVICE_COPY_FAILED;
}

/* If the device can't say whether the copy is done, all its copies are waited for. */
static enum device_copy_step step_of_copy(const struct device_staging *s, ct_status *status)
{
    const enum device_copy_step step = step_to(s, s->copied, status);

    if (step == DEVICE_COPY_FAILED)
        s->place.space->end_copies(s->place.device);
    return step;
}

static ct_status map(struct device_staging *s, const struct device_handle *handle, void **from)
{
    atomic_store(&s->group->maps_from, s->place.space);
    return s->place.space->take(s->place.device, handle, &s->group->pinned, from);
}

/* DEVICE_COPY_DONE: this rank's device reads what lies in the sender's memory.  The sample is
 * copied into the buffer of the receive, which the message overwrites. */
static enum device_copy_step check_peer_access(struct device_staging *s, ct_status *status)
{
    unsigned char own[sizeof s->rts.device];
    void *from;

    s->place.space->id(s->place.device, own);
    /* A check that goes on writes to the buffer, so it ends first even if another one has passed.
     */
    if (!s->trial && reads_as_proved(s->group, own, s->rts.device))
        return DEVICE_COPY_DONE;
    if (!s->rts.has_sample)
        return DEVICE_COPY_NEEDS_SAMPLE;
    if (!s->trial) {
        *status = map(s, &s->rts.sample, &from);
        if (*status != CT_OK)
            return *status == CT_ERR_UNSUPPORTED ? DEVICE_COPY_NEVER_CAN : DEVICE_COPY_CANT;
        s->trial = access_check_create(s->place, s->device, from, s->rts.device);
        if (!s->trial)
            return DEVICE_COPY_CANT;
    }
    *status = access_check_step(s->trial);
    if (*status == CT_ERR_TIMEOUT)
        return DEVICE_COPY_GOES_ON;
    access_check_free(s->trial);
    s->trial = NULL;
    if (*status == CT_OK)
        reach_proved_to_read(s->group, own, s->rts.device);
    return *status == CT_OK                ? DEVICE_COPY_DONE
           : *status == CT_ERR_UNSUPPORTED ? DEVICE_COPY_NEVER_CAN
                                           : DEVICE_COPY_CANT;
}

/* If a step fails before the copy runs, the bytes can still come through the host. */
static enum device_copy_step begin_get(struct device_staging *s, ct_status *status)
{
    enum device_copy_step step = s->mark ? step_to(s, s->mark, status) : DEVICE_COPY_DONE;
    void *from;

    if (step != DEVICE_COPY_DONE)
        return step;
    staging_forget_mark(s);
    step = check_peer_access(s, status);
    if (step != DEVICE_COPY_DONE)
        return step;
    *status = map(s, &s->rts.handle, &from);
    if (*status == CT_OK)
        *status = begin_copy(s, COPY_BETWEEN_DEVICES, s->device, from);
    return *status == CT_OK                ? DEVICE_COPY_GOES_ON
           : *status == CT_ERR_UNSUPPORTED ? DEVICE_COPY_NEVER_CAN
                                           : DEVICE_COPY_CANT;
}

static enum device_copy_step begin_to_host(struct device_staging *s, ct_status *status)
{
    *status = staging_find_host_memory(s);
    if (*status == CT_OK)
        *status = begin_copy(s, COPY_TO_HOST, s->host, s->device);
    return *status == CT_OK ? DEVICE_COPY_GOES_ON : DEVICE_COPY_FAILED;
}

typedef enum device_copy_step begin_fn(struct device_staging *s, ct_status *status);

static enum device_copy_step run_copy(struct device_staging *s, begin_fn *begin, int given_up,
                                      ct_status *status)
{
    enum device_copy_step step = DEVICE_COPY_CANT;
    void *before;

    if (given_up && !s->copied && !s->trial)
        return step;
    *status = s->place.space->enter(&before);
    if (*status != CT_OK)
        return DEVICE_COPY_FAILED;
    if (s->copied)
        step = step_of_copy(s, status);
    else if (!given_up)
        step = begin(s, status);
    else if (check_peer_access(s, status)
             == DEVICE_COPY_GOES_ON) /* the check still writes to the buffer */
        step = DEVICE_COPY_GOES_ON;
    s->place.space->leave(before);
    return step;
}

/* ---- Its ops ----------------------------------------------------------------- */

static void staging_set_source(struct device_copy *copy, const struct device_rts *rts)
{
    device_staging_of(copy)->rts = *rts;
}

static void staging_drop_source(struct device_copy *copy)
{
    device_staging_of(copy)->has_arrived = 0;
}

static enum device_copy_step staging_get(struct device_copy *copy, int given_up, ct_status *status)
{
    struct device_staging *const s = device_staging_of(copy);
    enum device_copy_step step = DEVICE_COPY_DONE;

    *status = CT_OK;
    if (!s->has_arrived) /* else only a cancel is awaited */
        step = run_copy(s, begin_get, given_up, status);
    s->has_arrived = step == DEVICE_COPY_DONE;
    return step;
}

static enum device_copy_step staging_to_host(struct device_copy *copy, int given_up,
                                             ct_status *status)
{
    *status = CT_OK;
    return run_copy(device_staging_of(copy), begin_to_host, given_up, status);
}

static void *staging_host(struct device_copy *copy)
{
    return device_staging_of(copy)->host;
}

static void staging_end(struct device_copy *copy)
{
    staging_free(device_staging_of(copy));
}

const struct device_copy_ops staging_copy_ops = {
    .set_source = staging_set_source,
    .drop_source = staging_drop_source,
    .get = staging_get,
    .to_host = staging_to_host,
    .host = staging_host,
    .end = staging_end,
};

void device_staging_close(ct_group *group)
{
    const struct space *space = atomic_load(&group->maps_from);
    void *before;

    if (!space || space->enter(&before) != CT_OK)
        return;
    space->put(&group->pinned);
    space->leave(before);
}
