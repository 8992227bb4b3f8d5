# SPDX-License-Identifier: Apache-2.0
# mpirun and mpiexec start a program of libct on two hosts, and it needs no variable.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
. "$CT_SOURCE/tests/e2e/mpis.sh"
unset MASTER_ADDR MASTER_PORT
trap 'no_hosts; cd /; rm -rf "$work"' EXIT
[ -n "$mpis" ] || { echo "skipped: no MPI (apt-get install openmpi-bin libopenmpi-dev mpich libmpich-dev)"; exit 77; }
[ -z "${CT_SANITIZE:-}" ] || { echo "skipped: MPIs leak, and are loaded late"; exit 77; }
hosts 2 || { echo "skipped: no right to make hosts of namespaces"; exit 77; }
make_rsh

cat >both.c <<'END'
#include <ct.h>
#include <mpi.h>
#include <stdio.h>

static int fails(void) { return fprintf(stderr, "%s\n", ct_last_error()), 1; }
int main(int argc, char **argv)
{
    int x, sum = 0;
    if (argc == 1) MPI_Init(&argc, &argv);
    for (int i = 0; i < 2; i++) {
        if (ct_init_process_group(NULL) != CT_OK) return fails();
        x = ct_rank(CT_WORLD) + 1;
        if (ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, NULL) != CT_OK) return fails();
        ct_destroy_process_group(CT_WORLD);
    }
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("libct %d, MPI %d\n", x, sum);
    return MPI_Finalize();
}
END

# Rank 0 is elsewhere until the message has come, so rank 1 has to reach it.
cat >toward0.c <<'END'
#include <ct.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    int x = 7;
    if (ct_init_process_group(NULL) != CT_OK) return fprintf(stderr, "%s\n", ct_last_error()), 1;
    while (ct_rank(CT_WORLD) == 0 && access("sent", F_OK) != 0) usleep(10000);
    if ((ct_rank(CT_WORLD) ? ct_send(CT_WORLD, &x, 1, CT_I32, 0, 1) : ct_recv(CT_WORLD, &x, 1, CT_I32, 1, 1, NULL)) == CT_OK &&
        (ct_rank(CT_WORLD) == 0 || fclose(fopen("sent", "w")) == 0))
        return ct_destroy_process_group(CT_WORLD) != CT_OK;
    return fprintf(stderr, "%s\n", ct_last_error()), 1;
}
END
cc -I"$CT_SOURCE/include" toward0.c -L"$CT_BUILD/lib" -lct -Wl,-rpath,"$CT_BUILD/lib" -o toward0

two() { sorted "$out" | grep '^rank' | tr '\n' ';'; }
for mpi in $mpis; do
    mpihosts_of "$mpi" 2 "$CT_BUILD/bin/hello"
    expect "$mpi: the ranks of two hosts find each other" is "$(two)" "rank 0 of 2: the sum is 3;rank 1 of 2: the sum is 3;"

    OMP_NUM_THREADS=1 mpihosts_of "$mpi" 2 "$CTRUN" --prefix=none --nproc-per-node=2 "$CT_BUILD/bin/hello"
    expect "$mpi: so do the ctruns that it starts, one on each" is "$(two)" "$(for r in 0 1 2 3; do printf 'rank %d of 4: the sum is 10;' $r; done)"
    expect "$mpi: their store has a secret" lacks "$err" "no job secret"

    CT_ENCRYPT=1 mpihosts_of "$mpi" 2 "$CT_BUILD/bin/hello"
    expect "$mpi: there is a secret to encrypt with" is "$(two)" "rank 0 of 2: the sum is 3;rank 1 of 2: the sum is 3;"

    mpihosts_of "$mpi" 2 sh -c '[ "$(hostname)" = h1 ] || export CT_INTERFACE=eth7; exec "$0"' "$CT_BUILD/bin/hello"
    expect "$mpi: rank 0 without that interface fails" [ "$code" -ne 0 ]
    expect "$mpi: and says why" has "$err" "CT_INTERFACE=eth7: this host has no interface of that name"

    CT_TIMEOUT_MS=700 mpihosts_of "$mpi" 2 sh -c '[ "$(hostname)" = h0 ] || exec sleep 2; exec "$0"' "$CT_BUILD/bin/hello"
    expect "$mpi: a rank that never calls is waited for till the deadline" has "$err" "not all ranks"

    mpicc_of "$mpi" -I"$CT_SOURCE/include" both.c -L"$CT_BUILD/lib" -lct -Wl,-rpath,"$CT_BUILD/lib" -o both 2>cc.err
    expect "$mpi: a program of both compiles" [ -x both ]
    if [[ $mpi != openmpi* ]]; then
        mpihosts_of "$mpi" 2 ./both
        expect "$mpi: MPI_Init() has taken the connection to the launcher" has "$err" "MPI_Init() took the only connection to the launcher"
        expect "$mpi: what to set instead is said" has "$err" "set MASTER_ADDR to rank 0's host and MASTER_PORT to a free port there"
        export MASTER_ADDR=h0 MASTER_PORT=29512
    fi
    mpihosts_of "$mpi" 2 ./both
    unset MASTER_ADDR MASTER_PORT
    expect "$mpi: a program that calls MPI_Init() first may use both, and init again" is "$(sort -u <<<"$out") $code" "libct 3, MPI 6 0"
    mpihosts_of "$mpi" 2 ./both late
    expect "$mpi: one that does not is told to" has "$err" "call MPI_Init() before ct_init_process_group()"
    rm -f both
done

# The default route of rank 0's host leads to a network where the other one is not.
${on[0]} sh -c 'ip link add d0 type veth peer name d1 && ip link set d1 up && ip addr add 10.99.0.1/24 dev d0 &&
    ip link set d0 up && ip route add default via 10.99.0.2'
for mpi in $mpis; do
    rm -f sent
    CT_TIMEOUT_MS=10000 mpihosts_of "$mpi" 2 ./toward0
    expect "$mpi: of several interfaces the one that is reached is taken" is "$code" 0
done
finish
