# SPDX-License-Identifier: Apache-2.0
# ulimit -f: what may not grow is said, and nobody dies of SIGXFSZ.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
demo=$CT_BUILD/bin/demo

limited() { # KIB WORDS...: as run, with that limit
    local kib=$1
    shift
    (ulimit -f "$kib" && exec timeout 120 "$CTRUN" "$@") >.out 2>.err </dev/null
    code=$?
    out=$(cat .out)
    err=$(cat .err)
}

limited 100 --nproc-per-node=2 "$demo"
expect "ranks that may share no memory work without" is "$code" 0
CT_LOG=warn limited 100 --nproc-per-node=2 "$demo"
expect "and say why, on demand" matches "$err" 'no shared memory \(shared memory is a file, and this process may not have a file of [0-9]+ bytes \(ulimit -f is 100 KiB\)\)'
limited 4 --nproc-per-node=2 "$demo"
expect "without room for a page each it is an error of init" has "$out$err" "the control page: "
expect "nobody dies of a signal" lacks "$err" SIGXFSZ
expect "and nothing is left of it" is "$(ls "$TMPDIR")" ""

limited 100 --trace=run.json --nproc-per-node=2 touch ran
expect "a trace that may have no memory is refused" is "$code" 1
expect "with both limits" matches "$err" '--trace=run.json, --trace-size: shared memory is a file, and this process may not have a file of [0-9]+ bytes \(ulimit -f is 100 KiB\)'
expect "before anything runs" [ ! -e ran ]
limited 100 --trace=run.json --trace-size=90k --max-restarts=20 --nproc-per-node=2 \
    sh -c "$demo >>/dev/null 2>&1; exit \$((TORCHELASTIC_RESTART_COUNT < 20))"
expect "a file of the trace that may not grow ends the trace, not the job" is "$code" 0
expect "with a sentence" has "$err" "ulimit -f is 100 KiB); the rest of the trace is lost, but the job continues"
expect "it is whole" is "$(tail -n 1 run.json)" '],"displayTimeUnit":"ns"}'

limited 8 --nproc-per-node=1 sh -c 'head -c 20000 /dev/zero >zeros'
expect "workers get the signal as ever" is "$code" 153
finish
