/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_shm_one_shot.c - all-reduce on one host in one round.  Each rank writes its input into
 * its slot, and each rank folds all inputs.
 *
 * A rank waits once.  The call needs no barrier at its end, since successive
 * rounds use other slots.  In a small call the payload lies in the cache line of the flag that the
 * other ranks wait for. Cost: one round, in which each rank copies n bytes to its slot and reads p
 * n bytes.  This algorithm is for small n. [DeepSpeed shm.cpp symmetric_naive_all_reduce; MPICH
 * release-gather] */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

static int all_reduce_shm_one_shot_fits(const struct call *c)
{
    return fits_shm(c) && call_bytes(c) <= shm_group_slot_bytes(c->group->shm);
}

static ct_status all_reduce_shm_one_shot_run(struct call *c)
{
    struct shm_group *f = c->group->shm;
    const struct span in = block_at(c, &c->send, 0), out = block_at(c, &c->recv, 0);
    const void *sources[1024];
    ct_status status = shm_group_next_slot(f, in.bytes);

    if (status == CT_OK) {
        shm_group_write(f, 0, in.data, in.bytes);
        status = shm_group_publish(f);
    }
    if (status == CT_OK)
        status = shm_group_wait_all(f);
    if (status != CT_OK || in.bytes == 0)
        return status;
    for (int i = 0; i < c->group->size; i++)
        sources[i] = shm_group_slot(f, i);
    /* Reads the input directly, since the lines of this rank's slot are in the caches of other
     * ranks. */
    sources[c->group->rank] = in.data;
    return call_fold(c, out.data, sources, in.bytes / c->element);
}

const struct algorithm all_reduce_shm_one_shot = { .name = "shm_one_shot",
                                                   .fits = all_reduce_shm_one_shot_fits,
                                                   .run = all_reduce_shm_one_shot_run,
                                                   .most = 8192 };
