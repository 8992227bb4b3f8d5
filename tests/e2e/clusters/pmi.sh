# SPDX-License-Identifier: Apache-2.0
# MPI programs under ctrun: it serves PMI 1.1, by which ranks of the MPICH family find each other.
# tests/e2e/speaks_pmi.c speaks it as they do, without an MPI; scripts/interop-mpi runs real ones.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
export OMP_NUM_THREADS=1
pmi=$CT_BUILD/tests/e2e_speaks_pmi
done_by() { for ((i = 0; i < $1; i++)); do echo "rank $i of $1 is done"; done; }

# ---- Which programs get it
run --nproc-per-node=2 "$CT_BUILD/tests/e2e_linked_12"
expect "a program that is linked with libmpi.so.12 gets PMI" is "$code $out" "0 PMI
PMI"
run --nproc-per-node=2 --mpi=none "$CT_BUILD/tests/e2e_linked_12"
expect "not with --mpi=none" is "$code $out" "0 no PMI
no PMI"
run --nproc-per-node=2 "$CT_BUILD/tests/e2e_linked_40"
expect "one that is linked with Open MPI does not" is "$code $out" "0 no PMI
no PMI"
expect "and a line says what will happen" has "$err" "is linked with Open MPI, which finds no other ranks under ctrun"
expect "once" is "$(grep -c 'Open MPI' <<<"$err")" 1
run --nproc-per-node=2 --mpi=none "$CT_BUILD/tests/e2e_linked_40"
expect "which --mpi=none silences" is "$code $err" "0 "
run --nproc-per-node=2 "$pmi"
expect "a program without MPI does not" is "$code $out" "0 no PMI
no PMI"
CT_MPI=pmi run --nproc-per-node=1 "$pmi"
expect "unless it is asked for, here by CT_MPI" is "$code $out" "0 rank 0 of 1 is done"
run --mpi=pmix true
expect "a misspelt value is wrong usage" is "$code" 2
expect "and the right ones are listed" has "$err" "'pmix' (choose from 'auto', 'pmi', 'none')"
run --nproc-per-node=2 --mpi=pmi --dry-run "$pmi"
expect "--dry-run shows what they get" has "$out" "PMI_FD="
expect "and says that ctrun alone serves it" matches "$out" '# [^#]* serves PMI'

# ---- One node
run --nproc-per-node=4 --mpi=pmi "$pmi" exchange
expect "each rank reads what each has put" is "$code $(sorted "$out")" "0 $(done_by 4)"
run --nproc-per-node=3 --mpi=pmi "$pmi" exchange 1000 100
expect "hundred values of 1000 bytes each, too" is "$code $(sorted "$out")" "0 $(done_by 3)"
run --nproc-per-node=3 --mpi=pmi "$pmi" names
expect "names are published and found" is "$code $(sorted "$out")" "0 $(done_by 3)"
run --nproc-per-node=2 --mpi=pmi "$pmi" refused
expect "what can't be done is refused, and the ranks go on" is "$code $(sorted "$out")" "0 $(done_by 2)"
run --nproc-per-node=2 --mpi=pmi "$pmi" fill
expect "a rank that puts too much is refused" is "$code" 0
expect "and named" has "$err" "rank 1 has put more than 1024 KiB by PMI: the rest is refused"
run --nproc-per-node=2 --mpi=pmi --max-restarts=2 "$pmi" again 1
expect "a restart begins with an empty space" is "$code $(sorted "$out")" "0 $(done_by 2)"

run --nproc-per-node=4 --mpi=pmi "$pmi" abort 2 7
expect "MPI_Abort's code is ctrun's" is "$code" 7
expect "the failure names rank and abort" matches "$err" 'rank 2 \(pid [0-9]+\) failed first: it called MPI_Abort with code 7\. ctrun stopped ranks 0-1 and 3\.'
expect "and has its message" has "$err" "cause     : the ocean is dry"
run --nproc-per-node=3 --mpi=pmi --events=events "$pmi" leaves 1 0
expect "the events say what the exit code does not" matches "$(grep '"cause":"itself"' events)" '"rank":1,.*"code":0,.*"detail":"exited with code 0 without MPI_Finalize"'
run --nproc-per-node=2 --mpi=pmi "$pmi" abort 1 256
expect "a code that would be 0 is 1" is "$code" 1
run --nproc-per-node=2 --mpi=pmi --max-restarts=1 --restart=never-on:7 "$pmi" abort 1 7
expect "--restart knows that code" is "$code" 7
run --nproc-per-node=3 --mpi=pmi "$pmi" leaves 1 0
expect "exit 0 without MPI_Finalize is a failure" is "$code" 1
expect "with its rank" has "$err" "exited with code 0 without MPI_Finalize"
run --nproc-per-node=3 --mpi=pmi "$pmi" leaves 1 5
expect "another exit is as ever" is "$code" 5
run --nproc-per-node=3 --mpi=pmi "$pmi" obeys 2 5
expect "ranks that obey SIGTERM with exit 0 have not failed" has "$code $err" "<NO_OTHER_FAILURES>"
if command -v python3 >/dev/null; then # rank 2 never calls MPI_Init; only when rank 0 has failed, rank 1 waits for it
    cat >late.py <<'END'
