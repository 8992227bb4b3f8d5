# SPDX-License-Identifier: Apache-2.0
# Which processes get which signal and when; none of them is left (see also signals.sh).
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"

# begin WORDS...: ctrun in the background; its workers add their pids to the file "pids".
begin() {
    rm -f log pids
    "$CTRUN" "$@" >out 2>err </dev/null &
    ctrun=$!
}

# ended: waits for it; sets $code, $took (ms since $start), $err.
ended() {
    wait $ctrun 2>/dev/null
    code=$?
    took=$(($(now_ms) - start)) err=$(cat err)
}

gone() { for pid in $(cat pids); do ! alive "$pid" || return 1; done; }
no_such() { for pid in $(cat pids); do [ ! -e /proc/$pid ] || return 1; done; }

begin --nproc-per-node=2 sh -c 'trap : TERM; echo $$$$ >>pids; sh -c "trap \"echo inner >>log; exit 0\" TERM; echo \$\$ >>pids; while :; do sleep 0.05; done"; exit 0'
within 30 lines_in 4 pids
start=$(now_ms)
kill -TERM $ctrun
ended
expect "what a worker runs in its foreground is signalled too" is "$(cat log)" $'inner\ninner'
expect "no worker is left, not even a zombie" no_such

begin --signals-to-handle=SIGUSR1 sh -c 'trap "echo usr1 >>log; exit 0" USR1; echo $$$$ >>pids; while :; do sleep 0.05; done'
within 30 lines_in 1 pids
start=$(now_ms)
kill -USR1 $ctrun
ended
expect "a listed signal is forwarded and stops the job" is "$code $(cat log)" "138 usr1"

begin --signals-to-handle=SIGUSR1 sh -c 'trap "" TERM; echo $$$$ >>pids; while :; do sleep 0.05; done'
within 30 lines_in 1 pids
start=$(now_ms)
kill -TERM $ctrun
ended
expect "the list replaces the default: SIGTERM is ctrun's death" is "$code" 143
expect "and its workers', whatever they ignore" within 30 gone

begin --shutdown-timeout=0 --nproc-per-node=2 sh -c 'trap "" TERM; echo $$$$ >>pids; while :; do sleep 0.05; done'
within 30 lines_in 2 pids
start=$(now_ms)
kill -TERM $ctrun
ended
expect "no grace: SIGKILL at once" [ "$code" = 143 -a $took -lt 20000 ]
expect "nobody is left" no_such

begin --shutdown-timeout=60 --nproc-per-node=2 sh -c 'trap "echo told >>log; exit 0" TERM; echo $$$$ >>pids; while :; do sleep 0.05; done'
within 30 lines_in 2 pids
stopped() { for pid in $(cat pids); do grep -q '^State:.T' "/proc/$pid/status" || return 1; done; }
kill -STOP $(cat pids)
within 30 stopped
start=$(now_ms)
kill -TERM $ctrun
within 30 lines_in 2 log
ended
expect "stopped workers obey the signal, so ctrun does not kill them" is "$code $(cat log)" $'143 told\ntold'

# What a worker started may be stopped alone.
rm -f pids log
begin --shutdown-timeout=60 --nproc-per-node=2 sh -c 'trap : TERM; sh -c "trap \"echo told >>log; exit 0\" TERM; echo \$\$ >>pids; while :; do sleep 0.05; done"; exit 0'
within 30 lines_in 2 pids
kill -STOP $(cat pids)
within 30 stopped
kill -TERM $ctrun
within 30 lines_in 2 log
ended
expect "and so do stopped children of workers" is "$(cat log)" $'told\ntold'

# It would undo the SIGSTOP by which a debugger attaches.
cat >runs.sh <<'END'
trap 'touch continued' CONT
trap 'end=1' TERM
touch "up.$RANK"
until [ "$end" ]; do sleep 0.05; done
sleep 0.2
END
"$CTRUN" --nproc-per-node=2 sh runs.sh 2>/dev/null &
job=$!
within 30 test -e up.0 -a -e up.1
kill -TERM $job
wait $job
expect "a worker that runs gets no SIGCONT" is "$? $(ls continued 2>/dev/null)" "143 "

start=$(now_ms)
rm -f pids
run --nproc-per-node=2 --shutdown-timeout=1 sh -c 'trap "" TERM; echo $$$$ >>pids; until [ $(wc -l <pids) = 2 ]; do sleep 0.02; done; [ $RANK = 1 ] && exit 9; while :; do sleep 0.05; done'
took=$(($(now_ms) - start))
expect "after a failure the grace is the same option's" [ $took -ge 900 -a $took -lt 20000 ]
expect "the code is that of who failed" is "$code" 9
expect "the rank that ctrun killed is not the culprit" matches "$err" "rank 1 \(pid [0-9]+\) failed first: it exited with code 9\. ctrun killed rank 0, which did not stop when asked"

run --nproc-per-node=2 --shutdown-timeout=1 sh -c 'trap "echo signalled" TERM; [ $RANK = 1 ] && exit 0; sleep 0.5; echo done'
expect "who ends early with 0 stops nobody" is "$code $out" "0 done"

