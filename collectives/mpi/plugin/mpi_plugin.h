/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_plugin.h - the interface between libct-mpi.so and libct, a table of plain C functions that
 * call MPI.
 *
 * Handles and constants differ between MPIs.  So the mpicc of the MPI that will start the program
 * compiles the plug-in, and libct is compiled without MPI.  The functions return MPI's result, 0 or
 * an error code.  Only start() and comm_create() wait for other ranks. */
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
    int in_place; /* 1: pass MPI_IN_PLACE */
    /* In a reduction, the elements of each block, up to PLUGIN_MOST.  Otherwise the bytes of each
     * block or of the message, without a limit. */
    size_t count;
    ct_dtype dtype; /* dtype of a reduction */
    ct_op op;
    int other; /* rank of the root, or of the other end of a message */
    int tag;   /* tag of a message, at most 32767 */
};
#define PLUGIN_MOST ((size_t)1 << 30)

struct mpi_world {
    int rank, size;
    int any_thread;    /* 1 if MPI has MPI_THREAD_MULTIPLE */
    char library[128]; /* such as "Open MPI v4.1.4", for messages */
};

struct mpi_plugin {
    int version;
    /* Initialises MPI unless the program has done so.  If start() initialised MPI, MPI is finalised
     * when the process exits. */
    int (*start)(struct mpi_world *world);
    int (*is_main_thread)(void);
    /* Creates a communicator of these ranks of MPI_COMM_WORLD, which all call this function.  tag:
     * at most 32767. */
    int (*comm_create)(const int *ranks, int size, int tag, void **comm);
    /* Frees the communicator.  is_idle 0: requests are still active, so the communicator is not
     * freed in MPI and MPI is never finalised. */
    void (*comm_free)(void *comm, int is_idle);
    int (*begin)(void *comm, const struct mpi_call *call, uint64_t *request);
    int (*test)(uint64_t *request, int *done);
    void (*give_up)(uint64_t *request, enum mpi_kind kind);
    /* Writes the error in words to text.  *is_truncation is 1 if a message was longer than its
     * receive. */
    void (*describe)(int error, char *text, size_t size, int *is_truncation);
};

#endif
