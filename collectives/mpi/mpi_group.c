/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_group.c - the MPI communicator of a group, and the wait for operations on the communicator.
 *
 * A wait calls MPI's progress and libct's own progress (group_poll()) in turns.  group_poll()
 * detects deaths, failures of other ranks and ct_abort().  So a wait ends like any wait of libct:
 * at the deadline, or when the group has failed.  A rank that has waited for 2 ms sends its
 * neighbour the signature of its call, so that two ranks in different calls detect the mismatch. */
#include "collectives/mpi/mpi_group.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/core/message_carrier.h"
#include "runtime/messaging/call_probe.h"
#include "runtime/util/clock.h"

#define TESTS 50         /* MPI_Test() calls between two calls of look_around() */
#define PROBE_AFTER_MS 2 /* as in request_wait.c */
#define SLEEP_AFTER_MS 10
#define SLEEP_NS 50000

/* ---- Waiting --------------------------------------------------------------------- */

struct mpi_wait {
    ct_group *group;
    uint64_t *request;
    enum mpi_kind kind;
    int64_t begun, deadline;
    const struct signature *probe; /* signature of this call; NULL if none, or if already sent */
    int peer;                      /* group rank that gets the probe */
};

static ct_status mpi_group_give_up(const struct mpi_wait *w, ct_status status)
{
    w->group->mpi->is_idle = 0;
    w->group->mpi->plugin->give_up(w->request, w->kind);
    return status;
}

/* Polls libct between tests of the MPI request.  Returns CT_OK if the wait may continue,
 * CT_ERR_ABORTED if the group has failed, and CT_ERR_TIMEOUT at the deadline. */
static ct_status look_around(struct mpi_wait *w)
{
    const struct timespec moment = { .tv_nsec = SLEEP_NS };
    const int64_t now = clock_ms();

    group_poll(w->group);
    if (atomic_load(&w->group->failure.status))
        return ct_fail(CT_ERR_ABORTED, "the group has failed");
    if (now >= w->deadline)
        return ct_fail(CT_ERR_TIMEOUT, "not all ranks came, or MPI got no further");
    if (w->probe && now - w->begun >= PROBE_AFTER_MS) {
        call_probe(w->group->mesh, &w->group->channel, w->group->ranks[w->peer], w->probe);
        w->probe = NULL;
    }
    if (now - w->begun >= SLEEP_AFTER_MS)
        nanosleep(&moment, NULL);
    else
        sched_yield(); /* ranks may share processors */
    return CT_OK;
}

static ct_status mpi_group_wait_for(struct mpi_wait *w)
{
    const struct mpi_plugin *plugin = w->group->mpi->plugin;
    int done = 0;

    for (;;) {
        ct_status status;

        for (int i = 0; i < TESTS; i++) {
            const int error = plugin->test(w->request, &done);

            if (error)
                return mpi_group_give_up(w, mpi_says(plugin, error, "an operation failed"));
            if (done)
                return CT_OK;
        }
        if (!w->begun)
            w->begun = clock_ms();
        status = look_around(w);
        if (status != CT_OK)
            return mpi_group_give_up(w, status);
    }
}

/* Returns CT_ERR_UNSUPPORTED if MPI's thread level forbids calls on this thread.  Asynchronous
 * calls run on threads of libct. */
static ct_status mpi_group_check_thread(const ct_group *group)
{
    const struct mpi_plugin *plugin;
    const struct mpi_world *world;
    const ct_status status = mpi_load(&plugin, &world);

    if (status != CT_OK || world->any_thread || plugin->is_main_thread())
        return status;
    return ct_fail(
        CT_ERR_UNSUPPORTED,
        "group %s: with backend \"mpi\", asynchronous calls and calls from another thread need "
        "MPI_THREAD_MULTIPLE, but the program asked MPI_Init_thread() for less",
        group->name);
}

ct_status mpi_group_run(struct call *c, const struct mpi_call *operation)
{
    struct mpi_group *m = c->group->mpi;
    uint64_t request = 0;
    struct mpi_wait w = { .group = c->group,
                          .request = &request,
                          .kind = operation->kind,
                          .deadline = c->deadline,
                          .probe = c->group->size > 1 ? call_compared(c) : NULL,
                          .peer = (c->group->rank + 1) % c->group->size };
    ct_status status = mpi_group_check_thread(c->group);

    if (status == CT_OK)
        status = mpi_says(m->plugin, m->plugin->begin(m->comm, operation, &request),
                          "an operation could not begin");
    return status == CT_OK ? mpi_group_wait_for(&w) : status;
}

