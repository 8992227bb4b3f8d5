# SPDX-License-Identifier: Apache-2.0
# A node that comes to an elastic job as the job ends takes part, or ends with the job's code and says that it did not.
# The coordinator is stopped meanwhile, so that it finds the end of its worker and the newcomer at the same moment.
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
trap 'kill ${first:-} ${second:-} 2>/dev/null; cd /; rm -rf "$work"' EXIT
options="--nnodes=1:2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-id=x --rdzv-endpoint=127.0.0.1:29531"
conf=--rdzv-conf=join_timeout=30,last_call_timeout=0

connected() { ss -Htn state established 'dport = :29531' | grep -q .; }
stopped() { grep -q '^State:.T' "/proc/$1/status"; }
gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"; }

mkfifo go
for try in 1 2 3 4 5 6 7 8 9 10; do
    rm -f began
    timeout -k 5 60 "$CTRUN" $options $conf,is_host=1 sh -c 'test -e began && exit 7; echo $$ >began; read line <go; exit 7' >first.out 2>first.err &
    first=$!
    within 20 test -s began
    coordinator=$(pgrep -P $first)
    kill -STOP "$coordinator"
    within 10 stopped "$coordinator"
    timeout -k 5 60 "$CTRUN" $options $conf,is_host=0 sh -c 'exit 7' >second.out 2>second.err &
    second=$!
    within 20 connected
    echo go >go
    within 10 gone "$(cat began)"
    kill -CONT "$coordinator"
    wait $first; one=$?
    wait $second; two=$?
    err=$(cat second.err) code=$two
    expect "both end with the job's code ($try)" is "$one $two" "7 7"
    expect "and the newcomer took part, or says that it did not ($try)" \
        matches "$err" "exited with code 7|the job at 127.0.0.1 port 29531 ended before this node could take part|node "
done
first= second=
finish
