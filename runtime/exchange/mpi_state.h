/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_state.h - says whether this process uses MPI.
 *
 * Under hydra a program has one connection to its launcher, and an MPI needs that for itself. */
#ifndef RUNTIME_EXCHANGE_MPI_STATE_H
#define RUNTIME_EXCHANGE_MPI_STATE_H

/* MPI_EARLY: MPI is loaded, but not initialised.  MPI_LIVES: it is initialised.  MPI_OVER: it was
 * finalised. */
enum mpi_state { MPI_ABSENT, MPI_EARLY, MPI_LIVES, MPI_OVER };
enum mpi_state mpi_state(void);

#endif
