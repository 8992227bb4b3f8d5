# SPDX-License-Identifier: Apache-2.0
# A rank that comes last into each collective is named, once; one that is as quick as the others is not.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
line='^ctrun: rank 1 makes the others wait \(a straggler\): in the last 2 s it spent [0-9]+ % of the time in collectives, each other rank [0-9 to]+ %$'

run --nproc-per-node=3 --stall=2s --events=events "$CT_BUILD/tests/e2e_slow" 8 60 2
expect "a rank that is late each time is named" matches "$code $(head -n 1 <<<"$err")" "^0 ${line#^}"
expect "  once" is "$(grep -c 'makes the others wait' <<<"$err")" 1
run --nproc-per-node=3 --stall=2s "$CT_BUILD/tests/e2e_slow" 5 30 30
expect "ranks that are alike are not" is "$code $err" "0 "
run --nproc-per-node=3 --stall=2s "$CT_BUILD/tests/e2e_slow" 8 20 20 900
expect "nor is one that is away for long from time to time" is "$code $err" "0 "
run --nproc-per-node=3 --stall=0 "$CT_BUILD/tests/e2e_slow" 4 60 2
expect "nor with --stall=0" is "$code $err" "0 "

expect "it is an event, too" matches "$(grep -c slow_rank events) $(grep slow_rank events)" '^1 \{.*"event":"slow_rank",.*"rank":1,"of_node":null,"seconds":2,"in_collectives":[0-9]+,"others_least":[0-9]+,"others_most":[0-9]+\}$'

# ---- ctctl top
ctctl=$CT_BUILD/bin/ctctl
"$CTRUN" --rdzv-id=top$$ --stall=0 --nproc-per-node=3 "$CT_BUILD/tests/e2e_slow" 60 60 2 2>/dev/null &
job=$!
in_calls() { sed -nE "s/^$1 .* ([0-9]+) %  .*/\1/p" .top; }
looks_right() {
    timeout 30 "$ctctl" top top$$ >.top 2>.err && [ "$(in_calls 1)" -lt 40 ] && [ "$(in_calls 0,2)" -gt 60 ] &&
        grep -q '^0,2 .*all_reduce' .top # at one moment in ten they are in no call
}
expect "top shows the slow rank outside of calls, and the others in them" within 20 looks_right
expect "  the job, and what the columns are" matches "$(cat .top)" "^job top$$ \(.*e2e_slow, 3 ranks, for [0-9.]+ s, 0 restarts\): .*RANKS +PID S +STATE +%CPU +CALLS/s +IN CALLS +NOW"
expect "  the straggler first, with a word" matches "$(sed -n 4p .top)" '^1 +[0-9]+ S  ~ straggler +[0-9]+ +1[0-9] +[0-9]+ %  \(sleep\)$'
expect "  then the others, in one line" matches "$(sed -n '5,$p' .top)" '^0,2 +2 ranks .  > running +[0-9]+ +1[0-9] +[0-9]+ %  all_reduce \(1 i32, min\) on group world at slow\.c:[0-9]+ \(main\)( \(1 of 2\))?$'
unfolded() { grep -qa '^0 ' .screen && grep -qa '^2 ' .screen; }
pictures() { [ "$(grep -ac 'RANKS' .screen)" -ge "$1" ]; }
{ within 20 pictures 3; printf f; within 20 unfolded; printf q; } |
    TERM=xterm NO_COLOR= timeout 60 script -qefc "stty cols 60 rows 20; $ctctl top top$$" /dev/null >.screen
expect "on a terminal it goes on until q" is "$? $(pictures 3; echo $?)" "0 0"
expect "  f gives each rank a line" unfolded
expect "  the straggler has a colour" grep -qa $'\033\[1;38;5;30m~ straggler' .screen
expect "  and no line is wider than the terminal" is "$(tr -d '\r' <.screen | sed $'s/\033\\[[^a-zA-Z]*[a-zA-Z]//g' | tail -n +2 | awk 'length > 59' | grep -c .)" 0
{ within 20 pictures 2; printf q; } | NO_COLOR=1 timeout 60 script -qefc "$ctctl top top$$" /dev/null >.screen
expect "  nor has it one with NO_COLOR" is "$(grep -ac $'\033\[1;38;5;30m' .screen)" 0
{ within 20 pictures 3; printf q; } | TERM=xterm timeout 60 script -qefc "stty cols 20 rows 5; $ctctl top top$$" /dev/null >.screen
expect "a screen of 5 lines of 20 characters is not left" is "$? $(tr -d '\r' <.screen | sed $'s/\033\\[H\033\\[J/\\f/g; s/\033\\[[^a-zA-Z]*[a-zA-Z]//g' |
    awk '/\f/ { lines = 0; sub(/.*\f/, "") } ++lines > 4 || length > 19' | sed '/^$/d')" "0 "
expect "  and the straggler is on it" grep -qa '^1  ' .screen
TERM=dumb timeout 60 script -qefc "$ctctl top top$$" /dev/null >.screen
expect "a terminal that can't move the cursor gets one picture" is "$? $(pictures 1; echo $?) $(grep -c $'\033' .screen)" "0 0 0"
kill $job
wait $job 2>/dev/null
timeout 30 "$ctctl" top top$$ >.top 2>.err
expect "without the job it says so" is "$? $(cat .err)" "2 ctctl: no job top$$ runs here$(grep -o ' (nor any other)' .err); ctctl ps lists those that do"

# ---- Several hosts: one rank on each, then a host whose ranks all are slow
. "$CT_SOURCE/tests/e2e/hosts.sh"
trap 'kill $(jobs -p) 2>/dev/null; no_hosts; cd /; rm -rf "$work"' EXIT
hosts 2 || { echo "skipped: two hosts, for which there is no right"; finish; }
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret && chmod 600 secret
export CT_STORE_SECRET_FILE=$work/secret
two() { # WORKERS STALL PROGRAM...
    local workers=$1 stall=$2
    shift 2
    for i in 1 0; do
        timeout 60 ${on[$i]} "$CTRUN" --nnodes=2 --node-rank=$i --master-addr=10.77.0.1 --master-port=29400 --stall="$stall" \
            --nproc-per-node="$workers" "$@" >/dev/null 2>n$i.err </dev/null &
    done
    wait $!
    code=$? err=$(cat n0.err)
}
two 1 2s "$CT_BUILD/tests/e2e_slow" 8 120 2
expect "a rank that is alone on its host is named" matches "$code $err" '^0 ctrun: rank 1 makes the others wait \(a straggler\): in the last 2 s it spent [0-9]+ % of the time in collectives, the other rank [0-9]+ %$'
# Two ranks that sleep equally long do not wake at the same moment: that has to be little of the time.
two 2 4s sh -c 'exec "$@" $((GROUP_RANK ? 300 : 2)) $((GROUP_RANK ? 300 : 2))' sh "$CT_BUILD/tests/e2e_slow" 13
expect "so is a host whose ranks all are slow" matches "$code $err" '^0 ctrun: the ranks of node 1 \(h1\) make the others wait \(stragglers\): in the last 4 s each of them spent at most [0-9]+ % of the time in collectives, each other rank [0-9 to]+ %$'
expect "  by node 0 alone" lacks "$(cat n1.err)" "wait"
finish
