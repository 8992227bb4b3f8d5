/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.c - ct_barrier and its algorithms. */
#include "collectives/core/sendrecv.h"
#include "collectives/core/shm_exchange.h"

extern const struct algorithm barrier_nodes; /* barrier_hier.c */

/* On one host: a round of the shared-memory exchange that carries no data. */
static ct_status barrier_shm_run(struct call *c)
{
    ct_status status = shm_group_next_slot(c->group->shm, 0);

    if (status == CT_OK)
        status = shm_group_publish(c->group->shm);
    return status == CT_OK ? shm_group_wait_all(c->group->shm) : status;
}

static const struct algorithm barrier_shm = { "shm", fits_shm, barrier_shm_run, 0, NULL };

/* Dissemination: in step k each rank sends to the rank 2^k to its right and receives from the rank
 * 2^k to its left.
 *
 * After step k a rank knows of 2^(k+1) ranks that they are in the call.
 * Cost: ceil(log2 p) alpha.  [Hensgen, Finkel & Manber 1988] */
static ct_status barrier_dissemination_run(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;
    const struct span nothing = { NULL, 0 };
    ct_status status = CT_OK;

    for (int distance = 1; distance < p && status == CT_OK; distance *= 2)
        status = exchange(c, (rank + distance) % p, nothing, (rank - distance + p) % p, nothing);
    return status;
}

static const struct algorithm barrier_dissemination = { "dissemination", NULL,
                                                        barrier_dissemination_run, 0, NULL };

const struct algorithm *const barrier_algorithms[] = { &barrier_shm, &barrier_nodes,
                                                       &barrier_dissemination, NULL };

ct_status ct_barrier(ct_group *group, ct_work **work)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_BARRIER,
        .op = NONE,
        .root = NONE,
    };

    return call_run(&request, work);
}
