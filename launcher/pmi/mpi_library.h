/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_library.h - finds the MPI that a program is linked with, from its file alone. */
#ifndef LAUNCHER_PMI_MPI_LIBRARY_H
#define LAUNCHER_PMI_MPI_LIBRARY_H

enum mpi_library {
    MPI_LIBRARY_NONE,  /* no known MPI, or the file is not a 64-bit ELF file (but a script) */
    MPI_LIBRARY_MPICH, /* MPICH, or a library derived from it such as Intel MPI or MVAPICH */
    MPI_LIBRARY_OPEN
};

enum mpi_library mpi_library_of(const char *path);

/* Returns 1 if the program is linked with libct or an MPI, and otherwise only with the C and C++
 * libraries.  Such a program does not use OpenMP, and is neither an interpreter nor a wrapper. */
int is_plain_rank(const char *path);

#endif
