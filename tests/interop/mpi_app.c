/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_app.c - an MPI program for scripts/interop-mpi:
 *   mpi_app [WHAT RANK [NUMBER]]   all sum their ranks; then RANK does WHAT */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *own = getenv("PMI_RANK");
    const int who = argc > 2 ? atoi(argv[2]) : -1, number = argc > 3 ? atoi(argv[3]) : 0;
    int rank, size, sum = 0;

    if (!strcmp(what, "absent") && own && atoi(own) == who)
        return 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size * (size - 1) / 2)
        return 9;
    printf("rank %d of %d\n", rank, size);
    fflush(stdout);
    if (!strcmp(what, "abort") && rank == who)
        MPI_Abort(MPI_COMM_WORLD, number);
    if (!strcmp(what, "leave") && rank == who)
        _exit(number);
    if (!strcmp(what, "kill") && rank == who)
        raise(SIGKILL);
    if (!strcmp(what, "launcher") && rank == who)
        kill(getppid(), SIGKILL);
    if (*what) /* the others wait for it in MPI */
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
