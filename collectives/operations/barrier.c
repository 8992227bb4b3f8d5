/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.c - ct_barrier() and its algorithms. */
#include "collectives/core/algorithms.h"
#include "collectives/hosts/rail.h"
#include "runtime/group/shm/rounds.h"
#include "runtime/group/shm/slots.h"

/* Runs one round of the shared-memory slots without data, for a group on one host. */
static ct_status barrier_shm_run(struct call *c)
{
    ct_status status = shm_group_next_slot(c->group->shm, 0);

    if (status == CT_OK)
        status = shm_group_publish(c->group->shm);
    return status == CT_OK ? shm_group_wait_all(c->group->shm) : status;
}

static const struct algorithm barrier_shm = { .name = "shm",
                                              .fits = fits_shm,
                                              .run = barrier_shm_run };

static ct_status barrier_dissemination_run(struct call *c)
{
    const struct rail ranks = rail_of_ranks(c);

    return rail_barrier(&ranks);
}

static const struct algorithm barrier_dissemination = { .name = "dissemination",
                                                        .run = barrier_dissemination_run };

const struct algorithm *const barrier_algorithms[] = { &barrier_shm, &barrier_mpi, &barrier_nodes,
                                                       &barrier_dissemination, NULL };

ct_status ct_barrier(ct_group *group, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_BARRIER,
        .algorithms = barrier_algorithms,
        .op = NONE,
        .root = NONE,
    };

    return call_run(&request, work);
}
