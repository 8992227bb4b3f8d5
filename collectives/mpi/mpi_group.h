/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_group.h - the backend "mpi", in which the collectives of a group use the MPI that started the
 * program.
 *
 *     mpi_load.c     finds the plug-in and starts MPI
 *     mpi_group.c    the communicator of a group, waiting, and the messages of libct's algorithms
 *     mpi_rows.c     the algorithm "mpi" of each operation, which calls MPI's own collective
 *
 * libct itself still handles the program's messages (ct_send() and similar calls), the store,
 * failures and deaths. */
#ifndef COLLECTIVES_MPI_MPI_GROUP_H
#define COLLECTIVES_MPI_MPI_GROUP_H

#include "collectives/core/call.h"
#include "collectives/mpi/plugin/mpi_plugin.h"

struct mpi_group {
    const struct mpi_plugin *plugin;
    void *comm;
    int is_idle; /* 1 while no request was given up */
};

/* Loads the plug-in once in a process, and starts MPI.  Returns CT_ERR_UNSUPPORTED if there is no
 * plug-in, or if it can't be loaded. */
ct_status mpi_load(const struct mpi_plugin **plugin, const struct mpi_world **world);
/* Returns CT_OK if error is 0.  Otherwise fails with MPI's description of the error. */
ct_status mpi_says(const struct mpi_plugin *plugin, int error, const char *what);

/* Functions for group_extension.h.  mpi_group_open() is called after the group has its overrides.
 */
ct_status mpi_group_start(int *rank, int *size);
ct_status mpi_group_open(ct_group *group);
void mpi_group_release(ct_group *group);

/* Starts an MPI operation and waits for it. */
ct_status mpi_group_run(struct call *c, const struct mpi_call *operation);

#endif
