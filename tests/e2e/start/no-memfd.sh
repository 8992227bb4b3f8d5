# SPDX-License-Identifier: Apache-2.0
# Jobs also run where memfd_create() is missing: the ranks of a host exchange messages over sockets, the control page is
# an unlinked file, and lines say so.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
sandbox=$CT_BUILD/tests/e2e_no_memfd hello=$CT_BUILD/bin/hello
"$sandbox" true || { echo "skipped: no seccomp"; exit 77; }
there() {
    timeout 120 "$sandbox" "$@" >.out 2>.err </dev/null
    code=$? out=$(cat .out) err=$(cat .err)
}
three='rank 0 of 3: the sum is 6
rank 1 of 3: the sum is 6
rank 2 of 3: the sum is 6'

there "$CTRUN" --nproc-per-node=3 "$hello"
expect "ctrun's job runs" is "$code $(sorted "$out")" "0 $three"
expect "and ctrun says what is missing" matches "$err" "ctrun: there is no memfd_create\(\) here \(Function not implemented\): ct-control is a file in /dev/shm"
CT_LOG=warn there "$CTRUN" --nproc-per-node=3 "$hello"
expect "the ranks say that they use sockets" matches "$err" "no shared memory \([^)]*Function not implemented\); the ranks of this host use sockets"
CT_LINK=tcp there "$CTRUN" --nproc-per-node=3 --trace=trace.json "$hello"
expect "over TCP, and with a trace" is "$code $(sorted "$out")" "0 $three"
there "$CTRUN" --nproc-per-node=2 sh -c 'test $RANK = 1 && exit 3; exec sleep 60'
expect "a failure ends it" is "$code" 3
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29533 WORLD_SIZE=3
there sh -c "for RANK in 0 1 2; do export RANK; $hello & done; wait"
expect "so do ranks without ctrun" is "$code $(sorted "$out")" "0 $three"
expect "nothing is left" [ -z "$(find /dev/shm -maxdepth 1 -name 'ct-control.*')" ]
finish
