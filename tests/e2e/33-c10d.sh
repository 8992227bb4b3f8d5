# SPDX-License-Identifier: Apache-2.0
# Nodes that meet by c10d, on one host: ranks, restarts of all, nodes that come,
# go, wait and die.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
export OMP_NUM_THREADS=1
trap 'kill_agents; cd /; rm -rf "$work"' EXIT

# What a worker is, in a line.
show='echo $RANK/$WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $ROLE_NAME $ROLE_RANK/$ROLE_WORLD_SIZE $TORCHELASTIC_RESTART_COUNT'
# Its line in its node's file, and then it stays until the file `over` is there.
cat >stay <<'END'
echo "$RANK/$WORLD_SIZE $MASTER_ADDR:$MASTER_PORT $TORCHELASTIC_RESTART_COUNT" >>$1.ranks
echo $$ >>$1.workers
until [ -e over ]; do sleep 0.05; done
END
# in_world NODES SIZE: the newest line of each node is of a world of SIZE
in_world() {
    local node
    for node in $1; do
        [[ $(tail -n 1 "$node.ranks" 2>/dev/null) == */"$2 "* ]] || return 1
    done
}
masters() { local node; for node in $1; do tail -n 1 "$node.ranks" | cut -d' ' -f2; done | sort -u | wc -l; }
fresh() { kill_agents; rm -f over ./*.ranks ./*.workers; new_job; }
quick="--rdzv-conf=last_call_timeout=1,keep_alive_interval=1"

# One that waits beside all that follows, in the last call.
new_job
timeout 120 "$CTRUN" $meet --nnodes=1:4 --local-addr=127.0.0.2 --rdzv-conf=last_call_timeout=9 true 2>patient.err &
patient=$!

# The order is the addresses', whoever came first.
fresh
agent B --nnodes=2 --local-addr=127.0.0.3 sh -c "$show; echo \$MASTER_ADDR:\$MASTER_PORT"
agent A --nnodes=2 --local-addr=127.0.0.2 sh -c "$show; echo \$MASTER_ADDR:\$MASTER_PORT"
ended B
expect "two nodes: one ends" is "$code" 0
second=$out
ended A
expect "so does the other" is "$code" 0
expect "the lower address has rank 0" is "$(head -n 1 <<<"$out")" "0/2 0/2 default 0/2 0"
expect "the higher one rank 1" is "$(head -n 1 <<<"$second")" "1/2 1/2 default 1/2 0"
expect "both have one master" is "$(tail -n 1 <<<"$out")" "$(tail -n 1 <<<"$second")"
expect "at rank 0's address" has "$out" "127.0.0.2:"

fresh
agent A --nnodes=2 --local-addr=127.0.0.2 --nproc-per-node=2 sh -c "$show"
agent B --nnodes=2 --local-addr=127.0.0.3 --role=zeta sh -c "$show"
ended A
all=$out
ended B
expect "uneven nodes and roles" is "$(sorted "$all
$out")" "0/3 0/2 default 0/2 0
1/3 0/2 default 1/2 0
2/3 1/2 zeta 0/1 0"

# A failure on one node starts both again; only the one that failed has a restart less.
fresh
agent A --nnodes=2 --local-addr=127.0.0.2 --max-restarts=2 sh -c "$show; until [ -e B.once ]; do sleep 0.05; done; test \$TORCHELASTIC_RESTART_COUNT = 1 || exit 5; until [ -e B.again ]; do sleep 0.05; done"
agent B --nnodes=2 --local-addr=127.0.0.3 --max-restarts=2 sh -c "$show; [ -e B.once ] || { touch B.once; sleep 50; }; touch B.again"
ended A
expect "a node that failed once succeeds" is "$code" 0
expect "with its own restart counted" is "$out" "0/2 0/2 default 0/2 0
0/2 0/2 default 0/2 1"
ended B
expect "and the other one too" is "$code" 0
expect "started again without a failure of its own" is "$out" "1/2 1/2 default 1/2 0
1/2 1/2 default 1/2 0"

# One fails for good while the other is done.
fresh
agent A --nnodes=2 --local-addr=127.0.0.2 sh -c 'until [ -e B.failed ]; do sleep 0.05; done; sleep 0.5'
agent B --nnodes=2 --local-addr=127.0.0.3 sh -c 'touch B.failed; exit 7'
ended B
expect "a node that failed ends" is "$code" 7
ended A
expect "one whose workers are done doesn't wait for it" [ "$code" != hangs ]

# A job that has ended stays so: its store is another ctrun's here.
meet=
agent store sh -c 'echo $MASTER_PORT >port.new && mv port.new port; until [ -e store.over ]; do sleep 0.05; done'
within 30 test -e port
meet="--rdzv-backend=c10d --rdzv-endpoint=localhost:$(cat port) --rdzv-id=foreign"
agent A --nnodes=1 --local-addr=127.0.0.2 sh -c "$show"
ended A
expect "a job at a store that is nobody's of its nodes" is "$code $out" "0 0/1 0/1 default 0/1 0"
agent A --nnodes=1 --local-addr=127.0.0.2 sh -c "$show"
ended A
expect "a second one of that name is refused" is "$code" 1
expect "with a sentence" has "$err" "is over"
expect "and starts no worker" is "$out" ""
touch store.over

# Nodes that come.
for newcomer in 127.0.0.1 127.0.0.4; do
    fresh
    agent A --nnodes=1:3 --local-addr=127.0.0.2 $quick --nproc-per-node=2 bash stay A
    within 30 lines_in 2 A.ranks
    expect "one node is a job when the last call is over" in_world A 2
    agent C --nnodes=1:3 --local-addr=$newcomer $quick bash stay C
    expect "$newcomer comes, and all have a new world" within 30 in_world "A C" 3
    expect "of one master" is "$(masters "A C")" 1
    expect "in which nobody is charged with a restart" is "$(cat ./*.ranks | cut -d' ' -f3 | sort -u)" 0
    touch over
    ended A
    expect "A ends well" is "$code" 0
    ended C
    expect "and so does who came" is "$code" 0
done

# Nodes that die.
fresh
host A --nnodes=1:2 --local-addr=127.0.0.2 $quick bash stay A
agent B --nnodes=1:2 --local-addr=127.0.0.3 $quick bash stay B
expect "two nodes" within 30 in_world "A B" 2
killed B
expect "one is killed: the other goes on alone" within 30 in_world A 1
expect "and no worker of the dead one is left" within 30 dead "$(cat B.workers)"
touch over
ended A
expect "to a good end" is "$code" 0

fresh
host A --nnodes=2 --local-addr=127.0.0.2 $quick,join_timeout=3 bash stay A
agent B --nnodes=2 --local-addr=127.0.0.3 $quick,join_timeout=3 bash stay B
within 30 in_world "A B" 2
killed B
ended A
expect "if it is too few, it ends" matches "$code" '^[1-9]'
expect "and says why" [ -n "$err" ]

fresh
host A --nnodes=1:2 --local-addr=127.0.0.2 $quick bash stay A
within 30 lines_in 1 A.ranks
agent B --nnodes=1:2 --local-addr=127.0.0.3 $quick bash stay B
within 30 in_world "A B" 2
killed A
ended B
expect "the store's host is killed: the other ends" is "$code" 1
expect "and says that the store is gone" matches "$err" "localhost port $port"
expect "and leaves no worker" dead "$(tail -n 1 B.workers)"

# Spares: a node more than there may be.
connections() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -cE "[0-9A-F]+:$(printf %04X "$port") 01 "; }
more_connections() { [ "$(connections)" -gt "$1" ]; }
for fate in ends dies; do
    fresh
    host A --nnodes=2 --local-addr=127.0.0.2 $quick bash stay A
    agent B --nnodes=2 --local-addr=127.0.0.3 $quick bash stay B
    within 30 in_world "A B" 2
    before=$(connections)
    agent C --nnodes=2 --local-addr=127.0.0.4 $quick bash stay C
    within 30 more_connections "$before"
    sleep 1.5
    expect "a third node has no worker" [ ! -e C.ranks ]
    if [ $fate = dies ]; then
        killed B
        expect "until one dies: it takes the place" within 30 in_world "A C" 2
    fi
    touch over
    ended A
    expect "the job $fate: A is 0" is "$code" 0
    ended C
    expect "and so is the spare" is "$code" 0
done

wait $patient
expect "the last call is a success" is $? 0
expect "and how long it is was said" matches "$(cat patient.err)" "waiting [0-9]+ s: 1 nodes are at localhost port [0-9]+ \(127.0.0.2\), 1 to 4 make the job; it begins in [0-9] s unless more come \(--rdzv-conf=last_call_timeout\)"
finish
