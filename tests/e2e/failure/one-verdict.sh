# SPDX-License-Identifier: Apache-2.0
# All nodes of a job end with one code, that of the cause: a death by signal that any ctrun
# knows goes before exits, and so does a node that is lost.  The nodes are ctruns of one host; the
# word of one comes late, since it is stopped meanwhile.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
export OMP_NUM_THREADS=1
trap 'kill_agents; cd /; rm -rf "$work"' EXIT

# Rank 0 waits to be stopped; rank 1, beside it, exits with 40 when it is told that another rank is gone;
# rank 2, on node 1, says when it is asked to stop.
cat >worker <<'END2'
echo $$ >pid.$RANK
case $RANK in
0) trap 'touch asked.0; exit 143' TERM ;;
1) until [ -e gone ] || [ -e over ]; do sleep 0.02; done; [ -e over ] || exit 40 ;;
2) trap 'touch gone; exit 143' TERM ;;
esac
until [ -e over ]; do sleep 0.02; done
END2
all_up() { [ -s pid.0 ] && [ -s pid.1 ] && [ -s pid.2 ]; }
start() { # KIND OPTIONS...: two nodes, with two workers and one
    local kind=$1
    shift
    kill_agents
    rm -f pid.* gone asked.0 over
    new_job
    [ "$kind" = static ] && meet="--master-addr=127.0.0.1 --master-port=$port"
    if [ "$kind" = static ]; then
        agent n0 "$@" --nnodes=2 --node-rank=0 --nproc-per-node=2 bash worker
        agent n1 "$@" --nnodes=2 --node-rank=1 --nproc-per-node=1 bash worker
    else
        host n0 "$@" --nnodes=2 --local-addr=127.0.0.1 --nproc-per-node=2 bash worker
        agent n1 "$@" --nnodes=2 --local-addr=127.0.0.2 --nproc-per-node=1 bash worker
    fi
    within 30 all_up
}
stopped() { grep -q '^State:.T' "/proc/$1/status"; }
freeze() { kill -STOP "${pid[$1]}"; within 10 stopped "${pid[$1]}"; }
is_zombie() { grep -q '^State:.Z' "/proc/$1/status"; }

patient=--rdzv-conf=keep_alive_max_attempt=20 # what is stopped meanwhile is not given up
for kind in static c10d; do
    # Rank 2 dies of SIGKILL while its ctrun can't say so; rank 1 sees it, and exits.
    start $kind $patient
    freeze n1
    kill -KILL "$(cat pid.2)"
    within 10 is_zombie "$(cat pid.2)"
    touch gone
    expect "$kind: the exit of rank 1 stops node 0" within 20 test -e asked.0
    kill -CONT "${pid[n1]}"
    for n in n0 n1; do
        ended $n
        expect "$kind: a death by signal goes before the exit that it caused, $n" is "$code" 137
        expect "$kind: and $n names the rank and the signal" matches "$err" 'rank 2 \(pid [0-9]+.* was killed by SIGKILL'
        expect "$kind: and not the exit" lacks "$err" "rank 1 (pid"
    done

    # The same, with a restart: what is said of the first round is the death, too.
    start $kind $patient --max-restarts=1
    first=$(cat pid.2)
    freeze n1
    kill -KILL "$first"
    within 10 is_zombie "$first"
    touch gone
    within 20 test -e asked.0
    rm gone
    touch over
    kill -CONT "${pid[n1]}"
    for n in n0 n1; do
        ended $n
        expect "$kind: after a restart, $n" is "$code" 0
        expect "$kind: the restart is said with the death, $n" matches "$err" "rank 2 \(pid $first.* was killed by SIGKILL.*restart 1 of 1"
    done

    # An exit while nothing else is wrong is what it was.
    start $kind
    touch gone
    for n in n0 n1; do
        ended $n
        expect "$kind: an exit alone is the cause, $n" is "$code" 40
        expect "$kind: and $n says so" matches "$err" 'rank 1 \(pid [0-9]+.* exited with code 40'
    done
done

# A node that is lost: its own workers, or the cut, make others exit.
start static --rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=2
freeze n1
touch gone
ended n0
expect "a node that is lost goes before an exit" is "$code" 1
expect "and is named" matches "$err" "node 1 \([^ ]+\): its ctrun was lost: it has not answered for 2 s"
expect "and no rank is" lacks "$err" "Root Cause"
kill -CONT "${pid[n1]}"
ended n1
expect "the lost node ends so, too" is "$code" 1
expect "and says whom it lost" has "$err" "node 0 at 127.0.0.1 port $port was lost"

# Node 0 stands still: the other gives it up, and its workers' end makes those of node 0 exit.
start static --rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=2
freeze n0
ended n1
expect "node 0 stands still: node 1 ends with 1" is "$code" 1
within 10 is_zombie "$(cat pid.1)"
kill -CONT "${pid[n0]}"
ended n0
expect "and so does node 0, though its rank exited with 40 meanwhile" is "$code" 1
expect "and says that it lost node 1" matches "$err" "node 1 \([^ ]+\): its ctrun was lost"
# Told to stop while the nodes gather again, the host ends the job with its signal's code on all.
kill_agents
rm -f pid.* gone over
new_job
cat >sleeper <<'END2'
echo $$ >pid.$RANK
exec sleep 60
END2
three="--nnodes=3 --max-restarts=1"
host n0 $three --local-addr=127.0.0.1 bash sleeper
agent n1 $three --local-addr=127.0.0.2 bash sleeper
agent n2 $three --local-addr=127.0.0.3 bash sleeper
within 30 all_up
rest="$(cat pid.0) $(cat pid.1)"
killed n2
for p in $rest; do within 30 dead "$p"; done
sleep 0.5 # until both have left the round
kill -TERM "${pid[n0]}"
for n in n0 n1; do
    ended $n
    expect "the host is told to stop between two rounds: $n" is "$code" 143
done
expect "and the other node says why" matches "$err" "node 127.0.0.1 \(pid [0-9]+\): its ctrun was told to stop by SIGTERM"

# The host of an elastic job is killed after a rank's exit, before the exit is settled: the others
# can't know what it was, and say what they lost.
kill_agents
rm -f pid.* over fail
new_job
cat >slow <<'END2'
echo $$ >pid.$RANK
case $RANK in
0) trap 'until [ -e over ]; do sleep 0.05; done; sleep 2; exit 143' TERM ;;
2) until [ -e fail ]; do sleep 0.02; done; exit 40 ;;
esac
until [ -e over ]; do sleep 0.02; done
END2
host n0 --nnodes=2 --rdzv-conf=keep_alive_interval=1 --local-addr=127.0.0.1 --nproc-per-node=2 bash slow
agent n1 --nnodes=2 --rdzv-conf=keep_alive_interval=1 --local-addr=127.0.0.2 bash slow
within 30 all_up
touch fail
within 30 dead "$(cat pid.1)" # the host stops its workers
killed n0
ended n1
expect "the host is lost after an exit: the other ends with 1" is "$code" 1
expect "and says what was lost" has "$err" "the coordinator at localhost port $port was lost"
finish
