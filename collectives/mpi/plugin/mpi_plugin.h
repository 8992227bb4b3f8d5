/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_plugin.h - what libct-mpi.so gives to libct: an MPI behind a table of plain C.
 *
 * The handles and constants of MPIs differ, so the plug-in is compiled by the mpicc of the MPI that
 * will start the program, and libct by none.  Results are MPI's: 0 or an error code.  No function
 * waits for other ranks but start() and comm_create(). */
#ifndef COLLECTIVES_MPI_PLUGIN_MPI_PLUGIN_H
#define COLLECTIVES_MPI_PLUGIN_MPI_PLUGIN_H

#include <ct.h>

#include <stddef.h>
#include <stdint.h>

#define PLUGIN_VERSION 1
#define PLUGIN_SYMBOL "ct_mpi_plugin"

enum mpi_kind {
    BY_MPI_BARRIER,
    BY_MPI_BROADCAST,
    BY_MPI_REDUCE,
    BY_MPI_ALL_REDUCE,
    BY_MPI_REDUCE_SCATTER,
    BY_MPI_GATHER,
    BY_MPI_ALL_GATHER,
    BY_MPI_SCATTER,
    BY_MPI_ALL_TO_ALL,
    BY_MPI_MESSAGE_OUT,
    BY_MPI_MESSAGE_IN
};

struct mpi_call {
    enum mpi_kind kind;
    const void *send;
    void *recv;
    int in_place;   /* as MPI_IN_PLACE */
    size_t count;   /* of a reduction: elements of each block, up to PLUGIN_MOST; else bytes of
                       each block, or of the message, as many as there are */
    ct_dtype dtype; /* of a reduction */
    ct_op op;
    int other; /* the root, or the other end of a message */
    int tag;   /* of a message, up to 32767 */
};
#define PLUGIN_MOST ((size_t)1 << 30)

struct mpi_world {
    int rank, size;
    int any_thread;    /* MPI_THREAD_MULTIPLE */
    char library[128]; /* "Open MPI v4.1.4", for messages */
};

struct mpi_plugin {
    int version;
    /* Initialises MPI unless the program has; then MPI is finalised when the process exits. */
    int (*start)(struct mpi_world *world);
    int (*is_main_thread)(void);
    /* Of these ranks of MPI_COMM_WORLD, all of which call it; tag: up to 32767. */
    int (*comm_create)(const int *ranks, int size, int tag, void **comm);
    /* is_idle 0: requests are under way, and MPI must not be finalised any more. */
    void (*comm_free)(void *comm, int is_idle);
    int (*begin)(void *comm, const struct mpi_call *call, uint64_t *request);
    int (*test)(uint64_t *request, int *done);
    void (*give_up)(uint64_t *request, enum mpi_kind kind);
    /* The error in words; *is_truncation: a message was longer than its receive. */
    void (*describe)(int error, char *text, size_t size, int *is_truncation);
};

#endif
