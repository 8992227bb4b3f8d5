/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_exchange.h - a text from rank 0 to all ranks through the MPI that the program itself uses. */
#ifndef RUNTIME_EXCHANGE_MPI_EXCHANGE_H
#define RUNTIME_EXCHANGE_MPI_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* MPI_EARLY: it is loaded, but not initialised.  MPI_LIVES: it is.  MPI_OVER: it was
 * finalised. */
enum mpi_state { MPI_ABSENT, MPI_EARLY, MPI_LIVES, MPI_OVER };
enum mpi_state mpi_state(void);
/* When MPI lives.  All ranks of MPI_COMM_WORLD call it.  text: on rank 0 what all get, on the
 * others the place for it. */
ct_status mpi_broadcast(char *text, size_t size, int64_t deadline);

#endif
