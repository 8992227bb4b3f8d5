/* SPDX-License-Identifier: Apache-2.0 */
/* peers_mpi_check.c - what lies in the buffers, and whether it is right afterwards. */
#include "bench/peers_mpi.h"

#include <mpi.h>
#include <string.h>

#define COMPARED 16384 /* elements of a block, evenly; a large block is not compared whole */

/* Small whole numbers, so that sums are exact; a prime's multiples, so that no block repeats. */
static float value_of(int rank, size_t element)
{
    return (float)((element * 7 + element / 61 + (size_t)rank * 5) % 31);
}

static float expected(const struct call *c, enum source source, int block, size_t i)
{
    const size_t own = (size_t)c->rank * (size_t)c->count + i;
    const size_t at = source == OWN_BLOCK_OF_SUM ? own : i;
    float sum = 0;

    switch (source) {
    case ROOT:
        return value_of(0, i);
    case OWN_BLOCK_OF_ROOT:
        return value_of(0, own);
    case EACH:
        return value_of(block, i);
    case OWN_BLOCK_OF_EACH:
        return value_of(block, own);
    case OTHER:
        return value_of(1 - c->rank, i);
    default:
        for (int rank = 0; rank < c->ranks; rank++)
            sum += value_of(rank, at);
        return sum;
    }
}

void fill(const struct operation *o, const struct call *c)
{
    const size_t given = (size_t)c->count * (size_t)(o->send_blocks ? c->ranks : 1);
    float *from = o->in_place ? c->recv : c->send;

    if (!o->in_place)
        memset(c->recv, 0xff,
               sizeof(float) * (size_t)c->count * (size_t)(o->recv_blocks ? c->ranks : 1));
    for (size_t i = 0; i < given; i++)
        from[i] = value_of(c->rank, i);
}

long wrong(const struct operation *o, const struct call *c)
{
    const size_t step = (size_t)c->count / COMPARED + 1;
    const int nobody = o->source == NOTHING || (o->source == OTHER && c->rank > 1);
    long own = 0, all = 0;

    for (int block = 0; !nobody && block < (o->recv_blocks ? c->ranks : 1); block++)
        for (size_t i = 0; i < (size_t)c->count && !(o->only_root_gets && c->rank != 0); i += step)
            own +=
                c->recv[(size_t)block * (size_t)c->count + i] != expected(c, o->source, block, i);
    MPI_Allreduce(&own, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}
