/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_library.h - which MPI a program is linked with, from its file alone. */
#ifndef LAUNCHER_PMI_MPI_LIBRARY_H
#define LAUNCHER_PMI_MPI_LIBRARY_H

enum mpi_library {
    MPI_LIBRARY_NONE,  /* or it is no 64-bit ELF file: a script */
    MPI_LIBRARY_MPICH, /* its family: MPICH, Intel MPI, MVAPICH */
    MPI_LIBRARY_OPEN
};

enum mpi_library mpi_library_of(const char *path);

/* Is the program linked with libct or an MPI, and otherwise only with the C and C++ libraries?
 * Such a program uses no OpenMP, and it is neither an interpreter nor a wrapper. */
int is_plain_rank(const char *path);

#endif
