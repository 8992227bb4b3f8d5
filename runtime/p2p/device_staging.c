/* SPDX-License-Identifier: Apache-2.0 */
/* device_staging.c - moves a message from or to device memory in one of two ways.
 *
 * Through the host: the sender's device copies to pinned memory, the bytes are sent, and the
 * receiver's device copies from the receiver's pinned memory.  By a device rendezvous: the
 * receiver's device copies out of the sender's memory, once the peer-access check has passed.  This
 * copy takes a while. device_rendezvous.c calls the ops in this file until the copy is done,
 * without waiting for the device. */
#include "runtime/p2p/device_staging.h"

#include <stdlib.h>

#include "runtime/device/peer_access_check.h"
#include "runtime/group/group_device.h"
#include "runtime/util/error.h"

struct device_staging {
    struct device_copy copy; /* first field: the part that messaging uses */
    ct_group *group;
    struct place place;
    void *device; /* the caller's buffer */
    /* the mark of earlier work in the stream, which may use the buffer; NULL if there is no such
     * work */
    void *mark;
    size_t bytes;
    void *host;   /* NULL while the bytes are in device memory */
    void *copied; /* the mark behind the pending copy; NULL if no copy was started */
    int has_device_rts, has_arrived;
    struct device_rts rts;
    struct access_check *trial; /* the running peer-access check; NULL if no check runs */
    /* the block that contains `host`; NULL if `host` is from malloc() */
    struct pinned_block *pinned;
};

static inline struct device_staging *device_staging_of(struct device_copy *copy)
{
    return (struct device_staging *)copy;
}

static void staging_forget_mark(struct device_staging *s)
{
    if (s->mark)
        s->place.space->forget(s->place.device, s->mark);
    s->mark = NULL;
}

static ct_status staging_wait_for_mark(struct device_staging *s, int64_t deadline)
{
    ct_status status;

    if (!s->mark)
        return CT_OK;
    status = device_wait(s->group, s->place, s->mark, deadline, &s->group->failure.interrupted);
    if (status == CT_OK)
        staging_forget_mark(s);
    return status;
}

static ct_status staging_no_memory(size_t bytes)
{
    return ct_fail(CT_ERR_NOMEM, "no host memory for %zu bytes of device memory", bytes);
}

static ct_status staging_find_host_memory(struct device_staging *s)
{
    s->pinned = pinned_take(&s->group->on_device.pinned, s->place, s->bytes);
    s->host = s->pinned ? s->pinned->data : malloc(s->bytes);
    return s->host ? CT_OK : staging_no_memory(s->bytes);
}

static void staging_free(struct device_staging *s)
{
    staging_forget_mark(s);
    if (s->copied)
        s->place.space->forget(s->place.device, s->copied);
    access_check_free(s->trial);
    if (s->pinned)
        pinned_give(&s->group->on_device.pinned, s->pinned);
    else
        free(s->host);
    free(s);
}

/* ---- A pending copy ------------------------------------------------------------- */

static ct_status staging_begin_copy(struct device_staging *s, enum copy_way way, void *to,
                                    const void *from)
{
    const struct space *space = s->place.space;
    ct_status status = space->begin_copy(s->place.device, way, to, from, s->bytes);

    if (status == CT_OK)
        status = space->mark_copies(s->place.device, way, &s->copied);
    if (status != CT_OK)
        space->end_copies(s->place.device);
    return status;
}

/* Checks, without waiting, whether the device has passed the mark. */
static enum device_copy_step step_to(const struct device_staging *s, void *mark, ct_status *status)
{
    *status = s->place.space->wait_for(s->place.device, mark, (struct patience){ 0 });
    return *status == CT_OK            ? DEVICE_COPY_DONE
           : *status == CT_ERR_TIMEOUT ? DEVICE_COPY_GOES_ON
                                       : DEVICE_COPY_FAILED;
}

/* Checks the copy, without waiting.  If the device reports an error, waits for all its copies. */
static enum device_copy_step step_of_copy(const struct device_staging *s, ct_status *status)
{
    const enum device_copy_step step = step_to(s, s->copied, status);

    if (step == DEVICE_COPY_FAILED)
        s->place.space->end_copies(s->place.device);
    return step;
}

static ct_status map_peer_memory(struct device_staging *s, const struct device_handle *handle,
                                 void **from)
{
    atomic_store(&s->group->on_device.maps_from, s->place.space);
    return s->place.space->take(s->place.device, handle, &s->group->on_device.pinned, from);
}

/* Runs a step of the peer-access check.  Returns DEVICE_COPY_DONE if this rank's device can read
 * the sender's memory.  The check copies the sender's test pattern to the buffer of the receive,
 * where the message later overwrites it. */
static enum device_copy_step check_peer_access(struct device_staging *s, ct_status *status)
{
    unsigned char own[sizeof s->rts.device];
    void *from;

    s->place.space->id(s->place.device, own);
    /* A running check writes to the buffer, so it must end first, even if another check of these
     * devices has passed. */
    if (!s->trial && peer_access_checked(s->group, own, s->rts.device))
        return DEVICE_COPY_DONE;
    if (!s->rts.has_test_pattern)
        return DEVICE_COPY_NEEDS_TEST_PATTERN;
    if (!s->trial) {
        *status = map_peer_memory(s, &s->rts.test_pattern, &from);
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
        peer_access_add(s->group, own, s->rts.device);
    return *status == CT_OK                ? DEVICE_COPY_DONE
           : *status == CT_ERR_UNSUPPORTED ? DEVICE_COPY_NEVER_CAN
                                           : DEVICE_COPY_CANT;
}

/* Runs the steps up to the start of the copy.  If a step fails, the bytes can still be sent through
 * the host. */
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
    *status = map_peer_memory(s, &s->rts.handle, &from);
    if (*status == CT_OK)
        *status = staging_begin_copy(s, COPY_BETWEEN_DEVICES, s->device, from);
    return *status == CT_OK                ? DEVICE_COPY_GOES_ON
           : *status == CT_ERR_UNSUPPORTED ? DEVICE_COPY_NEVER_CAN
                                           : DEVICE_COPY_CANT;
}

