// SPDX-License-Identifier: Apache-2.0
// peers_oneccl.cpp - oneCCL's operations for peers_mpi.c, on buffers of the host.
//
// It runs over Intel MPI, which also makes the barriers between samples.  It has neither gather nor scatter,
// and its point-to-point is for GPUs.
#include "bench/peers_mpi.h"

#include <mpi.h>
#include <memory>
#include <oneapi/ccl.hpp>

static std::unique_ptr<ccl::communicator> world;

static void all_reduce(const struct call *c)
{
    ccl::allreduce(c->recv, c->recv, c->count, ccl::reduction::sum, *world).wait();
}

static void reduce(const struct call *c)
{
    ccl::reduce(c->recv, c->recv, c->count, ccl::reduction::sum, 0, *world).wait();
}

static void broadcast(const struct call *c)
{
    ccl::broadcast(c->recv, c->count, 0, *world).wait();
}

static void all_gather(const struct call *c)
{
    ccl::allgather(c->send, c->recv, c->count, *world).wait();
}

static void reduce_scatter(const struct call *c)
{
    ccl::reduce_scatter(c->send, c->recv, c->count, ccl::reduction::sum, *world).wait();
}

static void all_to_all(const struct call *c)
{
    ccl::alltoall(c->send, c->recv, c->count, *world).wait();
}

static void barrier(const struct call *)
{
    ccl::barrier(*world);
}

const struct operation operations[] = {
    { "all_reduce", all_reduce, 1, 0, 0, 0, SUM, 1 },
    { "reduce", reduce, 1, 0, 0, 1, SUM, 1 },
    { "broadcast", broadcast, 1, 0, 0, 0, ROOT, 1 },
    { "all_gather", all_gather, 0, 0, 1, 0, EACH, 1 },
    { "reduce_scatter", reduce_scatter, 0, 1, 0, 0, OWN_BLOCK_OF_SUM, 1 },
    { "all_to_all", all_to_all, 0, 1, 1, 0, OWN_BLOCK_OF_EACH, 1 },
    { "barrier", barrier, 0, 0, 0, 0, NOTHING, 1 },
};
const int operation_count = sizeof operations / sizeof *operations;

void operations_begin(const struct call *c)
{
    std::shared_ptr<ccl::kvs> store;
    ccl::kvs::address_type address;

    ccl::init();
    if (c->rank == 0) {
        store = ccl::create_main_kvs();
        address = store->get_address();
    }
    MPI_Bcast(address.data(), (int)address.size(), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (c->rank != 0)
        store = ccl::create_kvs(address);
    world = std::make_unique<ccl::communicator>(ccl::create_communicator(c->ranks, c->rank, store));
}
