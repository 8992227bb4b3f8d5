/* SPDX-License-Identifier: Apache-2.0 */
/* communicator.c - joins ranks, each with its own device, to a NCCL communicator, and waits for
 * calls in this communicator.
 *
 *   The ranks gather the version of each rank's NCCL library.  All versions must be the same.
 *   Rank 0 makes an id, and all ranks join.  If a rank can't, NCCL is disabled for the group.
 *   A rank that waits for NCCL also checks that the other ranks are alive (liveness.c). */
#include "collectives/device/nccl/communicator.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/device/group/liveness.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

struct communicator *communicator_of(ct_group *group)
{
    return device_path_own(group, PATH_NCCL, sizeof(struct communicator));
}

/* ---- Waiting ----------------------------------------------------------------------- */

/* A wait polls NCCL without pause for POLLS_US, then sleeps NAP_US between two polls.  Every
 * OTHERS_US it checks the other ranks. */
enum { POLLS_US = 5000, NAP_US = 50, OTHERS_US = 2000 };

static ct_status comm_is_over(const struct call *c)
{
    if (atomic_load(&c->group->failure.status) != CT_OK)
        return ct_fail(CT_ERR_ABORTED, "aborted while NCCL was working");
    return clock_ms() < c->deadline ? CT_OK
                                    : ct_fail(CT_ERR_TIMEOUT, "NCCL has not done it in time");
}

static ct_status wait_with(struct call *c, const struct communicator *comm, struct watch *watch)
{
    const struct timespec nap = { 0, NAP_US * 1000L };
    const int64_t begun = clock_us();
    int64_t looked = begun;
    int done = 0;
    ct_status status = comm->library->ask(comm->nccl, &done);

    while (status == CT_OK && !done) {
        const int64_t now = clock_us();

        if (now - looked >= OTHERS_US) {
            looked = now;
            status = watch_check(watch);
            if (status == CT_OK)
                status = comm_is_over(c);
        } else if (now - begun < POLLS_US) {
            sched_yield();
        } else {
            nanosleep(&nap, NULL);
        }
        if (status == CT_OK)
            status = comm->library->ask(comm->nccl, &done);
    }
    /* If a rank died, reports the death instead of NCCL's error. */
    return status == CT_ERR_NCCL ? watch_for_cause(watch, status) : status;
}

ct_status communicator_wait(struct call *c, const struct communicator *comm)
{
    struct watch watch = { .call = c };
    const ct_status status = wait_with(c, comm, &watch);

    watch_end(&watch);
    return status;
}

/* ---- Joining ------------------------------------------------------------------------- */

/* The struct that a rank publishes in a step, with the version of the rank's library.  Rank 0 also
 * publishes the id. */
struct step {
    int32_t version; /* 0 if the rank can't use NCCL */
    char why[124];   /* the reason if version is 0 */
    struct comm_id id;
};

/* Aborts the communicator and disables NCCL.  The communicator is freed later, with the group,
 * since the free may wait for streams that themselves wait. */
static void comm_give_up(ct_group *group, struct communicator *comm)
{
    if (comm->nccl)
        comm->library->give_up(comm->nccl);
    device_disable(group, PATH_NCCL);
}

enum { GIVES_UP_MS = 3000 }; /* an abort takes at most 2 s, unless the driver's lock delays it */

/* Aborts the communicator under a time limit, since an abort frees memory.  If the driver holds its
 * lock during the abort, this thread can't open the streams' gates, but the limit can. */
void communicator_fail(ct_group *group, struct communicator *comm)
{
    struct device_group *d = group->device;

    d->table.place.space->set_limit(&d->limit, deadline_after(GIVES_UP_MS));
    comm_give_up(group, comm);
}

/* Disables NCCL.  All ranks call this function, and rank 0 logs the reason. */
static void disable_nccl(const struct call *c, struct communicator *comm, const char *why)
{
    struct device_group *d = c->group->device;

    comm_give_up(c->group, comm);
    snprintf(d->path[PATH_NCCL].why, sizeof d->path[PATH_NCCL].why, "%s", why);
    if (c->group->rank == 0)
        log_line(d->table.override == PATH_NCCL ? LOG_WARN : LOG_INFO,
                 "group %s: NCCL can't be used: %s", c->group->name, why);
}