# kill -9 of ctrun, again and again: the group of each worker is gone at once.
for i in 1 2 3 4 5; do
    begin --nproc-per-node=2 bash -c 'sleep 1000 & echo $! >>pids; echo $$$$ >>pids; wait; true'
    within 30 lines_in $((i % 2 ? 4 : 1)) pids # also while they start
    kill -KILL $ctrun
    wait $ctrun 2>/dev/null
    expect "kill -9 leaves nothing ($i)" within 30 gone
done

# Guard and ctrun killed together, also while workers are being started: none is left.
for i in 1 2 3 5 8 13 40; do
    rm -f pids
    begin --nproc-per-node=41 sh -c 'echo $$$$ >>pids; exec sleep 1000'
    within 30 lines_in $i pids
    kill -KILL $(pgrep -P $ctrun -x ct-guard) $ctrun
    wait $ctrun 2>/dev/null
    rm -r "$TMPDIR"/ctrun_* # the guard would have removed it
    expect "kill -9 of guard and ctrun leaves no worker ($i)" within 30 gone
    expect "and not the process that starts workers" within 30 eval '! pgrep -f "^$CTRUN --nproc-per-node=41" >/dev/null'
done

# While workers are being started: the signal is there before the first one is.
rm -f pids
env --block-signal=TERM bash -c 'kill -TERM $$; exec "$@"' - "$CTRUN" --nproc-per-node=100 sh -c 'echo $$$$ >>pids; exec sleep 1000' >out 2>err </dev/null
code=$? err=$(cat err)
expect "a signal is obeyed between two starts" eval '[ $code = 143 ] && has "$err" "Received 15 death signal (SIGTERM): asked 1 worker to stop, will kill it in 30 s. A second SIGTERM shortens that to 2 s"'
expect "no other worker was started" eval '! lines_in 2 pids'

# A rank that can't be started: the program removes itself, or more processes are not allowed.
printf '#!/bin/sh\necho $$ >>pids\nrm -f vanishing\nsleep 5\n' >vanishing
chmod +x vanishing
rm -f pids
run --nproc-per-node=64 ./vanishing
if [ "$code" = 0 ]; then
    echo "     (all were started before the first could remove it)"
else
    expect "a later rank that can't be started: 127" is "$code" 127
    expect "those before it are gone" gone
fi

if [ "$(id -u)" = 0 ] && setpriv --reuid=64321 --clear-groups true 2>/dev/null; then
    chmod 755 "$work" && chmod 777 "$TMPDIR"
    mkdir -m 777 free && cp "$CTRUN" free/ctrun && cd free || exit 1
    : >pids && chmod 666 pids
    CTRUN=$PWD/ctrun
    # As many as that user has already, and room for ctrun, its guard and six more.
    setsid setpriv --reuid=64321 --clear-groups sh -c 'for i in $(seq 70); do sleep 100 & done; : >others; wait' &
    others=$!
    within 30 [ -e others ]
    limit=$(($(ps -o pid= -L -u 64321 | wc -l) + 8))
    setpriv --reuid=64321 --clear-groups bash -c "ulimit -u $limit; exec timeout 50 \"\$@\"" - "$CTRUN" --nproc-per-node=60 sh -c 'echo $$$$ >>pids; exec sleep 1000' >out 2>err </dev/null
    code=$? err=$(cat err)
    expect "no more processes allowed: 1, and it is said" eval '[ $code = 1 ] && has "$err" "no more processes are allowed"'
    expect "the ranks before are gone" gone
    kill -- -$others
    cd ..
    CTRUN=$CT_BUILD/bin/ctrun
fi

# Before there are workers: alone in a job of two nodes.
for name in TERM INT; do
    for how in "--master-addr=127.0.0.1 --master-port=" "--rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:"; do
        new_port
        begin --nnodes=2 $how$port sh -c 'echo ran >>log'
        within 30 answers
        start=$(now_ms)
        kill -$name $ctrun
        ended
        expect "SIG$name while the other node is awaited (${how%%=*})" is "$code" $((128 + $(kill -l $name)))
        expect "at once" [ $took -lt 20000 ]
        expect "nothing is left" is "$(ls "$TMPDIR")$(cat log 2>/dev/null)" ""
    done
done

# A node that waits for a third one is told to stop: the job is over for all.
new_port
three="--nnodes=3 --master-addr=127.0.0.1 --master-port=$port"
begin $three --node-rank=0 sh -c 'echo ran >>log'
within 30 answers
"$CTRUN" $three --node-rank=1 sh -c 'echo ran >>log' >out2 2>err2 </dev/null &
second=$!
within 30 grep -q "2/3 nodes" err
kill -TERM $second
wait $second
expect "a node that awaits others is told to stop" is $? 143
ended
expect "and node 0 ends so, too" is "$code" 143

# A node whose workers are done waits for the others; a signal does not wait.
new_port
begin --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:$port --rdzv-id=j --local-addr=127.0.0.2 sh -c 'echo $$$$ >>pids; exec sleep 100'
first=$ctrun
"$CTRUN" --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:$port --rdzv-id=j --local-addr=127.0.0.3 sh -c 'exit 0' >out2 2>err2 </dev/null &
ctrun=$!
within 30 lines_in 1 pids
sleep 1
start=$(now_ms)
kill -TERM $ctrun
ended
expect "a signal ends the wait for other nodes at once" [ "$code" != 0 -a $took -lt 20000 ]
kill -TERM $first 2>/dev/null
wait $first
expect "the other node ends too" gone
finish
