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

new_job
on_terminal elastic "$CTRUN" $meet --nnodes=1:2 --nproc-per-node=1 --rdzv-conf=last_call_timeout=3 echo alone
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
finish
