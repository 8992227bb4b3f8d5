# SPDX-License-Identifier: Apache-2.0
# Jobs run as on Linux 4.18, also without memfd_create(): each call that is missing has another way, and a line says so.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1 XDG_STATE_HOME=$work/state
sandbox=$CT_BUILD/tests/e2e_old_kernel hello=$CT_BUILD/bin/hello CTCTL=$CT_BUILD/bin/ctctl
"$sandbox" true || { echo "skipped: no seccomp"; exit 77; }
there() {
    timeout 120 "$sandbox" "$@" >.out 2>.err </dev/null
    code=$? out=$(cat .out) err=$(cat .err)
}
three='rank 0 of 3: the sum is 6
rank 1 of 3: the sum is 6
rank 2 of 3: the sum is 6'

# ---- A job, and what its lines say
there "$CTRUN" --nproc-per-node=3 "$hello"
expect "a job runs" is "$code $(sorted "$out")" "0 $three"
expect "ctrun says where its memory is" matches "$err" "ctrun: memfd_create\(\) fails here \(Function not implemented\): ct-control is a file in /dev/shm"
CT_LOG=info there "$CTRUN" --nproc-per-node=3 "$hello"
expect "the ranks share a file" matches "$err" "rank [0-2]: memfd_create\(\) fails here \(Function not implemented\): ct is a file in /dev/shm"
expect "and use no sockets" lacks "$err" "use sockets"
expect "a line says that pidfds are missing" matches "$err" "ctrun: pidfd_open\(\) fails here \(Function not implemented\): deaths are noticed"
CT_LINK=tcp there "$CTRUN" --nproc-per-node=3 --trace=trace.json "$hello"
expect "over TCP, and with a trace" is "$code $(sorted "$out")" "0 $three"
exec 7</dev/null
there "$CTRUN" --nproc-per-node=1 sh -c 'test -e /proc/self/fd/7 && echo inherited; exit 0'
exec 7<&-
expect "a worker inherits no other descriptor" is "$code $out" "0 "

# ---- Collectives in shared memory, with regions and without
there "$CTRUN" --nproc-per-node=4 "$CT_BUILD/bin/ct_bench" --check --sizes=8,64K,1M --time=10 --ops=all_reduce,broadcast,all_gather,all_to_all,reduce_scatter
expect "collectives are right" is "$code" 0
there "$CTRUN" --nproc-per-node=2 "$CT_BUILD/bin/ct_bench" --check --memory=ct --sizes=8,1M --time=10 --ops=all_reduce
expect "and those in memory of ct_mem_alloc()" is "$code" 0
# In folders with too little room, a rank gets an error or uses sockets, and is never killed by SIGBUS.
small() { # SIZE COMMAND...
    local size=$1
    shift
    there unshare -m sh -c 'mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && for folder in /dev/shm "$TMPDIR"; do mount -t tmpfs -o size=$0 none "$folder" || exit; done; exec "$@"' "$size" "$@"
}
if unshare -m true 2>/dev/null; then
    for size in 1m 3m 8m 40m; do
        small $size "$CTRUN" --nproc-per-node=3 "$CT_BUILD/bin/ct_bench" --check --sizes=8,4M --time=10 --ops=all_reduce
        expect "collectives are right with $size of memory in files" is "$code" 0
    done
    CT_LOG=warn small 1m "$CTRUN" --nproc-per-node=3 "$hello"
    expect "where the file has no room, the ranks use sockets" matches "$err" "no shared memory \(.*\); the ranks of this host use sockets"
    small 40m "$CTRUN" --nproc-per-node=2 "$CT_BUILD/bin/ct_bench" --memory=ct --sizes=64M --ops=all_reduce
    expect "memory that is not there is an error" matches "$code $err$out" "^1 .*bytes of shared memory: No space left on device"
fi

# ---- Failures and stops
there "$CTRUN" --nproc-per-node=3 sh -c 'test $RANK = 1 && { sleep 0.3; exit 3; }; exec sleep 60'
expect "a failure ends the job" is "$code" 3
expect "and the first failure is named" has "$err" "rank 1"
there bash "$CT_SOURCE/tests/e2e/failure/deaths.sh"
expect "survivors are told of a death in each call, with ctrun and without" is "$code" 0
"$sandbox" "$CTRUN" --nproc-per-node=2 sh -c 'echo $$ >>up; exec sleep 60' >.out 2>.err </dev/null &
job=$!
within 30 lines_in 2 up
# ctrun waits without using the processor.
used() { awk '{ print $14 + $15 }' "/proc/$job/stat"; }
before=$(used)
sleep 1
expect "ctrun sleeps while its workers run" [ $(($(used) - before)) -le 5 ]
kill -TERM $job
wait $job
expect "SIGTERM stops it" is $? 143
for worker in $(<up); do expect "its worker is gone" eval "! alive $worker"; done

# ---- In the background
there "$CTRUN" --detach --nproc-per-node=2 sh -c 'echo rank $RANK; exit $((RANK * 7))'
expect "--detach prints a pid" matches "$out" '^[0-9]+$'
there "$CTCTL" wait "$out"
expect "and ctctl gets the exit code" is "$code" 7

# ---- Several hosts by a command for ssh
printf '#!/bin/sh\nwhile [ "$1" != h1 ] && [ "$1" != h2 ]; do shift; done\nshift\nexec sh -c "$*"\n' >ssh.sh
chmod +x ssh.sh
there "$CTRUN" --hosts=h1,h2 --master-addr=127.0.0.1 --ssh="$PWD/ssh.sh" sh -c 'exit $((RANK * 5))'
expect "the exit code comes from a ctrun behind ssh" is "$code" 5

# ---- Without ctrun
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29533 WORLD_SIZE=3
there sh -c "for RANK in 0 1 2; do export RANK; $hello & done; wait"
expect "ranks without ctrun" is "$code $(sorted "$out")" "0 $three"
unset MASTER_ADDR MASTER_PORT WORLD_SIZE
for test in spawn shrink; do
    there "$CT_BUILD/tests/test_$test"
    expect "the unit test $test" is "$code" 0
done
expect "nothing is left" [ -z "$(find /dev/shm -maxdepth 1 \( -name 'ct-control.*' -o -name 'ct.??????' \))" ]
finish
