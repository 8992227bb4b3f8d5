# SPDX-License-Identifier: Apache-2.0
# The line that is rewritten in place on a terminal while ctrun waits for nodes or hosts, and
# ct_bench measures; never where there is no terminal.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
script -qec true /dev/null >/dev/null 2>&1 </dev/null || { echo "skipped: no script(1), or no terminals here"; exit 77; }
export OMP_NUM_THREADS=1 TERM=xterm NO_COLOR=1
wipe=$'\r\033[K'

# on_terminal NAME WORDS...: COMMAND in the background on a terminal of its own; NAME.tty is what that gets.
on_terminal() {
    local name=$1
    shift
    : >"$name.tty"
    timeout 120 script -qefc "$*" "$name.tty" </dev/null >/dev/null 2>&1 &
    pid[$name]=$!
}
shows() { grep -aqE "$2" "$1.tty"; }
# What the terminal of NAME shows at the end: of each line what stands behind the last wipe.
seen() { sed -e '/^Script \(started\|done\)/d' -e 's/\r*$//' -e "s/.*\r\x1b\[K//" "$1.tty" | grep -a .; }

new_job
on_terminal elastic "$CTRUN" $meet --nnodes=1:2 --nproc-per-node=1 --rdzv-conf=last_call_timeout=3 echo alone
new_port
fixed="$CTRUN --master-addr=127.0.0.1 --master-port=$port --nproc-per-node=1"
on_terminal last $fixed --nnodes=3 --node-rank=2 --rdzv-conf=timeout=78 echo two
expect "a node that waits for node 0 shows for how long and until when" within 30 shows last "ctrun: waiting [0-9]+ of 78 s for node 0 at 127.0.0.1 port $port"
on_terminal first $fixed --nnodes=3 --node-rank=0 --rdzv-conf=timeout=77 echo zero
expect "node 0 shows how many nodes have joined" within 30 shows first 'ctrun: waiting [0-9]+ of 77 s: 2 of 3 nodes have joined'
expect "so does the other node that waits" within 30 shows last 'ctrun: waiting [0-9]+ of 77 s: 2 of 3 nodes have joined'
$fixed --nnodes=3 --node-rank=1 echo one >plain.out 2>plain.err </dev/null
expect "where there is no terminal there is no such line" is "$? $(cat plain.out plain.err)" "0 one"
wait "${pid[first]}" "${pid[last]}"
expect "it is gone when the workers begin" is "$(seen first | grep -v 'waiting [0-9]* s:') $(seen last | grep -v 'waiting [0-9]* s')" "[0] zero [2] two"

new_port
nobody="--master-addr=127.0.0.1 --master-port=$port --nnodes=2 --node-rank=1 --rdzv-conf=timeout=2 true"
on_terminal quiet "$CTRUN" --quiet $nobody
on_terminal dumb TERM=dumb "$CTRUN" $nobody
"$CTRUN" $nobody >plain.out 2>plain.err </dev/null
wait "${pid[quiet]}" "${pid[dumb]}"
expect "nor with --quiet" lacks "$(cat quiet.tty)" "waiting"
expect "which leaves the error" shows quiet 'node 0 did not come within 2 s'
expect "nor on a terminal that can't rewrite a line" lacks "$(cat dumb.tty)" "$wipe"
expect "nor in a file" is "$(grep -c . plain.err) $(grep -c waiting plain.err)" "1 0"

wait "${pid[elastic]}"
expect "an elastic job shows when it begins" shows elastic 'ctrun: waiting [0-9]+ s: 1 of 1 to 2 nodes have joined; it begins in [12] s'
expect "and then its workers' lines alone" is "$(seen elastic)" alone