static enum device_copy_step begin_to_host(struct device_staging *s, ct_status *status)
{
    *status = staging_find_host_memory(s);
    if (*status == CT_OK)
        *status = staging_begin_copy(s, COPY_TO_HOST, s->host, s->device);
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
    if (!s->has_arrived) /* if 1, only the answer to a cancel is missing */
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

static const struct device_copy_ops staging_copy_ops = {
    .set_source = staging_set_source,
    .drop_source = staging_drop_source,
    .get = staging_get,
    .to_host = staging_to_host,
    .host = staging_host,
    .end = staging_end,
};

/* ---- Before and after the message ----------------------------------------------- */

static int add_test_pattern(struct device_staging *s)
{
    const struct space *space = s->place.space;
    void *pattern;

    s->rts.has_test_pattern =
        space->test_pattern(s->place.device, &pattern) == CT_OK
        && space->give(s->place.device, pattern, TEST_PATTERN_BYTES, &s->rts.test_pattern) == CT_OK;
    return s->rts.has_test_pattern;
}

/* Returns 1 if a DEVICE_RTS can be sent.  Returns 0 if the sender must copy to host memory. */
static int offer_device_memory(struct device_staging *s, int to)
{
    const struct space *space = s->place.space;
    enum device_rendezvous may;

    if (s->bytes <= DEVICE_RENDEZVOUS_ABOVE || s->group->on_device.no_rendezvous)
        return 0;
    may = device_rendezvous_with(s->group->mesh, to);
    if (may == NO_DEVICE_RENDEZVOUS
        || (may == DEVICE_RENDEZVOUS_WITH_TEST_PATTERN && !add_test_pattern(s)))
        return 0;
    space->id(s->place.device, s->rts.device);
    return space->give(s->place.device, s->device, s->bytes, &s->rts.handle) == CT_OK;
}

/* Copies the bytes to send to host memory, or describes their device memory in s->rts.  For a
 * receive, only allocates host memory. */
static ct_status stage_buffer(struct device_staging *s, int to, int64_t deadline)
{
    const struct space *space = s->place.space;
    ct_status status = space->mark(s->place.device, s->group->on_device.stream, &s->mark);

    if (status == CT_OK && to == RECEIVES)
        return staging_find_host_memory(s);
    if (status == CT_OK)
        status = staging_wait_for_mark(s, deadline);
    if (status != CT_OK || (s->has_device_rts = offer_device_memory(s, to)))
        return status;
    status = staging_find_host_memory(s);
    if (status == CT_OK)
        status = space->to_host(s->place.device, s->host, s->device, s->bytes);
    return status;
}

ct_status device_staging_begin(ct_group *group, struct place place, void **buf, size_t bytes,
                               int to, int64_t deadline, struct device_staging **staging)
{
    struct device_staging *s = malloc(sizeof *s);
    ct_status status;
    void *before;

    if (!s)
        return staging_no_memory(bytes);
    *s = (struct device_staging){ .copy = { &staging_copy_ops },
                                  .group = group,
                                  .place = place,
                                  .device = *buf,
                                  .bytes = bytes };
    status = place.space->enter(&before);
    if (status == CT_OK) {
        status = stage_buffer(s, to, deadline);
        place.space->leave(before);
    }
    if (status != CT_OK) {
        staging_free(s);
        return status;
    }
    if (!s->has_device_rts)
        *buf = s->host;
    *staging = s;
    return CT_OK;
}

void device_staging_attach(struct device_staging *s, struct request *request)
{
    request->copy = s ? &s->copy : NULL;
    if (s && s->has_device_rts)
        request_send_device_rts(request, &s->rts);
}

int device_staging_is_clear(struct request *receive, int64_t deadline)
{
    struct device_staging *const s = device_staging_of(receive->copy);
    ct_status status;
    void *before;

    if (!s->mark || s->place.space->enter(&before) != CT_OK)
        return 1; /* device_staging_land() reports the failure */
    status = staging_wait_for_mark(s, deadline);
    s->place.space->leave(before);
    return status != CT_ERR_TIMEOUT;
}

ct_status device_staging_land(struct request *receive, int64_t deadline)
{
    struct device_staging *const s = device_staging_of(receive->copy);
    const struct space *space = s->place.space;
    void *before;
    ct_status status = s->has_arrived ? CT_OK : space->enter(&before);

    if (status != CT_OK || s->has_arrived)
        return status;
    status = staging_wait_for_mark(s, deadline);
    if (status == CT_OK)
        status = space->from_host(s->place.device, s->device, s->host, s->bytes);
    space->leave(before);
    return status;
}

void device_staging_end(struct request *request)
{
    if (request->copy)
        staging_free(device_staging_of(request->copy));
    request->copy = NULL;
}

void device_staging_close(ct_group *group)
{
    const struct space *space = atomic_load(&group->on_device.maps_from);
    void *before;

    if (!space || space->enter(&before) != CT_OK)
        return;
    space->put(&group->on_device.pinned);
    space->leave(before);
}