import os, signal, sys, time
rank, fd = int(os.environ["RANK"]), int(os.environ["PMI_FD"])
def obey(*_):
    os.write(fd, b"cmd=barrier_in\n")
    time.sleep(0.5)
    os._exit(0)
if rank < 2:
    signal.signal(signal.SIGTERM, obey)
    os.write(fd, b"cmd=init pmi_version=1 pmi_subversion=1\n")
    os.read(fd, 4096)
    time.sleep(0.5 if rank == 0 else 100)
    sys.exit(3)
END
    run --no-python --nproc-per-node=3 --mpi=pmi python3 late.py
    expect "a fault that comes to light while ranks are stopped is not reported as a second failure" has "$code $err" "<NO_OTHER_FAILURES>"
fi
run --nproc-per-node=3 --mpi=pmi "$pmi" absent 1
expect "a rank that exits without MPI_Init leaves no job that hangs" is "$code" 1
expect "and is named" matches "$err" 'rank 1 \(pid [0-9]+\) failed first: it exited with code 0 while others wait for it in MPI'
run --nproc-per-node=3 --mpi=pmi "$pmi" garbage 1
expect "what is no request fails the job" is "$code" 1
expect "and names the rank" matches "$err" 'rank 1 \(pid [0-9]+\) failed first: it sent a line on PMI_FD that is not a PMI request'
expect "and has the words" has "$err" "GET / HTTP/1.1"
run --nproc-per-node=3 --mpi=pmi "$pmi" long 2
expect "so does a request without an end" has "$code $err" "1 ctrun: rank 2 (pid"
expect "which says so" has "$err" "no line ends within 4096 bytes"

# A rank that never reads its replies blocks itself: ctrun reads nothing more of it.
timeout 60 "$CTRUN" --nproc-per-node=2 --mpi=pmi --stall=1s "$pmi" flood 1 >out 2>err </dev/null &
within 30 grep -q 'has waited 1 s: rank 0 is in it, rank 1 is not' err
expect "the ranks that wait in the barrier, and those that others wait for, are reported after --stall" has "$(cat err)" "rank 0 is in it, rank 1 is not"
kill -TERM $!
wait $!
expect "and a rank that floods ctrun keeps it from nothing" is "$?" 143

# ---- Two nodes
# nodes WHAT...: one rank on node 0, two on node 1; $code0 $code1 $out $err
nodes() {
    local both
    new_port
    both="--nnodes=2 --master-addr=127.0.0.1 --master-port=$port --mpi=pmi ${options:-}"
    timeout 60 "$CTRUN" $both --node-rank=1 --nproc-per-node=2 "$pmi" "$@" >out1 2>err1 </dev/null &
    timeout 60 "$CTRUN" $both --node-rank=0 --nproc-per-node=1 "$pmi" "$@" >out0 2>err0 </dev/null
    code0=$?
    wait $!
    code1=$?
    out=$(cat out0 out1) err=$(cat err0 err1) code="$code0 $code1"
}
nodes exchange
expect "the ranks of two nodes read what each has put" is "$code $(sorted "$out")" "0 0 $(done_by 3)"
nodes exchange 1000 300
expect "300 values of 1000 bytes each, too" is "$code $(sorted "$out")" "0 0 $(done_by 3)"
nodes mapping
expect "they know which ranks share a node" is "$(grep -c '(vector,(0,1,1),(1,1,2))' <<<"$out")" 3
nodes abort 2 7
expect "an abort on node 1 stops both" is "$code" "7 7"
expect "and node 0 names it" matches "$(cat err0)" 'node 1 \([a-z0-9.-]+\): rank 2 \(pid [0-9]+\) called MPI_Abort with code 7'
nodes absent 0
expect "a rank that others of another node wait for, and that has exited, hangs none" is "$code" "1 1"
expect "and is named" has "$(cat err1)" "rank 0 exited with code 0, and ranks of this node wait for it in MPI"
options=--max-restarts=1 nodes again 2
expect "all nodes start again with an empty space" is "$code $(sorted "$out")" "0 0 $(done_by 3)"
options=--max-restarts=1 nodes absent 0
expect "--max-restarts takes such an exit for a failure" has "$(cat err0)" "restart 1 of 1"
nodes refused
expect "spawns are refused there, too" is "$code" "0 0"

finish
