# SPDX-License-Identifier: Apache-2.0
# What workers leave behind is killed with the round, whatever session it is in; strangers are not.
. "$CT_SOURCE/tests/e2e/lib.sh"

# Each leftover writes its pid before its worker goes on.
leave='mkfifo f$RANK; setsid sh -c "echo \$\$ >>pids; : >f$RANK; exec sleep 1000" & : <f$RANK'

gone() { for pid in $(cat pids); do ! alive $pid || return 1; done; }

for code in 0 4; do
    rm -f pids f?
    run --nproc-per-node=2 bash -c "sleep 1000 & echo \$! >>pids; $leave; until [ \$(wc -l <pids) = 4 ]; do sleep 0.02; done; exit $code"
    expect "a worker's exit code $code is not changed by leftovers" is "$code" "$code"
    expect "four were there" is "$(wc -l <pids)" 4
    expect "none is left, in its group or in a session of its own" gone
done

# A daemon as it should be: twice forked, its parents gone, its own session.
rm -f pids f?
run bash -c '(setsid sh -c "(echo \$\$; exec sleep 1000) & echo \$! >>pids") ; exit 0'
expect "a daemon too" gone

# Of one round by the next: the second round sees whether those of the first live.
rm -f pids f?
run --max-restarts=1 bash -c "[ \$TORCHELASTIC_RESTART_COUNT = 1 ] && { kill -0 \$(cat pids); exit 0; }; $leave; exit 1"
expect "a restart begins with none" has "$err" "No such process"

# ctrun in the place of a shell that had a child before.
rm -f pids f?
bash -c 'sleep 1000 & echo $! >stranger; exec "$@"' - "$CTRUN" bash -c "$leave" >/dev/null 2>&1
expect "our own are killed" gone
expect "a child from before is not" alive "$(cat stranger)"
kill "$(cat stranger)"

# Many orphans at once: none stays a zombie while the workers run.
run bash -c 'for i in $(seq 200); do (sleep 0.01 & sleep 0.01 &); done; for i in $(seq 100); do n=$(ps -o stat= --ppid $PPID | grep -c Z); [ $n = 0 ] && break; sleep 0.1; done; echo $n'
expect "no zombies" is "$out" 0

# As PID 1 of a container.
container=(unshare --pid --fork --mount-proc --kill-child)
if "${container[@]}" true 2>/dev/null; then
    rm -f pids f?
    "${container[@]}" "$CTRUN" bash -c "$leave; ps -o pid= -p \$PPID" >out 2>err </dev/null
    expect "ctrun is PID 1" is "$(tr -d ' ' <out)" 1
    "${container[@]}" "$CTRUN" --nproc-per-node=3 sh -c 'echo $(ps -o ppid=,sid= -p $$$$)' >out 2>err </dev/null
    expect "PID 1 is the parent of several, which share a session" matches "$(sort -u out)" '^1 [0-9]+$'
    expect "an exit code goes through" is "$("${container[@]}" "$CTRUN" sh -c 'exit 3' >out 2>err; echo $?)" 3
    for name in TERM INT; do
        rm -f ready
        "${container[@]}" "$CTRUN" sh -c "trap 'echo $name >got; exit 0' $name; : >ready; while :; do sleep 0.05; done" >out 2>err </dev/null &
        outer=$!
        within 30 test -e ready
        kill -$name "$(pgrep -P $outer -x ctrun)"
        wait $outer
        expect "SIG$name to PID 1 is forwarded; 128 + signal" is "$? $(cat got)" "$((128 + $(kill -l $name))) $name"
    done
    # Somebody else's orphan (docker exec) becomes PID 1's child, and is not its to kill.
    rm -f ready
    "${container[@]}" "$CTRUN" --max-restarts=1 sh -c ': >ready; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && { until [ -e end ]; do sleep 0.05; done; exit 0; }; until [ -e go ]; do sleep 0.05; done; exit 1' >out 2>err </dev/null &
    outer=$!
    within 30 test -e ready
    inner=$(pgrep -P $outer -x ctrun)
    nsenter -t "$inner" -p -m sh -c '(setsid sleep 1000 & )'
    stranger_came() { stranger=$(pgrep -P "$inner" -x sleep); }
    within 30 stranger_came
    : >go
    within 30 grep -q 'restart 1 of 1' err
    expect "a stranger in the container outlives a round" alive "${stranger:-0}"
    : >end
    wait $outer
fi
finish
