# SPDX-License-Identifier: Apache-2.0
# A Slurm whose nodes' names do not resolve: ctrun and libct use the address that Slurm knows.  If Slurm knows no
# address, a line says what they wait for and what would help.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/slurm.sh"
trap 'no_hosts; cd /; rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
slurm || { echo "skipped: a Slurm needs slurm-wlm, munge and root"; exit 77; }
no_names || { echo "skipped: no right to mount"; exit 77; }
login=${on[0]}
PATH=$CT_BUILD/bin:$PATH
cp "$CT_BUILD/bin/hello" .

on_login() {
    timeout 60 $login "$@" >.out 2>.err </dev/null
    code=$? out=$(cat .out) err=$(cat .err)
}
ranks() { for ((r = 0; r < $1; r++)); do echo "rank $r of $1: the sum is $(($1 * ($1 + 1) / 2))"; done; }

on_login getent hosts h1
expect "a node's name does not resolve" is "$code" 2
on_login srun -N2 --ntasks-per-node=2 ./hello
expect "srun ./app finds rank 0 by the address that Slurm knows" is "$code $(sorted "$out")" "0 $(ranks 4)"
on_login srun -N2 --mpi=pmi2 --ntasks-per-node=2 ./hello
expect "and by PMI, which needs no names" is "$code $(sorted "$out")" "0 $(ranks 4)"
on_login srun -N2 ctrun --nproc-per-node=2 ./hello
expect "srun ctrun ./app finds node 0" is "$code $(sorted "$out")" "0 $(ranks 4)"
expect "and warns of no name" lacks "$err" resolve
on_login salloc -N2 --ntasks-per-node=2 ctrun ./hello
expect "so does ctrun in a batch script" is "$code $(sorted "$out")" "0 $(ranks 4)"
on_login salloc -N2 ctrun --nnodes=1:2 --nproc-per-node=2 --rdzv-backend=c10d ./hello
expect "an elastic job, too" is "$code $(sorted "$out")" "0 $(ranks 4)"

# A container without scontrol.
mkdir bin
printf '#!/bin/sh\nexit 127\n' >bin/scontrol
chmod +x bin/scontrol
PATH=$work/bin:$PATH CT_TIMEOUT_MS=7000 on_login srun -N2 ./hello
expect "without scontrol a rank does not wait in silence: the name" has "$err" \
    "rank 1: rank 0's host, h1, does not resolve, and scontrol gives no other address of it; srun --mpi=pmi2 works without names"
expect "and after 5 s what is awaited" matches "$err" "rank 1: waiting 5 s for the name h1 to resolve: [^;]+; does this host know it"
PATH=$work/bin:$PATH on_login srun -N2 ctrun --rdzv-conf=timeout=7 ./hello
expect "nor does a ctrun: the name" has "$err" \
    "ctrun: node 0's host, h1, does not resolve, and scontrol gives no other address of it: --master-addr=ADDRESS, the same on all nodes, names one"
expect "and after 5 s node 0" matches "$err" "ctrun: waiting [0-9]+ s for node 0: the name h1 does not resolve: [^;]+; was it started, and does --master-addr name its host"
finish
