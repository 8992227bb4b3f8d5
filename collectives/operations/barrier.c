/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.c - ct_barrier() and its algorithms. */
#include "collectives/core/algorithms.h"
#include "collectives/hosts/rail.h"
#include "runtime/group/shm/rounds.h"
#include "runtime/group/shm/slots.h"

/* Runs one round of the shared-memory slots without data, for a group on one host.  Where ranks
 * share processors, rank 0 leaves first: a root is rank 0 in most programs, and its next call then
 * sends before the other ranks wait for it. */
static ct_status barrier_shm_run(struct call *c)
{
    struct shm_group *f = c->group->shm;
    const int has_gate = shm_group_shares_processors(f), is_gate = has_gate && c->group->rank == 0;
    ct_status status = shm_group_next_slot(f, 0);

    if (status == CT_OK)
        status = is_gate    ? shm_group_hold_gate(f, 0)
                 : has_gate ? shm_group_enter_gate(f, 0)
                            : shm_group_publish(f);
    if (status != CT_OK)
        return status;
    if (is_gate)
        shm_group_open_gate(f);
    return has_gate && !is_gate ? shm_group_pass_gate(f, 0) : shm_group_wait_all(f);
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
