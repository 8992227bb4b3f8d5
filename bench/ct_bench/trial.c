/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - see trial.h. */
#include "bench/ct_bench/trial.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/ct_bench/device.h"

#define NEVER_WRITTEN 0xa5

static void *pages(size_t bytes, enum memory memory)
{
    void *at = NULL;

    if (memory == SHARED_MEMORY)
        return ct_mem_alloc(CT_WORLD, bytes, &at) == CT_OK ? at : NULL;
    if (memory == DEVICE_MEMORY)
        return device_alloc(bytes);
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Shared memory that one rank has not got, none has: all free the same. */
static void give_back(void *at, size_t bytes, enum memory memory)
{
    if (!at)
        return;
    if (memory == SHARED_MEMORY)
        ct_mem_free(CT_WORLD, at);
    else if (memory == DEVICE_MEMORY)
        device_free(at);
    else
        munmap(at, bytes);
}

int room_make(struct room *room, size_t bytes, enum memory memory)
{
    *room = (struct room){ .memory = memory, .bytes = bytes };
    room->send = pages(bytes, memory);
    room->recv = pages(bytes, memory);
    room->pattern = malloc(sizeof *room->pattern);
    if (memory == DEVICE_MEMORY && !(room->mirror = pages(bytes, ANY_MEMORY)))
        return 0;
    return room->send && room->recv && room->pattern;
}

void room_free(struct room *room)
{
    give_back(room->send, room->bytes, room->memory);
    give_back(room->recv, room->bytes, room->memory);
    give_back(room->mirror, room->bytes, ANY_MEMORY);
    free(room->pattern);
    *room = (struct room){ 0 };
}

static size_t elements_of(const struct trial *t, int per_rank)
{
    return per_rank ? t->shape.count * (size_t)t->shape.ranks : t->shape.count;
}

void trial_place(struct trial *t)
{
    const size_t own = (size_t)t->shape.rank * t->shape.count * ct_dtype_size(t->shape.dtype);

    t->send = t->room->send;
    t->recv = t->room->recv;
    if (!t->in_place)
        return;
    switch (t->operation->in_place) {
    case ALWAYS:
    case SAME:
        t->recv = t->send;
        break;
    case SEND_IN_RECV:
        t->send = t->room->recv + own;
        break;
    case RECV_IN_SEND:
        t->recv = t->room->send + own;
        break;
    case NEVER:
        break;
    }
}

static struct inputs inputs_of(const struct trial *t)
{
    return (struct inputs){ t->shape.dtype, t->operation->reduces ? t->shape.op : MOVED,
                            t->shape.ranks, t->room->round };
}

/* Where the host writes what belongs `at` a buffer; put() brings it there. */
static void *here(const struct room *room, void *at)
{
    return room->mirror ? room->mirror : at;
}

static void put(const struct room *room, void *at, size_t bytes)
{
    if (room->mirror)
        device_put(at, room->mirror, bytes);
}

/* Where the host reads what is there. */
static const void *got(const struct room *room, const void *at, size_t bytes)
{
    if (room->mirror)
        device_get(room->mirror, at, bytes);
    return room->mirror ? room->mirror : at;
}

void trial_fill(struct trial *t)
{
    const size_t sends = elements_of(t, t->operation->send_per_rank),
                 recvs = elements_of(t, t->operation->recv_per_rank);
    const size_t element = ct_dtype_size(t->shape.dtype);
    struct inputs inputs;

    t->room->round++;
    inputs = inputs_of(t);
    if (takes_part(t->operation->receives, &t->shape)) {
        memset(here(t->room, t->recv), NEVER_WRITTEN, recvs * element);
        put(t->room, t->recv, recvs * element);
    }
    if (takes_part(t->operation->sends, &t->shape)) {
        pattern_make(t->room->pattern, &inputs, t->shape.rank);
        pattern_fill(t->room->pattern, 0, here(t->room, t->send), sends);
        put(t->room, t->send, sends * element);
    }
}

ct_status trial_call(const struct trial *t)
{
    return t->operation->call(&t->shape, t->send, t->recv);
}

void trial_settle(const struct trial *t)
{
    if (t->room->stream)
        device_finish(t->room->stream);
}

static size_t wrong_results(const struct trial *t)
{
    const int blocks = t->operation->recv_per_rank ? t->shape.ranks : 1;
    const size_t bytes = t->shape.count * ct_dtype_size(t->shape.dtype);
    const struct inputs inputs = inputs_of(t);
    size_t wrong = 0;

    for (int block = 0; block < blocks; block++) {
        const struct origin origin = t->operation->origin(&t->shape, block);
        const char *result = (const char *)t->recv + (size_t)block * bytes;

        pattern_make(t->room->pattern, &inputs, origin.source);
        wrong += pattern_wrong(t->room->pattern, origin.start, got(t->room, result, bytes),
                               t->shape.count);
    }
    return wrong;
}

static size_t wrong_inputs(const struct trial *t)
{
    const struct inputs inputs = inputs_of(t);
    const size_t count = elements_of(t, t->operation->send_per_rank);

    pattern_make(t->room->pattern, &inputs, t->shape.rank);
    return pattern_wrong(t->room->pattern, 0,
                         got(t->room, t->send, count * ct_dtype_size(t->shape.dtype)), count);
}

ct_status trial_check(struct trial *t, int64_t *wrong)
{
    int64_t sum = 0;
    ct_status status;

    trial_fill(t);
    status = trial_call(t);
    if (status != CT_OK)
        return status;
    trial_settle(t);
    if (takes_part(t->operation->receives, &t->shape))
        sum += (int64_t)wrong_results(t);
    if (!t->in_place && takes_part(t->operation->sends, &t->shape))
        sum += (int64_t)wrong_inputs(t);
    return ct_all_reduce(CT_WORLD, &sum, wrong, 1, CT_I64, CT_SUM, NULL);
}
