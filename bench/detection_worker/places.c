/* SPDX-License-Identifier: Apache-2.0 */
/* places.c - see places.h. */
#include "bench/detection_worker/places.h"

#include <stdlib.h>
#include <string.h>

#define LARGE ((size_t)16 << 20) /* more than any buffer between two ranks takes */

static double numbers[2];

static ct_status in_all_reduce(int victim, int rank, int size)
{
    (void)victim, (void)rank, (void)size;
    return ct_all_reduce(CT_WORLD, numbers, numbers, 1, CT_F64, CT_SUM, NULL);
}

static ct_status in_broadcast(int victim, int rank, int size)
{
    (void)rank, (void)size;
    return ct_broadcast(CT_WORLD, numbers, 1, CT_F64, victim, NULL);
}

/* The root waits; what the others give may be on its way when they return. */
static ct_status in_reduce(int victim, int rank, int size)
{
    (void)rank;
    return ct_reduce(CT_WORLD, numbers, numbers + 1, 1, CT_F64, CT_SUM, (victim + 1) % size, NULL);
}

static ct_status in_barrier(int victim, int rank, int size)
{
    (void)victim, (void)rank, (void)size;
    return ct_barrier(CT_WORLD, NULL);
}

static ct_status in_wait(int victim, int rank, int size)
{
    ct_work *work;
    ct_status status;

    (void)victim, (void)rank, (void)size;
    status = ct_all_reduce(CT_WORLD, numbers, numbers, 1, CT_F64, CT_SUM, &work);
    return status == CT_OK ? ct_wait(work) : status;
}

static ct_status in_recv(int victim, int rank, int size)
{
    (void)rank, (void)size;
    return ct_recv(CT_WORLD, numbers, 1, CT_F64, victim, 0, NULL);
}

static ct_status in_send(int victim, int rank, int size)
{
    char *much = calloc(1, LARGE);
    ct_status status;

    (void)rank, (void)size;
    status = ct_send(CT_WORLD, much, LARGE, CT_U8, victim, 0);
    free(much);
    return status;
}

/* A key that nobody will set. */
static ct_status in_store(int victim, int rank, int size)
{
    void *value;
    size_t bytes;
    const ct_status status = ct_store_get(ct_store_default(), "never set", -1, &value, &bytes);

    (void)victim, (void)rank, (void)size;
    if (status == CT_OK)
        free(value);
    return status;
}

const struct place *place_find(const char *name)
{
    static const struct place places[] = {
        { "all_reduce", in_all_reduce },
        { "broadcast", in_broadcast },
        { "reduce", in_reduce },
        { "barrier", in_barrier },
        { "wait", in_wait },
        { "recv", in_recv },
        { "send", in_send },
        { "store", in_store },
        { "store-host", in_store },
    };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!strcmp(places[i].name, name))
            return &places[i];
    return NULL;
}
