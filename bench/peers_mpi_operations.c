/* SPDX-License-Identifier: Apache-2.0 */
/* peers_mpi_operations.c - what peers_mpi measures, and whether it is right. */
#include "bench/peers_mpi.h"

#include <mpi.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
#define COMPARED 16384 /* elements of a block, evenly; a large block is not compared whole */

/* ---- Operations ----------------------------------------------------------------- */

static void all_reduce(const struct call *c)
{
    MPI_Allreduce(MPI_IN_PLACE, c->recv, c->count, MPI_FLOAT, MPI_SUM, WORLD);
}

static void reduce(const struct call *c)
{
    MPI_Reduce(c->rank == 0 ? MPI_IN_PLACE : c->recv, c->recv, c->count, MPI_FLOAT, MPI_SUM, 0,
               WORLD);
}

static void broadcast(const struct call *c)
{
    MPI_Bcast(c->recv, c->count, MPI_FLOAT, 0, WORLD);
}

static void all_gather(const struct call *c)
{
    MPI_Allgather(c->send, c->count, MPI_FLOAT, c->recv, c->count, MPI_FLOAT, WORLD);
}

static void gather(const struct call *c)
{
    MPI_Gather(c->send, c->count, MPI_FLOAT, c->recv, c->count, MPI_FLOAT, 0, WORLD);
}

static void scatter(const struct call *c)
{
    MPI_Scatter(c->send, c->count, MPI_FLOAT, c->recv, c->count, MPI_FLOAT, 0, WORLD);
}

static void reduce_scatter(const struct call *c)
{
    MPI_Reduce_scatter_block(c->send, c->recv, c->count, MPI_FLOAT, MPI_SUM, WORLD);
}

static void all_to_all(const struct call *c)
{
    MPI_Alltoall(c->send, c->count, MPI_FLOAT, c->recv, c->count, MPI_FLOAT, WORLD);
}

static void barrier(const struct call *c)
{
    (void)c;
    MPI_Barrier(WORLD);
}

static void ping_pong(const struct call *c)
{
    if (c->rank == 0)
        MPI_Send(c->send, c->count, MPI_FLOAT, 1, 0, WORLD);
    if (c->rank < 2)
        MPI_Recv(c->recv, c->count, MPI_FLOAT, 1 - c->rank, 0, WORLD, MPI_STATUS_IGNORE);
    if (c->rank == 1)
        MPI_Send(c->send, c->count, MPI_FLOAT, 0, 0, WORLD);
}

const struct operation operations[] = {
    { "all_reduce", all_reduce, 1, 0, 0, 0, SUM, 1 },
    { "reduce", reduce, 1, 0, 0, 1, SUM, 1 },
    { "broadcast", broadcast, 1, 0, 0, 0, ROOT, 1 },
    { "all_gather", all_gather, 0, 0, 1, 0, EACH, 1 },
    { "gather", gather, 0, 0, 1, 1, EACH, 1 },
    { "scatter", scatter, 0, 1, 0, 0, OWN_BLOCK_OF_ROOT, 1 },
    { "reduce_scatter", reduce_scatter, 0, 1, 0, 0, OWN_BLOCK_OF_SUM, 1 },
    { "all_to_all", all_to_all, 0, 1, 1, 0, OWN_BLOCK_OF_EACH, 1 },
    { "barrier", barrier, 0, 0, 0, 0, NOTHING, 1 },
    { "ping_pong", ping_pong, 0, 0, 0, 0, OTHER, 2 },
};
const int operation_count = sizeof operations / sizeof *operations;

/* ---- Right or wrong -------------------------------------------------------------- */

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
    MPI_Allreduce(&own, &all, 1, MPI_LONG, MPI_SUM, WORLD);
    return all;
}
