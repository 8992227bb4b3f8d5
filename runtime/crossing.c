/* SPDX-License-Identifier: Apache-2.0 */
/* crossing.c - see crossing.h. */
#include "runtime/crossing.h"

#include <stdlib.h>

#include "runtime/device_wait.h"
#include "runtime/error.h"
#include "runtime/reach.h"
#include "runtime/sample.h"

struct crossing {
    ct_group *group;
    struct place place;
    void *device; /* the caller's buffer */
    void *mark;   /* what comes before that is read or written; NULL: nothing any more */
    size_t bytes;
    void *host;   /* NULL: none yet, it is lent */
    void *copied; /* when an errand's copy is done; NULL: none was begun */
    int is_lent, is_taken;
    struct loan loan;
    struct trial *trial;         /* whether that can be copied; NULL: none goes on */
    struct pinned_block *pinned; /* NULL: it is of malloc() */
};

static void forget_mark(struct crossing *c)
{
    if (c->mark)
        c->place.space->forget(c->place.device, c->mark);
    c->mark = NULL;
}

static ct_status wait_for_mark(struct crossing *c, int64_t deadline)
{
    ct_status status;

    if (!c->mark)
        return CT_OK;
    status = device_wait(c->group, c->place, c->mark, deadline, &c->group->halted);
    if (status == CT_OK)
        forget_mark(c);
    return status;
}

static ct_status no_memory(size_t bytes)
{
    return ct_fail(CT_ERR_NOMEM, "no host memory for %zu bytes of device memory", bytes);
}

static ct_status find_host_memory(struct crossing *c)
{
    c->pinned = pinned_take(&c->group->pinned, c->place, c->bytes);
    c->host = c->pinned ? c->pinned->data : malloc(c->bytes);
    return c->host ? CT_OK : no_memory(c->bytes);
}

static int add_sample(struct crossing *c)
{
    const struct space *space = c->place.space;
    void *sample;

    c->loan.has_sample =
        space->sample(c->place.device, &sample) == CT_OK
        && space->give(c->place.device, sample, SAMPLE_BYTES, &c->loan.sample) == CT_OK;
    return c->loan.has_sample;
}

/* Who gives memory that nobody can map copies it himself. */
static int lend(struct crossing *c, int to)
{
    const struct space *space = c->place.space;
    enum lending may;

    if (c->bytes <= LEND_ABOVE || c->group->lends_nothing)
        return 0;
    may = may_lend_to(c->group->mesh, to);
    if (may == LENDS_NOTHING || (may == LENDS_WITH_SAMPLE && !add_sample(c)))
        return 0;
    space->id(c->place.device, c->loan.device);
    return space->give(c->place.device, c->device, c->bytes, &c->loan.handle) == CT_OK;
}

/* What is sent is there, and lies in host memory when this returns, or is lent. */
static ct_status take_over(struct crossing *c, int to, int64_t deadline)
{
    const struct space *space = c->place.space;
    ct_status status = space->mark(c->place.device, c->group->stream, &c->mark);

    if (status == CT_OK && to == RECEIVES)
        return find_host_memory(c);
    if (status == CT_OK)
        status = wait_for_mark(c, deadline);
    if (status != CT_OK || (c->is_lent = lend(c, to)))
        return status;
    status = find_host_memory(c);
    if (status == CT_OK)
        status = space->to_host(c->place.device, c->host, c->device, c->bytes);
    return status;
}

ct_status crossing_begin(ct_group *group, struct place place, void **buf, size_t bytes, int to,
                         int64_t deadline, struct crossing **crossing)
{
    struct crossing *c = malloc(sizeof *c);
    ct_status status;
    void *before;

    if (!c)
        return no_memory(bytes);
    *c = (struct crossing){ .group = group, .place = place, .device = *buf, .bytes = bytes };
    status = place.space->enter(&before);
    if (status == CT_OK) {
        status = take_over(c, to, deadline);
        place.space->leave(before);
    }
    if (status != CT_OK) {
        crossing_end(c);
        return status;
    }
    if (!c->is_lent)
        *buf = c->host;
    *crossing = c;
    return CT_OK;
}

void crossing_attach(struct crossing *c, struct request *request)
{
    request->crossing = c;
    if (c && c->is_lent)
        request_lends(request, &c->loan);
}

int crossing_is_clear(struct crossing *c, int64_t deadline)
{
    ct_status status;
    void *before;

    if (!c->mark || c->place.space->enter(&before) != CT_OK)
        return 1; /* who lands says why it can't */
    status = wait_for_mark(c, deadline);
    c->place.space->leave(before);
    return status != CT_ERR_TIMEOUT;
}

ct_status crossing_land(struct crossing *c, int64_t deadline)
{
    const struct space *space = c->place.space;
    void *before;
    ct_status status = c->is_taken ? CT_OK : space->enter(&before);

    if (status != CT_OK || c->is_taken)
        return status;
    status = wait_for_mark(c, deadline);
    if (status == CT_OK)
        status = space->from_host(c->place.device, c->device, c->host, c->bytes);
    space->leave(before);
    return status;
}

void crossing_end(struct crossing *c)
{
    if (!c)
        return;
    forget_mark(c);
    if (c->copied)
        c->place.space->forget(c->place.device, c->copied);
    trial_free(c->trial);
    if (c->pinned)
        pinned_give(&c->group->pinned, c->pinned);
    else
        free(c->host);
    free(c);
}

/* ---- Errands ------------------------------------------------------------------ */

void crossing_borrows(struct crossing *c, const struct loan *loan)
{
    c->loan = *loan;
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
    if (reads_as_proved(c->group, own, c->loan.device))
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
    forget_mark(c);
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
    *status = find_host_memory(c);
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
