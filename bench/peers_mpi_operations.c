/* SPDX-License-Identifier: Apache-2.0 */
/* peers_mpi_operations.c - what peers_mpi measures: an MPI's operations. */
#include "bench/peers_mpi.h"

#include <mpi.h>

#define WORLD MPI_COMM_WORLD

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

void operations_begin(const struct call *c)
{
    (void)c;
}
