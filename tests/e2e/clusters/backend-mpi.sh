# SPDX-License-Identifier: Apache-2.0
# Backend "mpi": collectives over the MPI that started the program, on each MPI of this machine.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
. "$CT_SOURCE/tests/e2e/mpis.sh"
[ -n "$mpis" ] || { echo "skipped: no MPI (apt-get install openmpi-bin libopenmpi-dev mpich libmpich-dev)"; exit 77; }
[ -z "${CT_SANITIZE:-}" ] || { echo "skipped: MPIs leak, and are loaded late"; exit 77; }
unset MASTER_ADDR MASTER_PORT CT_BACKEND CT_LIBMPI CT_ORDER
trap 'no_hosts; cd /; rm -rf "$work"' EXIT

cat >fails.c <<'END'
#include <ct.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(const char *what, ct_status status)
{
    printf("%s on rank %d: %s: %s\n", what, ct_rank(CT_WORLD), ct_strerror(status), status == CT_OK ? "" : ct_last_error());
    fflush(stdout);
}
int main(int argc, char **argv)
{
    const char *what = argv[argc - 1];
    int x = 1, sum = 0, rank;
    ct_work *work;

    if (!strcmp(what, "single")) MPI_Init(&argc, &argv);
    if (ct_init_process_group(NULL) != CT_OK) return fprintf(stderr, "%s\n", ct_last_error()), 1;
    rank = ct_rank(CT_WORLD);
    if (!strcmp(what, "timeout")) {
        ct_set_timeout(CT_WORLD, 500);
        if (rank == 0) say(what, ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, NULL));
        else while (access("over", F_OK) != 0) usleep(10000);
        if (rank == 0) fclose(fopen("over", "w"));
    } else if (!strcmp(what, "abort")) {
        ct_all_reduce(CT_WORLD, &x, &sum, 1, CT_I32, CT_SUM, NULL);
        if (rank == 0) {
            ct_all_reduce(CT_WORLD, &x, &sum, 1, CT_I32, CT_SUM, &work); /* which rank 1 never makes */
            ct_abort(CT_WORLD);
            say(what, ct_wait(work));
            fclose(fopen("over", "w"));
        } else while (access("over", F_OK) != 0) usleep(10000);
    } else if (!strcmp(what, "dies")) {
        if (rank == 1) raise(SIGKILL);
        if (ct_all_reduce(CT_WORLD, &x, &sum, 1, CT_I32, CT_SUM, NULL) != CT_OK) _exit(7);
        say(what, CT_OK);
    } else if (!strcmp(what, "mismatch")) {
        say(what, ct_broadcast(CT_WORLD, &x, 1, CT_I32, !rank, NULL)); /* each waits for the other */
    } else if (!strcmp(what, "single")) {
        say(what, ct_all_reduce(CT_WORLD, &x, &sum, 1, CT_I32, CT_SUM, NULL));
        ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, &work);
        say("async", ct_wait(work));
        ct_destroy_process_group(CT_WORLD);
        MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        return MPI_Finalize();
    }
    fflush(NULL);
    _exit(0); /* MPI is in the middle of something */
}
END
plugin() { mpicc_of "$1" $2 -O2 -shared -fPIC -I"$CT_SOURCE/include" "$CT_SOURCE/collectives/mpi/plugin/libct_mpi.c" -o "$3"; }

export CT_BACKEND=mpi CT_TIMEOUT_MS=20000
for mpi in $mpis; do
    plugin "$mpi" "" "$work/libct-mpi.so" && plugin "$mpi" -DCT_MPI_MOST=1000 "$work/short.so"
    expect "$mpi: its compiler makes the plug-in" [ $? -eq 0 ]
    mpicc_of "$mpi" -I"$CT_SOURCE/include" fails.c -L"$CT_BUILD/lib" -lct -Wl,-rpath,"$CT_BUILD/lib" -o fails
    export CT_LIBMPI=$work/libct-mpi.so

    mpirun_of "$mpi" 4 "$CT_BUILD/bin/demo"
    by_mpi=$(sorted "$out")
    run --nproc-per-node=4 env CT_BACKEND=cpu "$CT_BUILD/bin/demo"
    expect "$mpi: the demo prints what it prints without MPI" is "$by_mpi" "$(sorted "$out")"

    for library in libct-mpi.so short.so; do
        CT_PROPERTY_LAUNCHED=1 CT_PROPERTY_CASES=200 CT_LIBMPI=$work/$library mpirun_of "$mpi" 3 "$CT_BUILD/tests/test_properties"
        expect "$mpi: random calls give what the manual says ($library)" is "$code" 0
    done

    CT_EXPLAIN=1 mpirun_of "$mpi" 2 "$CT_BUILD/bin/hello"
    expect "$mpi: an all-reduce of integers is MPI's" has "$err" "all_reduce, 4 bytes per rank, group world of 2 on 1 host: mpi,"

    rm -f over; mpirun_of "$mpi" 2 ./fails timeout
    expect "$mpi: a rank that does not come is a timeout" has "$out" "timeout on rank 0: the deadline passed: all_reduce #1 (1 i32, sum) on group world, rank 0: timed out after"
    rm -f over; mpirun_of "$mpi" 2 ./fails abort
    expect "$mpi: ct_abort() ends a wait" has "$out" "abort on rank 0: the group was aborted:"
    mpirun_of "$mpi" 2 ./fails mismatch
    expect "$mpi: different calls are found" has "$out" "the ranks made different calls"
    mpirun_of "$mpi" 3 ./fails dies
    expect "$mpi: the death of a rank ends the job" [ "$code" -ne 0 -a "$code" -ne 124 ]
    expect "$mpi: and no survivor has a result" lacks "$out" success
    mpirun_of "$mpi" 2 ./fails single
    expect "$mpi: a program may initialise MPI itself" has "$out" "single on rank 1: success"
    expect "$mpi: works need MPI_THREAD_MULTIPLE then" has "$out" "asynchronous calls and calls from another thread need MPI_THREAD_MULTIPLE, but the program asked MPI_Init_thread() for less"
done

# Each with a temporary folder: two such processes of Open MPI 4 fail if both make the same one at once.
run --nproc-per-node=2 sh -c 'TMPDIR=$(mktemp -d) exec "$0"' "$CT_BUILD/bin/hello"
expect "a rank that no mpirun started is told so" has "$err" "start the program with the mpirun or mpiexec of the MPI"
CT_LIBMPI=/nowhere.so run --standalone --nproc-per-node=1 "$CT_BUILD/bin/hello"
expect "without a plug-in it says what to do" has "$err" 'backend "mpi" needs libct-mpi.so: /nowhere.so: cannot open shared object file'
CT_BACKEND=mpj run --standalone --nproc-per-node=1 "$CT_BUILD/bin/hello"
expect "a backend that there is not is an error" has "$err" 'backend "mpj" is unknown (CT_BACKEND); there are "cpu" and "mpi"'

if hosts 2; then
    make_rsh
    for mpi in $mpis; do
        plugin "$mpi" "" "$work/libct-mpi.so"
        # After the first batch MPI has the connection to MPICH's launcher: rank 0's address is given.
        meet=()
        [[ $mpi = openmpi* ]] || meet=(MASTER_ADDR=10.77.0.1 MASTER_PORT=29531)
        CT_PROPERTY_LAUNCHED=1 CT_PROPERTY_CASES=80 CT_PROPERTY_HOSTS=2 mpihosts_of "$mpi" 2 \
            env "${meet[@]}" "$CT_BUILD/tests/test_properties"
        expect "$mpi: on two hosts, too" is "$code" 0
    done
fi
finish
