/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_state.h - finds out whether this process uses MPI.
 *
 * Under hydra a program has only one connection to its launcher, and MPI needs this connection for
 * itself. */
#ifndef RUNTIME_EXCHANGE_MPI_STATE_H
#define RUNTIME_EXCHANGE_MPI_STATE_H

/* MPI_ABSENT means that no MPI is loaded.  MPI_EARLY means that MPI is loaded but not initialised.
 * MPI_LIVES means that MPI is initialised, and MPI_OVER that MPI was finalised. */
enum mpi_state { MPI_ABSENT, MPI_EARLY, MPI_LIVES, MPI_OVER };
enum mpi_state mpi_state(void);

#endif
