# SPDX-License-Identifier: Apache-2.0
# Elastic jobs (--rdzv-backend=c10d), on one host: ranks, restarts of all, nodes that come,
# go, wait, are cut off and die.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
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

# The host is node 0, the others follow in the natural order of their names, whoever came first.
fresh
host A --nnodes=3 --local-addr=127.0.0.20 sh -c "$show; echo \$MASTER_ADDR:\$MASTER_PORT"
agent C --nnodes=3 --local-addr=127.0.0.10 sh -c "$show; echo \$MASTER_ADDR:\$MASTER_PORT"
agent B --nnodes=3 --local-addr=127.0.0.9 sh -c "$show; echo \$MASTER_ADDR:\$MASTER_PORT"
all=
for n in A B C; do
    ended $n
    expect "three nodes: $n ends" is "$code" 0
    all+="$(head -n 1 <<<"$out") $(tail -n 1 <<<"$out")
"
done
expect "the host has rank 0, 127.0.0.9 goes before 127.0.0.10, and all have one master at the host" is "$all" "\
0/3 0/3 default 0/3 0 localhost:$port
1/3 1/3 default 1/3 0 localhost:$port
2/3 2/3 default 2/3 0 localhost:$port
"

fresh
host A --nnodes=2 --local-addr=127.0.0.2 --nproc-per-node=2 sh -c "$show"
agent B --nnodes=2 --local-addr=127.0.0.3 --role=zeta sh -c "$show"
ended A
all=$out
ended B
expect "uneven nodes and roles" is "$(sorted "$all
$out")" "0/3 0/2 default 0/2 0
1/3 0/2 default 1/2 0
2/3 1/2 zeta 0/1 0"

# A failure on one node starts both again: a restart of the job.
fresh
host A --nnodes=2 --local-addr=127.0.0.2 --max-restarts=2 sh -c "$show; until [ -e B.once ]; do sleep 0.05; done; test \$TORCHELASTIC_RESTART_COUNT = 1 || exit 5; until [ -e B.again ]; do sleep 0.05; done"
agent B --nnodes=2 --local-addr=127.0.0.3 --max-restarts=2 sh -c "$show; [ -e B.once ] || { touch B.once; sleep 50; }; touch B.again"
for n in A B; do
    rank=$([ $n = A ] && echo 0 || echo 1)
    ended $n
    expect "a job that failed once succeeds, $n" is "$code" 0
    expect "and its workers there know the restart, $n" is "$out" "$rank/2 $rank/2 default $rank/2 0
$rank/2 $rank/2 default $rank/2 1"
done

# One fails for good: all end with its code.
fresh
host A --nnodes=2 --local-addr=127.0.0.2 sh -c 'until [ -e B.failed ]; do sleep 0.05; done; sleep 0.5'
agent B --nnodes=2 --local-addr=127.0.0.3 sh -c 'touch B.failed; exit 7'
for n in A B; do
    ended $n
    expect "a node fails for good: $n ends with its code" is "$code" 7
done

# A node that was told something else about the job is refused; the job waits for the right one.
fresh
host A --nnodes=2 --local-addr=127.0.0.2 true
for other in "--nnodes=3" "--nnodes=1:2" "--nnodes=2 --rdzv-id=another"; do
    agent B --local-addr=127.0.0.3 $other true
    ended B
    expect "a node with $other is refused" is "$code" 1
    expect "with the difference: $other" matches "$err" "the coordinator refused this node: it has --(nnodes|rdzv-id)=.*, the coordinator has "
done
words=$meet
meet="--master-addr=localhost --master-port=$port --rdzv-id=job$jobs"
agent B --nnodes=2 --node-rank=1 true
ended B
expect "and so is a node of a static job" has "$err" "node 0 refused this node: it has --rdzv-backend=static, the coordinator has --rdzv-backend=c10d"
meet=$words
agent B --nnodes=2 --local-addr=127.0.0.3 true
for n in A B; do
    ended $n
    expect "the right one makes the job, $n" is "$code" 0
done

# With store_type=file the first one to lock the file is node 0, and writes there where it listens.
fresh
meet="--rdzv-backend=c10d --rdzv-endpoint=$work/meeting --rdzv-conf=store_type=file --rdzv-id=filed"
echo "127.0.0.1 1" >meeting # of a ctrun that was killed
agent A --nnodes=2 sh -c "$show"
agent B --nnodes=2 sh -c "$show"
ended A
first=$out
expect "a job that meets in a file ends, A" is "$code" 0
ended B
expect "a job that meets in a file ends, B" is "$code" 0
expect "and is one job" is "$(sorted "$first
$out")" "0/2 0/2 default 0/2 0
1/2 1/2 default 1/2 0"
expect "and the file names no node that is gone" is "$(cat meeting)" ""

# Nodes that come.
for newcomer in 127.0.0.1 127.0.0.4; do
    fresh
    host A --nnodes=1:3 --local-addr=127.0.0.2 $quick --nproc-per-node=2 bash stay A
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

