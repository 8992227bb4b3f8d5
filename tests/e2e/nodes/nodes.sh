# SPDX-License-Identifier: Apache-2.0
# Two ctruns make one job: rounds begin and end on both, the first failure stops
# both with its code, and who does not fit is told why.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
export OMP_NUM_THREADS=1

# nodes "OPTIONS OF BOTH" "PROGRAM OF NODE 0" "PROGRAM OF NODE 1": $code0 $code1 $out $err
nodes() {
    new_port
    local both="--nnodes=2 --master-addr=127.0.0.1 --master-port=$port $1"
    timeout 120 "$CTRUN" $both --node-rank=1 --nproc-per-node=2 sh -c "$3" >out1 2>err1 </dev/null &
    timeout 120 "$CTRUN" $both --node-rank=0 --nproc-per-node=1 sh -c "$2" >out0 2>err0 </dev/null
    code0=$?
    wait $!
    code1=$?
    out=$(cat out0 out1) err=$(cat err0 err1) code="$code0 $code1"
}

show='echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $TORCHELASTIC_RESTART_COUNT'
nodes "" "$show" "$show"
expect "both succeed" is "$code" "0 0"
expect "ranks are counted over the nodes" is "$(sorted "$out")" "0/3 0/1 0/2 0
1/3 0/2 1/2 0
2/3 1/2 1/2 0"

nodes "" 'echo $CT_GENERATION $MASTER_PORT' 'echo $CT_GENERATION $MASTER_PORT'
expect "one generation, one store" is "$(sort -u <<<"$out" | wc -l)" 1

nodes "" 'sleep 50' 'test $RANK = 2 && exit 7; sleep 50'
expect "a failure on node 1 is the job's code" is "$code" "7 7"
expect "node 0 names it" matches "$(cat err0)" "node 1 \([^ ]+\): rank 2 \(pid"
expect "and so does node 1" matches "$(cat err1)" 'rank 2 \(pid [0-9]+, local rank 1\) failed first: it exited with code 7'

nodes "" 'exit 9' 'sleep 50'
expect "and so is one on node 0" is "$code" "9 9"

nodes "--max-restarts=2" "$show" "test \$RANK = 2 -a \$TORCHELASTIC_RESTART_COUNT = 0 && exit 5; sleep 0.2; $show"
expect "all nodes start again together" is "$code" "0 0"
expect "in the second round" has "$(cat out0)" "0/3 0/1 0/2 1"
expect "which is said" has "$(cat err1)" "restart 1 of 2"

nodes "" 'sleep 50' 'kill -TERM $PPID; sleep 50'
expect "a signal to one ctrun stops both" is "$code" "143 143"

nodes "" 'sleep 50' 'kill -KILL $PPID; sleep 50'
expect "a ctrun that dies fails the job" is "$code" "1 137"
expect "with a sentence" matches "$(cat err0)" "node 1 \([^ ]+\): its ctrun was lost"

nodes "" 'kill -KILL $PPID; sleep 50' 'sleep 50'
expect "and so does node 0's" is "$code" "137 1"
expect "with a sentence too" matches "$(cat err1)" 'node 0 at 127.0.0.1 port [0-9]+ was lost'

nodes "" 'true' 'cannot'
expect "127 is 127 everywhere" is "$code" "127 127"

# A ctrun that is stopped (SIGSTOP) answers nobody, but its connection stands.
cat >freeze <<'END'
[ "$RANK" = 1 ] && kill -STOP $PPID && echo $PPID >frozen
within=0; until [ -s frozen ] || [ $((within += 1)) -gt 500 ]; do sleep 0.02; done
[ "$RANK" = 0 ] && exit 3
sleep 50
END
new_port
both="--nnodes=2 --master-addr=127.0.0.1 --master-port=$port --shutdown-timeout=20" # so that its silence is noticed first
timeout 120 "$CTRUN" $both --node-rank=1 bash freeze >out1 2>err1 </dev/null &
start=$SECONDS
run $both --node-rank=0 bash freeze
expect "a frozen node is given up, and goes before an exit that it may have caused" is "$code" 1
expect "within the grace and some seconds" test $((SECONDS - start)) -le 60
expect "and named" matches "$err" "node 1 \([^ ]+\): its ctrun was lost: it has not answered for 5 s"
kill -KILL $(cat frozen)
wait $!

# Nodes that do not fit: node 0 waits on, so it is stopped by hand.
misfit() {
    local words=$1
    new_port
    timeout 120 "$CTRUN" --nnodes=2 --master-addr=127.0.0.1 --master-port=$port true >out0 2>err0 </dev/null &
    run --master-addr=127.0.0.1 --master-port=$port "${@:2}" true
    kill -TERM $!
    wait $!
    expect "refused: $words" is "$code" 1
    expect "  the node knows why" has "$err" "node 0 refused this node"
    expect "  saying so once" is "$(grep -c -e "$words" <<<"$err")" 1
}
misfit "--nnodes=3, node 0 has --nnodes=2" --nnodes=3 --node-rank=1
misfit "--rdzv-id=b, node 0 has --rdzv-id=none" --nnodes=2 --node-rank=1 --rdzv-id=b

# An address that is another's, 192.0.2.1 (RFC 5737): a wrong --node-rank, or one that is translated to ours.
new_port
"$CTRUN" --nnodes=2 --master-addr=192.0.2.1 --master-port=$port true >out0 2>err0 </dev/null &
within 20 grep -q waiting err0
kill -TERM $!
wait $!
err=$(cat err0)
expect "node 0 says that --master-addr is not its own" has "$err" "192.0.2.1 is not an address of this host: the store listens on all interfaces, port $port"
expect "  and what may be wrong" has "$err" "is --node-rank=0 right?"
expect "  and waits where it is" matches "$err" "waiting [0-9]+ s: 1/2 nodes are here, at all interfaces port $port; missing --node-rank 1; 192.0.2.1 is not an address of this host"

new_port
both="--nnodes=2 --master-port=$port"
listens() { awk -v at="$(printf "%s:%04X" "$1" "$port")" '$2 == at && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6; }
"$CTRUN" $both --node-rank=0 --master-addr=192.0.2.1 --local-addr=127.0.0.1 true >out0 2>err0 </dev/null &
expect "with --local-addr it listens there" within 10 listens 0100007F
run $both --node-rank=1 --master-addr=127.0.0.1 true
wait $!
expect "  and the nodes meet" is "$code $?" "0 0"
expect "  and nothing is said but that there is no secret" is "$(grep -v 'no job secret' err0)" ""
finish
