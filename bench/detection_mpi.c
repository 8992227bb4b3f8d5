/* SPDX-License-Identifier: Apache-2.0 */
/* detection_mpi.c - a rank of an MPI program that waits while another one dies, for
 * detection_bench.
 *
 *   mpiexec ... detection_mpi PAGE PLACE
 *
 * bench/detection compiles it by the mpicc of each MPI that is installed; what a place is stands
 * in bench/detection_worker.  An MPI program that has lost a rank is ended by its launcher: the
 * time is that of SIGTERM where it comes, else of the process's end, which detection_bench
 * sees. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "bench/detection_bench/victim.h"

#define LARGE (16 << 20)

static struct page *page; /* the handler's */
static int rank;
static char much[LARGE];

static void told(int signal_number)
{
    (void)signal_number;
    atomic_store(&page->told[rank], stamp());
    _exit(1);
}

static void wait_in(const char *place, int victim, int size)
{
    double one = 1, sum = 0;
    MPI_Request request;

    if (!strcmp(place, "all_reduce"))
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else if (!strcmp(place, "broadcast"))
        MPI_Bcast(&one, 1, MPI_DOUBLE, victim, MPI_COMM_WORLD);
    else if (!strcmp(place, "reduce"))
        MPI_Reduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, (victim + 1) % size, MPI_COMM_WORLD);
    else if (!strcmp(place, "barrier"))
        MPI_Barrier(MPI_COMM_WORLD);
    else if (!strcmp(place, "recv"))
        MPI_Recv(&one, 1, MPI_DOUBLE, victim, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (!strcmp(place, "send"))
        MPI_Send(much, LARGE, MPI_BYTE, victim, 0, MPI_COMM_WORLD);
    else if (!strcmp(place, "wait")) {
        MPI_Iallreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    static const char *const ranks[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", NULL };
    static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL };
    const int size = number_of(sizes, 1);
    double one = 1, sum = 0;

    rank = number_of(ranks, 0);
    page = argc == 3 ? page_open(argv[1]) : NULL;
    if (!page || rank < 0 || rank >= MOST_RANKS)
        return 2;
    alarm(120);
    signal(SIGTERM, told);
    atomic_store(&page->pid[rank], getpid());
    if (!strcmp(argv[2], "init-before") || !strcmp(argv[2], "anywhere")) {
        if (rank == page->victim)
            die_when_they_wait(page, size);
        atomic_store(&page->called[rank], stamp());
        while (!strcmp(argv[2], "anywhere"))
            pause();
        MPI_Init(&argc, &argv);
    } else {
        MPI_Init(&argc, &argv);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == page->victim)
            die_when_they_wait(page, size);
        atomic_store(&page->called[rank], stamp());
        wait_in(argv[2], (int)page->victim, size);
    }
    /* Of a reduction only the root waits; the others may not leave before it knows. */
    for (;;)
        pause();
}