# A node that is cut off comes back: its ctrun stands still for longer than a node may be silent.
fresh
brief="--rdzv-conf=last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=2"
host A --nnodes=1:2 --local-addr=127.0.0.2 $brief bash stay A
within 30 lines_in 1 A.ranks
agent B --nnodes=1:2 --local-addr=127.0.0.3 $brief bash stay B
within 30 in_world "A B" 2
before=$(tail -n 1 B.workers)
kill -STOP "${pid[B]}"
expect "a node stands still: the other goes on alone" within 30 in_world A 1
kill -CONT "${pid[B]}"
expect "it goes on: it joins again" within 30 in_world "A B" 2
expect "and its workers of before are gone" dead "$before"
touch over
for n in A B; do
    ended $n
    expect "to a good end, $n" is "$code" 0
done
expect "which B says" matches "$err" "trying for [0-9]+ s to join the job again"

# A node that is told to stop leaves; the others go on.
fresh
host A --nnodes=1:2 --local-addr=127.0.0.2 $quick bash stay A
within 30 lines_in 1 A.ranks
agent B --nnodes=1:2 --local-addr=127.0.0.3 $quick bash stay B
within 30 in_world "A B" 2
kill -TERM "${pid[B]}"
ended B
expect "a node is told to stop: it ends so" is "$code" 143
expect "the other one goes on" within 30 in_world A 1
touch over
ended A
expect "to a good end" is "$code" 0
expect "and says who left" matches "$err" "node 127.0.0.3 \(pid [0-9]+\) has left the job: its ctrun was told to stop by SIGTERM; the workers here start again, 1 in all"

# That node was told to stop, not the job: what fails later is restarted.
fresh
rm -f failed
cat >fails_once <<'END'
echo "$RANK/$WORLD_SIZE $MASTER_ADDR:$MASTER_PORT $TORCHELASTIC_RESTART_COUNT" >>$1.ranks
[ $WORLD_SIZE = 1 ] && [ ! -e failed ] && { touch failed; exit 9; }
until [ -e over ]; do sleep 0.05; done
END
host A --nnodes=1:2 --local-addr=127.0.0.2 --rdzv-conf=last_call_timeout=20,keep_alive_interval=1 --max-restarts=1 bash fails_once A
agent B --nnodes=1:2 --local-addr=127.0.0.3 --rdzv-conf=last_call_timeout=20,keep_alive_interval=1 --max-restarts=1 bash fails_once B
within 30 in_world "A B" 2
kill -TERM "${pid[B]}"
ended B
last_count() { [ "$(tail -n 1 A.ranks | cut -d' ' -f1,3)" = "$1" ]; }
expect "a failure after a node has left costs a restart" within 30 last_count "0/1 1"
touch over
ended A
expect "and the job ends well" is "$code" 0

# One node alone on a port that another job has.
fresh
host A --nnodes=1 --rdzv-id=first bash stay A
agent B --nnodes=1 --rdzv-id=second true
ended B
expect "a job of one node at the port of another job ends with 1" is "$code" 1
expect "and says which process has the port" matches "$err" "port $port on localhost is in use by pid [0-9]+ \\(ctrun\\)"
touch over
ended A
expect "the other job goes on" is "$code" 0

# Told to stop twice, the host does not wait for a node whose workers take their time; that one ends
# with the same code when they have ended.
fresh
rm -f asked.*
cat >slow <<'END'
trap 'touch asked.$RANK; [ $RANK = 0 ] && exit 1; until [ -e over ]; do sleep 0.05; done; exit 1' TERM
touch up.$RANK
until [ -e over ]; do sleep 0.05; done
END
rm -f up.*
host A --nnodes=2 --local-addr=127.0.0.2 bash slow
agent B --nnodes=2 --local-addr=127.0.0.3 bash slow
within 30 test -e up.0 -a -e up.1
kill -TERM "${pid[A]}"
within 30 test -e asked.1
again() { kill -TERM "${pid[A]}" 2>/dev/null; sleep 0.2; dead "${pid[A]}"; }
within 30 again
ended A
expect "told twice the host ends with 143" is "$code" 143
touch over
ended B
expect "and so does the slow node" is "$code" 143
expect "which says why" matches "$err" "node 127.0.0.2 \(pid [0-9]+\): its ctrun was told to stop by SIGTERM"

# Told to stop while the workers stop for a restart: no restart follows.
fresh
cat >stubborn <<'END'
trap 'touch asked; until [ -e over ]; do sleep 0.05; done; exit 1' TERM
touch up.$RANK
[ $RANK = 1 ] && { until [ -e up.0 ]; do sleep 0.05; done; exit 3; }
until [ -e over ]; do sleep 0.05; done
END
rm -f asked
host A --nnodes=2 --local-addr=127.0.0.2 --max-restarts=5 bash stubborn
agent B --nnodes=2 --local-addr=127.0.0.3 --max-restarts=5 bash stubborn
within 30 test -e asked
kill -TERM "${pid[A]}"
sleep 0.3
touch over
for n in A B; do
    ended $n
    expect "the host is told to stop before a restart: $n" is "$code" 143
done

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
