# SPDX-License-Identifier: Apache-2.0
# Signals to ctrun, and its death by kill -9.
. "$CT_SOURCE/tests/e2e/lib.sh"

# begin WORDS...: ctrun in the background, its workers write to the file "log".
begin() {
    rm -f log pids
    "$CTRUN" --nproc-per-node=2 "$@" >out 2>err </dev/null &
    ctrun=$!
}

for name in TERM INT HUP QUIT; do
    number=$(kill -l $name) again="A second SIG$name shortens that"
    [ $name = INT ] && again="Press Ctrl-C again to shorten that"
    begin sh -c "trap 'echo $name >>log; exit 0' $name; echo >>pids; while :; do sleep 0.05; done"
    within 30 lines_in 2 pids
    kill -$name $ctrun
    wait $ctrun
    code=$? err=$(cat err)
    expect "SIG$name is forwarded as it is; 128 + signal" is "$code $(cat log)" "$((128 + number)) $name"$'\n'"$name"
    expect "  and said to be, with what a second one does" has "$err" \
        "Received $number death signal (SIG$name): asked 2 workers to stop, will kill them in 30 s. $again to 2 s"
done

begin sh -c 'trap "echo usr1 >>log" USR1; trap "exit 0" TERM; echo >>pids; while :; do sleep 0.05; done'
within 30 lines_in 2 pids
kill -USR1 $ctrun
expect "SIGUSR1 is forwarded" within 30 lines_in 2 log
expect "and the job goes on" alive $ctrun
kill -TERM $ctrun
wait $ctrun

begin --shutdown-timeout=1 sh -c 'trap "" TERM; echo $$$$ >>pids; while :; do sleep 0.05; done'
within 30 lines_in 2 pids
start=$(now_ms)
kill -TERM $ctrun
wait $ctrun
code=$? took=$(($(now_ms) - start))
expect "of a second one nothing is said if it would shorten nothing" is "$(grep -o 'asked .*' err)" "asked 2 workers to stop, will kill them in 1 s"
expect "grace, then SIGKILL" [ $took -ge 900 -a $took -lt 20000 ]
for pid in $(cat pids); do expect "worker is gone" eval "! alive $pid"; done

# The second one leaves 2 s.  A busy machine may take as long for the third, but not each time.
taken() { ! alive $ctrun || grep -q '^ShdPnd:.*[014589cd]$' /proc/$ctrun/status; } # two before that are one
third_kills() {
    begin --shutdown-timeout=60 sh -c 'trap "" INT; echo $$$$ >>pids; while :; do sleep 0.05; done'
    within 30 lines_in 2 pids
    for i in 1 2 3; do
        start=$(now_ms)
        kill -INT $ctrun
        within 30 taken
    done
    wait $ctrun
    code=$? took=$(($(now_ms) - start))
    [ $code = 130 -a $took -lt 1500 ]
}
expect "the third Ctrl-C kills" within 60 third_kills

# kill -9: neither a worker nor a worker's child is left.
begin bash -c 'sleep 1000 & echo $! >>pids; echo $$$$ >>pids; wait; true'
within 30 lines_in 4 pids
guard=$(pgrep -P $ctrun -x ct-guard)
kill -KILL $ctrun
wait $ctrun 2>/dev/null
gone() { ! alive "$1"; }
for pid in $(cat pids) $guard; do expect "process $pid is gone after kill -9" within 30 gone $pid; done
expect "TMPDIR is empty" is "$(ls "$TMPDIR")" ""

# Without its guard a job goes on, and says what it lacks now.
ctrun_says=$PWD/guardless
"$CTRUN" --nproc-per-node=1 --no-python sh -c 'until [ -e go ]; do sleep 0.05; done' 2>"$ctrun_says" &
ctrun=$!
expect "a guard is there" within 30 pgrep -P $ctrun -x ct-guard
guard=$(pgrep -P $ctrun -x ct-guard)
kill -STOP "$guard"
expect "the guard can be stopped" within 30 grep -q "^State:.T" "/proc/$guard/status"
kill -CONT "$guard"
kill -9 "$guard"
expect "the death of the guard is told" within 30 grep -q "the guard (process $guard) was killed" "$ctrun_says"
touch go
wait $ctrun
expect "the job ends as if nothing had been" is "$?" 0
expect "and it was told once, not when the guard was stopped" is "$(grep -c 'was killed' "$ctrun_says")" 1

# A worker that kills ctrun in its first instruction: the guard knows it already,
# and holds no descriptor of ours, so the reader of a pipe sees its end.
out=$(timeout 120 bash -c '"$1" --nproc-per-node=2 sh -c "kill -KILL \$PPID; sleep 1000; true"' - "$CTRUN" 2>/dev/null)
expect "a pipe ends with ctrun" is "$?" 137
finish
