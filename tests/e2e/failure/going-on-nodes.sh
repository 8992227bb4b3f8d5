# SPDX-License-Identifier: Apache-2.0
# --on-failure=continue on two nodes, of which one is lost; and who is told when the ctrun
# that hosts a dynamic rendezvous, or just another node's, has to go.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
export OMP_NUM_THREADS=1

# pair "OPTIONS" "PROGRAM OF NODE 0" "PROGRAM OF NODE 1": $code is node 0's;
# the programs see both folders.
pair() {
    new_port
    local both="--nnodes=2 --master-addr=127.0.0.1 --master-port=$port $1"
    timeout 120 "$CTRUN" $both --node-rank=1 --nproc-per-node=2 sh -c "$3" >out1 2>err1 </dev/null &
    timeout 120 "$CTRUN" $both --node-rank=0 --nproc-per-node=1 sh -c "$2" >out0 2>err0 </dev/null
    code=$?
    wait $!
    out=$(cat out0) err=$(cat err0)
}

lost='until grep -q "node 1 (.*): its ctrun was lost" err0; do sleep 0.02; done;'
seen='until grep -q "exited with code 5" err1; do sleep 0.02; done;'

pair --on-failure=continue:1 "$lost sleep 0.3; echo done" \
    "test \$LOCAL_RANK = 1 && exit 5; $seen sleep 0.1; kill -KILL \$PPID; sleep 50"
expect "a lost node's workers are counted once" is "$code $out" "0 done"

pair "--on-failure=continue:1 --max-restarts=1" \
    "echo a\$TORCHELASTIC_RESTART_COUNT; test \$TORCHELASTIC_RESTART_COUNT = 1 && exit 0; $lost exit 3" \
    'kill -KILL $PPID; sleep 50'
expect "and there is no restart without it" is "$code $out" "1 a0"

pair --on-failure=continue:1 "$seen echo done" "test \$LOCAL_RANK = 1 && exit 5; $seen echo done"
expect "a worker that is lost on one node is forgiven on both" is "$code $out $(cat out1)" "0 done done"
expect "the other node says that its own went on" matches "$err" 'node 1 \([^ ]+\): rank 2 \(pid [0-9]+\) exited with code 5; the others continued, and the job succeeded without it'
expect "and not that they were stopped" lacks "$err" stopped

# member NAME LAST-OF-ADDRESS OPTIONS... -- PROGRAM, in the background: $! is its ctrun
member() {
    local name=$1 address=127.0.0.$2
    shift 2
    "$CTRUN" --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:$port --rdzv-id=job --nproc-per-node=1 \
        --rdzv-conf=last_call_timeout=1 --local-addr=$address "$@" >out.$name 2>err.$name </dev/null &
}

new_port
member host 2 --nnodes=2 sh -c 'touch said.host; sleep 50'
host=$!
within 30 answers
member guest 3 --nnodes=2 sh -c 'touch said.guest; sleep 50'
guest=$!
within 30 test -e said.host -a -e said.guest
kill -TERM $host
wait $host
code=$?
wait $guest
code="$code $?" err=$(cat err.host err.guest)
expect "a host that is told to stop ends the job on all nodes" is "$code" "143 143"
expect "and they say why" matches "$err" "node 127.0.0.2 \(pid [0-9]+\): its ctrun was told to stop by SIGTERM"

rm -f said.*
new_port
member host 2 --nnodes=2 sh -c 'touch said.host; sleep 50'
host=$!
within 30 answers
member guest 3 --nnodes=2 sh -c 'exit 0'
guest=$!
within 30 test -e said.host
sleep 0.3 # the guest's worker ends; either way the answer is the same
kill -KILL $host
wait $guest
code=$? err=$(cat err.guest)
expect "a host that dies while a node waits for its workers is a failure" is "$code" 1
expect "with a sentence" has "$err" "the coordinator at 127.0.0.1 port $port was lost"

rm -f said.*
new_port
member host 2 --nnodes=1:2 sh -c 'echo $WORLD_SIZE; touch said.host.$WORLD_SIZE; until test -e said.end; do sleep 0.05; done'
host=$!
within 30 test -e said.host.1
member guest 3 --nnodes=1:2 sh -c 'touch said.guest; sleep 50'
guest=$!
within 30 test -e said.host.2 -a -e said.guest
rm -f said.host.1
kill -KILL $guest
within 60 test -e said.host.1 # a heartbeat of 5 s is missed three times
touch said.end
wait $host
code=$? out=$(tr '\n' ' ' <out.host) err=$(cat err.host)
expect "nodes come and go" is "$code $out" "0 1 2 1 "
expect "each new beginning is said: who came" matches "$err" 'node 127.0.0.3 \(pid [0-9]+\) has come; the workers here start again, 2 in all'
expect "and who left" matches "$err" 'node 127.0.0.3 \(pid [0-9]+\): its ctrun was lost: its connection was closed; the workers here start again, 1 in all'
finish