# Instead of ssh: a host that answers when it is let, and one that never does.
cat >shell <<'END'
#!/bin/sh
until [ -e "$PWD/answer" ]; do sleep 0.05; done
echo "$1: no such host" >&2
exit 255
END
chmod +x shell
on_terminal hosts "$CTRUN" --hosts=far0,far1 --ssh="$PWD/shell" true
expect "--hosts shows how many hosts have answered" within 30 shows hosts 'ctrun: waiting [0-9]+ of 60 s: 0 of 2 hosts have answered'
touch answer
wait "${pid[hosts]}"
expect "and lines of the log take its place" has "$(cat hosts.tty)" "${wipe}ctrun: host far"

# ct_bench, of which rank 0 writes to a pipe of ctrun's: for as long as its line needs to come.
bench="$CT_BUILD/bin/ct_bench --ops=all_reduce --in-place"
shows_case() { shows "$1" "$1: [2-9] of [0-9]+, [0-9]+ s, about [0-9]+ s to go: all_reduce, "; }
on_terminal ct_bench "$CTRUN" --nproc-per-node=2 $bench --sizes=8,16,32,64 --time=600
on_terminal "ct_bench --tune" "$CTRUN" --nproc-per-node=2 $bench --sizes=8 --time=100 --tune=tuning
"$CTRUN" --nproc-per-node=2 $bench --sizes=8,64 --time=600 >plain.out 2>plain.err </dev/null
expect "ct_bench in a file shows rows only" is "$? $(grep -c '^all_reduce' plain.out) $(cat plain.err)" "0 2 "
wait "${pid[ct_bench]}" "${pid[ct_bench --tune]}"
expect "ct_bench on a terminal shows which row it measures, and how long still" shows_case ct_bench
expect "and --tune which algorithm" shows_case "ct_bench --tune"
expect "what stands there in the end are the rows" is "$(seen ct_bench | grep -vc '^\[0\] \(#\|all_reduce\)')" 0
expect "all of them" is "$(seen ct_bench | grep -c '^\[0\] all_reduce')" 4
on_terminal alone "$CT_BUILD/bin/ct_bench" --ops=all_reduce --sizes=4M,8M,16M --time=500

# Scripts.
cat >job <<END
#!/bin/bash
. "$CT_SOURCE/scripts/progress"
echo \$\$ >job.pid
work() { echo \$BASHPID >work.pid; echo '[7/9] Building'; until [ -e "\$1" ]; do sleep 0.05; done; return 5; }
with_progress work log work "\$1"
echo "it ended with \$?"
END
chmod +x job
on_terminal job ./job stop
expect "a script shows how far its build is" within 30 shows job 'work: 7/9, [0-9]+ s'
touch stop
wait "${pid[job]}"
expect "and has its exit status" is "$(seen job)" "it ended with 5"
expect "without a terminal there is nothing" is "$(./job stop 2>&1)" "it ended with 5"
on_terminal broken ./job never
expect "a script that runs" within 30 shows broken 'work: 7/9, [0-9]+ s'
kill -TERM "$(cat job.pid)"
ended_both() { ! alive "$(cat job.pid)" && ! alive "$(cat work.pid)"; }
expect "and is told to stop takes its command along" within 30 ended_both
if command -v python3 >/dev/null; then
    cat >bench.py <<END
import os, sys, time
sys.path.insert(0, "$CT_SOURCE/bench")
from progress import Progress
progress = Progress("bench", 3 if os.environ["RANK"] == "0" else 0)
for case in "abc" if progress.of else "":
    progress.case(case)
    time.sleep(0.6)
progress.wipe()
print("row", os.environ["RANK"])
END
    on_terminal python "$CTRUN" --nproc-per-node=2 --no-fold python3 bench.py
    wait "${pid[python]}"
    expect "and so does a benchmark in Python" shows python 'bench: 3 of 3, [0-9]+ s, about [0-9]+ s to go: c'
    expect "which takes it away, too" is "$(seen python | sort | tr '\n' ' ')" "[0] row 0 [1] row 1 "
fi
wait "${pid[alone]}"
expect "ct_bench shows its line without ctrun, too" shows alone "ct_bench: [2-6] of 6, [0-9]+ s, about [0-9]+ s to go: all_reduce, "
finish