/* ---- The messages of libct's algorithms --------------------------------------------- */

/* Starts messages.  A failure is kept in the request until the wait. */
static void mpi_group_post(ct_group *group, struct request *requests, int count)
{
    struct mpi_group *m = group->mpi;
    const ct_status status = mpi_group_check_thread(group);

    for (int i = 0; i < count; i++) {
        struct request *r = &requests[i];
        const struct mpi_call message = { .kind =
                                              r->is_send ? BY_MPI_MESSAGE_OUT : BY_MPI_MESSAGE_IN,
                                          .send = r->data,
                                          .recv = r->data,
                                          .count = r->bytes,
                                          .other = ct_group_rank(group, r->peer),
                                          .tag = (int)(r->signature.seq & 32767) };

        r->id = 0;
        r->status = status;
        if (status == CT_OK)
            r->status = mpi_says(m->plugin, m->plugin->begin(m->comm, &message, &r->id),
                                 "a message could not begin");
        atomic_store(&r->done, r->status != CT_OK);
    }
}

static ct_status message_wait(ct_group *group, struct request *r, int64_t deadline)
{
    struct mpi_wait w = { .group = group,
                          .request = &r->id,
                          .kind = r->is_send ? BY_MPI_MESSAGE_OUT : BY_MPI_MESSAGE_IN,
                          .deadline = deadline,
                          .probe = r->peer != group->mesh->rank ? &r->signature : NULL,
                          .peer = ct_group_rank(group, r->peer) };

    if (!atomic_load(&r->done)) {
        r->status = mpi_group_wait_for(&w);
        atomic_store(&r->done, 1);
    }
    return r->status;
}

static void mpi_group_cancel(ct_group *group, struct request *r)
{
    if (atomic_load(&r->done))
        return;
    group->mpi->is_idle = 0;
    group->mpi->plugin->give_up(&r->id, r->is_send ? BY_MPI_MESSAGE_OUT : BY_MPI_MESSAGE_IN);
}

static const struct message_carrier carrier = { .start = mpi_group_post,
                                                .wait = message_wait,
                                                .cancel = mpi_group_cancel };

/* ---- Groups ----------------------------------------------------------------------------- */

ct_status mpi_group_start(int *rank, int *size)
{
    const struct mpi_plugin *plugin;
    const struct mpi_world *world;
    const ct_status status = mpi_load(&plugin, &world);

    *rank = world->rank;
    *size = world->size;
    return status;
}

/* True if the group belongs to the world that MPI started.  The survivors of a broken world have
 * new rank numbers, and MPI does not continue after a rank died.  So the groups of survivors use
 * libct's links. */
static int is_of_mpi_world(const ct_group *group, const struct mpi_world *world)
{
    return group->root->size == world->size && group->mesh->rank == world->rank;
}

ct_status mpi_group_open(ct_group *group)
{
    struct mpi_group *m;
    const struct mpi_plugin *plugin;
    const struct mpi_world *world;
    ct_status status = mpi_load(&plugin, &world);

    if (status != CT_OK || !is_of_mpi_world(group, world))
        return status;
    m = calloc(1, sizeof *m);
    if (!m)
        return ct_fail(CT_ERR_NOMEM, "no memory for a communicator");
    m->plugin = plugin;
    m->is_idle = 1;
    status = mpi_says(
        plugin,
        plugin->comm_create(group->ranks, group->size, (int)(group->identity.id % 32749), &m->comm),
        "MPI_Comm_create_group()");
    if (status != CT_OK) {
        free(m);
        return status;
    }
    group->mpi = m;
    group->carrier = &carrier;
    group->backend = "mpi";
    return CT_OK;
}

void mpi_group_release(ct_group *group)
{
    if (!group->mpi)
        return;
    group->mpi->plugin->comm_free(group->mpi->comm, group->mpi->is_idle);
    free(group->mpi);
    group->mpi = NULL;
}
