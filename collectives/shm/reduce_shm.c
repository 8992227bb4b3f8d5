/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_shm.c - reduce on one host.  Each rank writes its input into its slot, and the root folds
 * all inputs.
 *
 * Cost: the root reads p n bytes and writes n bytes.  Directly between buffers the call takes 2
 * rounds.  Through slots each rank also copies n bytes to its slot. */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

static ct_status reduce_shm_direct(struct call *c)
{
    const void *inputs[SHM_GROUP_MOST];

    for (int i = 0; i < c->group->size; i++)
        inputs[i] = shm_group_send_of(c->group->shm, i);
    return call_is_root(c) ? call_fold(c, c->recv.base, inputs, c->signature.count) : CT_OK;
}

static void reduce_shm_show(struct call *c, size_t at, size_t n)
{
    if (!call_is_root(c))
        shm_group_write(c->group->shm, 0, block_at(c, &c->send, 0).data + at, n);
}

static ct_status reduce_shm_take(struct call *c, size_t at, size_t n)
{
    const void *inputs[SHM_GROUP_MOST];

    if (!call_is_root(c) || n == 0)
        return CT_OK;
    for (int i = 0; i < c->group->size; i++)
        inputs[i] = shm_group_slot(c->group->shm, i);
    inputs[c->group->rank] = block_at(c, &c->send, 0).data + at;
    return call_fold(c, (char *)c->recv.base + at, inputs, n / c->element);
}

static ct_status reduce_shm_run(struct call *c)
{
    const struct slots s = { .bytes = call_bytes(c),
                             .shares = 1,
                             .waiters = ROOT_WAITS,
                             .show = reduce_shm_show,
                             .take = reduce_shm_take,
                             .direct = reduce_shm_direct,
                             .sends = 1 };

    return slots_run(c, &s);
}

const struct algorithm reduce_shm = { .name = "shm", .fits = fits_shm, .run = reduce_shm_run };
