/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_group.h - the backend "mpi": the collectives of a group go over the MPI that started the
 * program.
 *
 *   mpi_load.c   finds the plug-in and starts MPI
 *   mpi_group.c     the communicator of a group; waiting; the messages of libct's algorithms
 *   mpi_rows.c      the row "mpi" of each operation: what MPI has itself
 *
 * Messages of the program (ct_send() and its like), the store, failures and deaths stay libct's. */
#ifndef COLLECTIVES_MPI_MPI_GROUP_H
#define COLLECTIVES_MPI_MPI_GROUP_H

#include "collectives/core/call.h"
#include "collectives/mpi/plugin/mpi_plugin.h"

struct mpi_group {
    const struct mpi_plugin *plugin;
    void *comm;
    int is_idle; /* no request was given up */
};

/* Loads the plug-in, once in a process, and starts MPI.  CT_ERR_UNSUPPORTED: there is none, or it
 * can't be loaded. */
ct_status mpi_load(const struct mpi_plugin **plugin, const struct mpi_world **world);
/* Of a failure of MPI. */
ct_status mpi_says(const struct mpi_plugin *plugin, int error, const char *what);

/* For group_extension.h; open: when the group has its overrides. */
ct_status mpi_group_start(int *rank, int *size);
ct_status mpi_group_open(ct_group *group);
void mpi_group_release(ct_group *group);

/* Begins an operation and waits for it. */
ct_status mpi_group_run(struct call *c, const struct mpi_call *operation);

#endif
