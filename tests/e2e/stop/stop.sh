# SPDX-License-Identifier: Apache-2.0
# ct_should_stop(): whenever the word to stop comes, and to whomever, all ranks stop at the
# same step, and their exit code is ctrun's.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
export OMP_NUM_THREADS=1
unset CT_DEADLINE CT_DEADLINE_MARGIN SLURM_JOB_END_TIME
trap 'kill_agents; cd /; rm -rf "$work"' EXIT
stops=$CT_BUILD/tests/e2e_stops
times=${CT_STOP_TIMES:-50}

began() { for ((r = 0; r < $1; r++)); do [ -s "began.$r" ] || return 1; done; }
fresh() { rm -f began.* stopped.*; }
stopped() { cat stopped.* 2>/dev/null; }
# one_step RANKS: all of them wrote one and the same step
one_step() { [ "$(ls stopped.* 2>/dev/null | wc -l)" = "$1" ] && [ "$(stopped | sort -u | wc -l)" = 1 ]; }

same=0 codes=
for ((i = 0; i < times; i++)); do
    fresh
    "$CTRUN" --nproc-per-node=4 "$stops" world 75 >out 2>err </dev/null &
    ctrun=$!
    within 30 began 4
    sleep 0.0$((RANDOM % 100))
    kill -TERM $ctrun
    wait $ctrun
    codes+="$? "
    one_step 4 && same=$((same + 1))
done
out=$(stopped) err=$(cat err)
expect "SIGTERM to ctrun: all four ranks stop at one step, $times times" is $same $times
expect "and their code is ctrun's" is "$(tr ' ' '\n' <<<"$codes" | sort -u | tr -d '\n')" 75

fresh
run --nproc-per-node=4 "$stops" world 75 alone
out=$(stopped)
expect "a rank that gets SIGTERM alone stops all" one_step 4
expect "at a step after that" test "$(cut -d' ' -f1 stopped.0)" -ge 20
expect "with their code" is "$code" 75
expect "and ctrun says who it was" has "$err" "rank 1 was told to stop by SIGTERM: the ranks are asked to stop at the same step"
expect "which is no failure" lacks "$err" "Root Cause"
expect "but the end of the job" matches "$err" 'the ranks stopped at call [0-9]+ of ct_should_stop\(\) and chose exit code 75'

for try in 1 2 3 4 5; do
    fresh
    "$CTRUN" --nproc-per-node=3 "$stops" world 75 again >out 2>err </dev/null &
    ctrun=$!
    within 30 began 3
    sleep 0.0$((RANDOM % 100))
    kill -TERM $ctrun
    wait $ctrun
    code=$? out=$(stopped) err=$(cat err)
    expect "a second world's ranks stop at one step too ($try)" one_step 3
done

fresh
run --nproc-per-node=4 "$stops" world 75 slow
expect "who has more to save than the others is not signalled" matches "$(cat stopped.0)" '^[0-9]+ 0$'
expect "and its code counts too" is "$code" 75

fresh
run --nproc-per-node=4 --max-restarts=1 --restart=on-exit:75 "$stops" world 75 once
expect "and the job can begin again" is "$code" 0
expect "as --restart says" has "$err" "and chose exit code 75. Starting restart 1 of 1"

fresh
run --nproc-per-node=4 --max-restarts=1 --restart=on-exit:75 --deadline=1 "$stops" world 75
out=$(stopped)
expect "--deadline stops them all at one step" one_step 4
expect "for good" is "$code" 75
expect "which is said" has "$err" "--deadline is reached, and SIGTERM follows in 30 s: the ranks are asked to stop at the same step"

fresh
run --nproc-per-node=2 --deadline=1 --shutdown-timeout=1 "$stops" world 75 never
expect "who does not stop is stopped after the grace" is "$code" 143
expect "as the deadline says" has "$err" "--deadline was reached 1 s ago and 2 workers have not stopped: ctrun sends SIGTERM now and SIGKILL in 1 s"
expect "and not by a signal that nobody sent" lacks "$err" "Received"

fresh
SLURM_JOB_END_TIME=$(($(date +%s) + 62)) run --nproc-per-node=2 "$stops" world 75
out=$(stopped)
expect "Slurm's end of the job is a deadline" one_step 2
expect "a minute before it" is "$code" 75
fresh
SLURM_JOB_END_TIME=$(($(date +%s) + 50)) run --nproc-per-node=2 sh -c 'sleep 1'
expect "a job of a minute keeps some of its time" is "$code $err" "0 "
SLURM_JOB_END_TIME=1763740800 run --nproc-per-node=1 "$CT_BUILD/bin/hello"
expect "ctrun says that an end in the past gives no deadline" has "$code $err" "0 ctrun: SLURM_JOB_END_TIME=1763740800 is not in the future"

fresh
run --nproc-per-node=4 --deadline=1 "$stops" group 75
out=$(stopped)
expect "on another group its members agree" one_step 4
expect "with the code" is "$code" 75

fresh
run --nproc-per-node=4 "$stops" halves 75 alone
out=$(stopped)
expect "SIGTERM to a rank alone reaches the groups that it is not in" is "$(ls stopped.* | wc -l)" 4
expect "with the code" is "$code" 75