/* Returns a rank's reason why NCCL can't be used, or NULL if all ranks can use NCCL. */
static const char *objection(const struct step *steps, int size, char *why, size_t room)
{
    const struct step *against = NULL;

    for (int i = 0; i < size; i++)
        if (steps[i].version == 0 && (!against || (!*against->why && *steps[i].why)))
            against = &steps[i];
    if (against) {
        snprintf(why, room, "rank %d: %.124s", (int)(against - steps), against->why);
        return why;
    }
    for (int i = 1; i < size; i++)
        if (steps[i].version != steps[0].version) {
            snprintf(why, room, "rank %d has version %d, rank 0 version %d", i, steps[i].version,
                     steps[0].version);
            return why;
        }
    return NULL;
}

/* Gathers all ranks' results of a step.  `mine` is this rank's result.  Sets *go_on to 0 if a rank
 * could not do the step; then NCCL is disabled. */
static ct_status share_step(struct call *c, struct communicator *comm, ct_status mine,
                            struct step *step, struct step *steps, int *go_on)
{
    char why[200];
    ct_status status;

    if (mine != CT_OK) {
        step->version = 0;
        snprintf(step->why, sizeof step->why, "%s", ct_last_error());
    }
    status = device_gather(c, step, sizeof *step, steps);
    *go_on = status == CT_OK && !objection(steps, c->group->size, why, sizeof why);
    if (status == CT_OK && !*go_on)
        disable_nccl(c, comm, why);
    return status;
}

/* Joins the NCCL communicator.  A rank that can't join tells the other ranks, since they may wait
 * for this rank in NCCL. */
static ct_status join_nccl(struct call *c, struct communicator *comm, const struct comm_id *id)
{
    ct_status status =
        comm->library->join(comm->device, id, c->group->rank, c->group->size, &comm->nccl);

    if (status == CT_OK) {
        status = communicator_wait(c, comm);
        if (status == CT_ERR_UNSUPPORTED)
            ct_fail(status, "%s", ""); /* another rank gave up, and its step has the reason */
    }
    if (status == CT_ERR_NCCL || status == CT_ERR_CUDA || status == CT_ERR_NOMEM
        || status == CT_ERR_UNSUPPORTED) {
        char why[400];

        snprintf(why, sizeof why, "%s", ct_last_error());
        watch_send_give_up(c);
        return ct_fail(CT_ERR_UNSUPPORTED, "%s", why);
    }
    return status;
}

static ct_status join_in_steps(struct call *c, struct communicator *comm, struct step *steps)
{
    struct step mine;
    ct_status status, done;
    int go_on;

    memset(&mine, 0, sizeof mine); /* sets the padding bytes too, since the struct is sent */
    done = comm->library->find(&mine.version);
    status = share_step(c, comm, done, &mine, steps, &go_on);
    if (status != CT_OK || !go_on)
        return status;
    done = c->group->rank == 0 ? comm->library->make_id(&mine.id) : CT_OK;
    status = share_step(c, comm, done, &mine, steps, &go_on);
    if (status != CT_OK || !go_on)
        return status;
    done = join_nccl(c, comm, &steps[0].id);
    if (done != CT_OK && done != CT_ERR_UNSUPPORTED)
        return done; /* the caller breaks the group */
    status = share_step(c, comm, done, &mine, steps, &go_on);
    comm->joined = status == CT_OK && go_on;
    return status;
}

ct_status communicator_join(struct call *c, struct communicator *comm)
{
    const struct device_table *table = &c->group->device->table;
    struct step *steps;
    ct_status status;

    if (!table->with_nccl) {
        disable_nccl(c, comm, "a rank's libct was built without it");
        return CT_OK;
    }
    /* The device table's device; the buffers of this call may be on another device. */
    comm->library = table->place.space->comm_library;
    comm->device = table->place.device;
    steps = malloc((size_t)c->group->size * sizeof *steps);
    status = steps ? join_in_steps(c, comm, steps)
                   : ct_fail(CT_ERR_NOMEM, "no memory to gather from %d ranks", c->group->size);
    free(steps);
    if (status != CT_OK)
        communicator_fail(c->group, comm);
    return status;
}
