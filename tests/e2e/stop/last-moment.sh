# SPDX-License-Identifier: Apache-2.0
# A node that comes to an elastic job as the job ends takes part, or ends with the job's code and says that it did not.
# The coordinator is stopped meanwhile, so that it finds the end of its worker and the newcomer at the same moment.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
export OMP_NUM_THREADS=1
trap 'kill ${first:-} ${second:-} 2>/dev/null; no_hosts; cd /; rm -rf "$work"' EXIT
conf=--rdzv-conf=join_timeout=30,last_call_timeout=0
at=127.0.0.1

connected() { ${on[1]:-} ss -Htn state established 'dport = :29531' | grep -q .; }
stopped() { grep -q '^State:.T' "/proc/$1/status"; }
gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"; }

mkfifo go
moment() {
    local options="--nnodes=1:2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-id=x --rdzv-endpoint=$at:29531" coordinator one two
    rm -f began
    ${on[0]:-} timeout -k 5 60 "$CTRUN" $options $conf,is_host=1 sh -c 'test -e began && exit 7; echo $$ >began; read line <go; exit 7' >first.out 2>first.err &
    first=$!
    within 20 test -s began
    coordinator=$(pgrep -P $first)
    kill -STOP "$coordinator"
    within 10 stopped "$coordinator"
    ${on[1]:-} timeout -k 5 60 "$CTRUN" $options $conf,is_host=0 sh -c 'exit 7' >second.out 2>second.err &
    second=$!
    within 20 connected
    echo go >go
    within 10 gone "$(cat began)"
    kill -CONT "$coordinator"
    wait $first; one=$?
    wait $second; two=$?
    err=$(cat second.err) code=$two
    expect "both end with the job's code ($1)" is "$one $two" "7 7"
    expect "and the newcomer took part, or says that it did not ($1)" \
        matches "$err" "exited with code 7|the job at $at port 29531 ended before this node could take part|node "
}
for try in 1 2 3 4 5 6 7 8 9 10; do moment $try; done
if hosts 2; then # there the newcomer has a secret to prove first
    export CT_STORE_SECRET=0123456789abcdef0123456789abcdef
    at=10.77.0.1
    for try in 1 2 3; do moment "from another host, $try"; done

    # A node does not take an unplugged cable for the end of the job, even if node 0 had answered before.
    options="--nnodes=2:2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-id=x --rdzv-endpoint=$at:29532"
    ${on[0]} timeout -k 5 60 "$CTRUN" $options $conf,is_host=1 true >first.out 2>first.err &
    first=$!
    listens() { ${on[0]} ss -Hltn 'sport = :29532' | grep -q .; }
    within 20 listens
    kill -STOP "$(pgrep -P $first)"
    ${on[1]} timeout -k 5 60 "$CTRUN" $options $conf,is_host=0 true >second.out 2>second.err &
    second=$!
    meets() { ${on[1]} ss -Htn state established 'dport = :29532' | grep -q .; }
    within 20 meets
    unplug 1
    sleep 6
    plug 1
    kill -CONT "$(pgrep -P $first)"
    wait $second; code=$? err=$(cat second.err)
    expect "a node whose cable was out for 6 s takes part" is "$code" 0
    wait $first
fi
first= second=
finish