# A rank that was lost before that, and could be, has no say.
fresh
"$CTRUN" --on-failure=continue --nproc-per-node=3 "$stops" world 75 loses >out 2>err </dev/null &
ctrun=$!
within 30 grep -q "the others continue" err
kill -TERM $ctrun
wait $ctrun
code=$? out=$(stopped) err=$(cat err)
expect "those who are left stop at one step" one_step 2
expect "and their code is ctrun's" is "$code" 75
fresh
run --on-failure=continue --nproc-per-node=3 "$stops" world 75 loses alone
out=$(stopped)
expect "so they do when one of them is told alone" one_step 2
expect "with their code" is "$code" 75
expect "which is said" matches "$err" 'the ranks stopped at call [0-9]+ of ct_should_stop\(\) and chose exit code 75'

# A SIGTERM of ctrun's own is no news.
fresh
run --nproc-per-node=3 "$stops" world 75 loses
expect "after a failure the others stop" is "$code" 137
expect "and nobody is said to have told them" lacks "$err" "was told to stop"

# The program's own handler: then ctrun's word counts, which comes first.
fresh
"$CTRUN" --nproc-per-node=2 "$stops" world 0 own >out 2>err </dev/null &
ctrun=$!
within 30 began 2
kill -TERM $ctrun
wait $ctrun
code=$? out=$(stopped) err=$(cat err)
expect "with a handler of the program's own ctrun's word counts" one_step 2
expect "and who ends well has ended well" is "$code" 0

# Without ctrun: three ranks, started by hand.
by_hand() {
    local r
    fresh
    ranks=()
    for r in 0 1 2; do
        RANK=$r WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$stops" world 75 "$@" >out.$r 2>err.$r </dev/null &
        ranks+=($!)
    done
}
codes() {
    local pid all=
    for pid in "${ranks[@]}"; do
        wait "$pid"
        all+="$? "
    done
    code=$all out=$(stopped) err=$(cat err.?)
}
new_job
by_hand
within 30 began 3
kill -TERM "${ranks[2]}"
codes
expect "without ctrun a signal to one rank stops all" one_step 3
expect "and each has its code" is "$code" "75 75 75 "

new_job
by_hand bad
within 30 began 3
kill -TERM "${ranks[2]}"
codes
expect "a rank that was told of a bad CT_DEADLINE has made the step all the same" one_step 3

new_job
export CT_DEADLINE=$(($(date +%s) + 2))
by_hand
codes
expect "without ctrun CT_DEADLINE is the deadline" one_step 3
expect "for all of them" is "$code" "75 75 75 "

new_job
CT_DEADLINE=soon by_hand
codes
expect "which must be a moment" has "$err" "CT_DEADLINE=soon: it must be seconds since the epoch"
unset CT_DEADLINE

new_job
SLURM_JOB_END_TIME=$(($(date +%s) + 6)) by_hand
codes
expect "Slurm's end of the job stops them after half of their time" one_step 3
expect "with steps in it" test "$(cut -d' ' -f1 stopped.0)" -gt 1

run --deadline=soon true
expect "and so must --deadline" is "$code" 2
expect "with what it can be" has "$err" "'soon' is not a deadline; write 90s, 30m, 2h or 1d from now"

# Two nodes, by both ways to meet.
nodes_stop() { # NAME OF WHO IS TOLD
    within 30 began 4
    sleep 0.0$((RANDOM % 100))
    kill -TERM "${pid[$1]}"
    ended a
    codes=$code
    ended b
    codes+=" $code"
}
for who in a b; do
    fresh
    new_job
    meet="--nnodes=2 --master-addr=127.0.0.1 --master-port=$port --nproc-per-node=2"
    agent a --node-rank=0 "$stops" world 75
    agent b --node-rank=1 "$stops" world 75
    nodes_stop $who
    out=$(stopped) err=$(cat a.err b.err)
    expect "static: two nodes stop at one step when $who is told" one_step 4
    expect "with one code" is "$codes" "75 75"
    fresh
    new_job
    host a --nnodes=2 --nproc-per-node=2 "$stops" world 75
    agent b --nnodes=2 --nproc-per-node=2 "$stops" world 75
    nodes_stop $who
    out=$(stopped) err=$(cat a.err b.err)
    expect "c10d: two nodes stop at one step when $who is told" one_step 4
    expect "with one code" is "$codes" "75 75"
done

fresh
new_job
meet="--nnodes=2 --master-addr=127.0.0.1 --master-port=$port --nproc-per-node=2 --on-failure=continue"
agent a --node-rank=0 "$stops" world 75 loses
agent b --node-rank=1 "$stops" world 75 loses
within 30 grep -q "the others continue" a.err
kill -TERM "${pid[b]}"
ended a
codes=$code
ended b
out=$(stopped) err=$(cat a.err b.err)
expect "two nodes: without one that was lost before they stop at one step" one_step 3
expect "with their code" is "$codes $code" "75 75"

fresh
new_job
meet="--nnodes=2 --master-addr=127.0.0.1 --master-port=$port"
agent a --node-rank=0 "$stops" world 75 alone
agent b --node-rank=1 "$stops" world 75 alone
ended a
codes=$code
ended b
out=$(stopped) err=$(cat a.err b.err)
expect "two nodes: a rank on one of them that is told alone stops all" one_step 2
expect "with their code" is "$codes $code" "75 75"
finish
