/* SPDX-License-Identifier: Apache-2.0 */
/* backend_mpi.c - backend "mpi" beside the MPI below it, in one process and by turns.
 *
 *     mpicc -O2 -Iinclude bench/backend_mpi.c -Lbuild/lib -lct -o backend_mpi
 *     export LD_LIBRARY_PATH=build/lib CT_LIBMPI=build/lib/libct-mpi.so CT_BACKEND=mpi
 *     mpirun -n 2 ./backend_mpi
 *
 * Each line is an operation and a size: the median time of a call on rank 0, in us, by MPI's call
 * that blocks, by the one that does not and a wait, and by libct. */
#include <ct.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 21, WAYS = 3 };

static char *in, *out;
static double us[WAYS][ROUNDS];

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "%s\n", ct_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

typedef void call(int way, int count);

static void barrier(int way, int count)
{
    MPI_Request r;

    (void)count;
    if (way == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else if (way == 1)
        MPI_Ibarrier(MPI_COMM_WORLD, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
    else
        check(ct_barrier(CT_WORLD, NULL));
}

static void broadcast(int way, int count)
{
    MPI_Request r;

    if (way == 0)
        MPI_Bcast(in, count, MPI_INT, 0, MPI_COMM_WORLD);
    else if (way == 1)
        MPI_Ibcast(in, count, MPI_INT, 0, MPI_COMM_WORLD, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
    else
        check(ct_broadcast(CT_WORLD, in, (size_t)count, CT_I32, 0, NULL));
}

static void reduce_as(int way, int count, MPI_Datatype type, ct_dtype dtype)
{
    MPI_Request r;

    if (way == 0)
        MPI_Allreduce(in, out, count, type, MPI_SUM, MPI_COMM_WORLD);
    else if (way == 1)
        MPI_Iallreduce(in, out, count, type, MPI_SUM, MPI_COMM_WORLD, &r),
            MPI_Wait(&r, MPI_STATUS_IGNORE);
    else
        check(ct_all_reduce(CT_WORLD, in, out, (size_t)count, dtype, CT_SUM, NULL));
}

static void all_reduce_i32(int way, int count)
{
    reduce_as(way, count, MPI_INT, CT_I32);
}
static void all_reduce_f32(int way, int count)
{
    reduce_as(way, count, MPI_FLOAT, CT_F32);
}

static int by_size(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static void measure(const char *name, call *f, int bytes)
{
    const int calls = bytes > 100000 ? 20 : 200, count = bytes / 4;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = -1; round < ROUNDS; round++)
        for (int way = 0; way < WAYS; way++) {
            double start;

            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
            for (int i = 0; i < calls; i++)
                f(way, count);
            if (round >= 0)
                us[way][round] = (MPI_Wtime() - start) * 1e6 / calls;
        }
    for (int way = 0; way < WAYS; way++)
        qsort(us[way], ROUNDS, sizeof **us, by_size);
    if (rank == 0)
        printf("| %-14s | %8d | %8.1f | %8.1f | %8.1f |\n", name, bytes, us[0][ROUNDS / 2],
               us[1][ROUNDS / 2], us[2][ROUNDS / 2]);
}

int main(int argc, char **argv)
{
    static const int sizes[] = { 8, 1024, 65536, 4194304 };
    int level, rank;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check(ct_init_process_group(NULL));
    in = calloc(1, 4194304), out = calloc(1, 4194304);
    if (rank == 0)
        printf(
            "| operation | bytes | MPI | MPI, not blocking | libct, %s |\n|---|---|---|---|---|\n",
            ct_backend(CT_WORLD));
    measure("barrier", barrier, 0);
    for (int i = 0; i < 4; i++)
        measure("broadcast", broadcast, sizes[i]);
    for (int i = 0; i < 4; i++)
        measure("all_reduce i32", all_reduce_i32, sizes[i]);
    for (int i = 0; i < 4; i++)
        measure("all_reduce f32", all_reduce_f32, sizes[i]);
    ct_destroy_process_group(CT_WORLD);
    return MPI_Finalize();
}
