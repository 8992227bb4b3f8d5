/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_shm_two_shot.c - all-reduce on one host in two rounds.  Each rank folds its part of
 * all inputs, and then each rank gets all parts.
 *
 * Directly between buffers: the first round says that the inputs are there.  Each rank folds its
 * part of all inputs into the outputs of all ranks, and the second round says that this is done.
 * Nothing is copied.
 * Through slots: each rank writes its input into its slot.  It folds its own part into its output
 * and its slot, and then copies the other parts from the slots of the other ranks.   For few bytes
 * each rank folds all inputs, since a second round costs more.
 * Cost: directly 2 rounds, in which each rank reads n bytes and writes n bytes.   Through slots the
 * call takes one round for few bytes.  Else it takes two rounds for each piece, and each rank also
 * copies 2 n (p-1)/p bytes.
 * [reduce-scatter + all-gather: Rabenseifner 2004; DeepSpeed distributed_naive_reduce] */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"

static ct_status all_reduce_shm_two_shot_direct(struct call *c)
{
    const struct shm_group *f = c->group->shm;
    const struct part part = line_part(c, call_bytes(c), c->group->rank);
    const void *inputs[SHM_GROUP_MOST];
    void *outputs[SHM_GROUP_MOST];
    int streaming = call_bytes(c) * (size_t)c->group->size >= STREAMING_BYTES;

    for (int i = 0; i < c->group->size; i++) {
        inputs[i] = shm_group_send_of(f, i) + part.at;
        outputs[i] = shm_group_recv_of(f, i) + part.at;
        streaming &= inputs[i] != outputs[i]; /* in place, the cache lines have just been read */
    }
    return part.bytes == 0 ? CT_OK
                           : call_fold_to(c, outputs, c->group->size, inputs,
                                          part.bytes / c->element, streaming);
}

static void all_reduce_shm_two_shot_show(struct call *c, size_t at, size_t n)
{
    const char *in = block_at(c, &c->send, 0).data + at;
    struct shm_group *f = c->group->shm;
    const struct part own = line_part(c, n, c->group->rank);
    const size_t end = own.at + own.bytes;

    shm_group_write(f, 0, in, own.at);
    shm_group_write(f, end, in + end, n - end);
}

/* Folds this rank's part of all inputs into its output and its slot.  Writes the slot past the
 * caches if that is faster. */
static ct_status fold_own_part(struct call *c, size_t at, size_t n)
{
    struct shm_group *f = c->group->shm;
    const struct part part = line_part(c, n, c->group->rank);
    const int apart = shm_group_streams(f);
    ct_status status;
    void *outputs[2] = { block_at(c, &c->recv, 0).data + at + part.at,
                         (char *)shm_group_own(f) + part.at };
    const void *inputs[SHM_GROUP_MOST];

    if (part.bytes == 0)
        return CT_OK;
    for (int i = 0; i < c->group->size; i++)
        inputs[i] = (const char *)shm_group_slot(f, i) + part.at;
    inputs[c->group->rank] = block_at(c, &c->send, 0).data + at + part.at;
    status = call_fold_to(c, outputs, apart ? 1 : 2, inputs, part.bytes / c->element, 0);
    if (apart && status == CT_OK)
        shm_group_write(f, part.at, outputs[0], part.bytes);
    return status;
}

static ct_status all_reduce_shm_two_shot_take(struct call *c, size_t at, size_t n)
{
    struct shm_group *f = c->group->shm;
    char *out = block_at(c, &c->recv, 0).data + at;
    ct_status status = fold_own_part(c, at, n);

    if (status == CT_OK)
        status = shm_group_publish(f);
    if (status == CT_OK)
        status = shm_group_wait_all(f);
    for (int i = 0; i < c->group->size && status == CT_OK; i++) {
        const struct part part = line_part(c, n, i);

        if (i != c->group->rank)
            copy_span(span_of(out + part.at, part.bytes),
                      (const char *)shm_group_slot(f, i) + part.at);
    }
    return status;
}

static void show_whole(struct call *c, size_t at, size_t n)
{
    shm_group_write(c->group->shm, 0, block_at(c, &c->send, 0).data + at, n);
}

static ct_status fold_whole(struct call *c, size_t at, size_t n)
{
    const void *inputs[SHM_GROUP_MOST];

    for (int i = 0; i < c->group->size; i++)
        inputs[i] = shm_group_slot(c->group->shm, i);
    inputs[c->group->rank] = block_at(c, &c->send, 0).data + at;
    return call_fold(c, block_at(c, &c->recv, 0).data + at, inputs, n / c->element);
}

/* Two ranks move as many bytes in one round as in two, but fold twice as many.  If ranks share
 * processors, a round costs switches between them.  Measured with 2, 4 and 8 ranks. */
static int suits_one_round(const struct call *c)
{
    return c->group->size == 2
               ? call_bytes(c) <= (size_t)32 << 10
               : call_bytes(c) <= (size_t)16 << 10 && shm_group_shares_processors(c->group->shm);
}

static ct_status all_reduce_shm_two_shot_run(struct call *c)
{
    const int one_round = suits_one_round(c);
    const struct slots s = { .bytes = call_bytes(c),
                             .shares = 1,
                             .waiters = ALL_WAIT,
                             .show = one_round ? show_whole : all_reduce_shm_two_shot_show,
                             .take = one_round ? fold_whole : all_reduce_shm_two_shot_take,
                             .direct = all_reduce_shm_two_shot_direct,
                             .sends = 1,
                             .recvs = 1,
                             .two_rounds = !one_round };

    return slots_run(c, &s);
}

const struct algorithm all_reduce_shm_two_shot = { .name = "shm_two_shot",
                                                   .fits = fits_shm,
                                                   .run = all_reduce_shm_two_shot_run };
