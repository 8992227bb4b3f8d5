# SPDX-License-Identifier: Apache-2.0
# Hosts that do not fit, do not answer or stand still: each is named on the nodes that it concerns.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
need_hosts 3

# fixed HOST NAME OPTIONS...: of a job of three nodes
fixed() {
    local meet="--nnodes=3 --master-addr=h0 --master-port=$port"
    agent_on "$@"
}
said() { grep -qE "$2" "$1.err"; }
stays() { touch "$1"; until [ -e over ]; do sleep 0.05; done; }
export -f stays

# Three elastic hosts at the time of all that follows: one loses its cable, then one stands still.
new_job
for i in 0 1 2; do agent_on $i e$i --nnodes=1:3 --rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=20 bash -c "stays up.$i"; done
expect "three hosts" within 30 test -e up.0 -a -e up.1 -a -e up.2
unplug 2

new_port # on hosts 0 and 1
fixed 0 a --node-rank=0 true
fixed 1 b --node-rank=1 true
expect "both are there" within 60 said a 'waiting [0-9]+ s: 2/3 nodes are at h0'
fixed 1 c --node-rank=1 true
ended c
expect "a rank that is taken: refused" is "$code" 1
expect "  on its host, which names the node that has it" matches "$err" "node 0 refused this node: h1 \(pid ${pid[b]}\) has --node-rank=1 already"
expect "  and on node 0, with both" within 30 said a "node 1 \(h1\) was refused: h1 \(pid ${pid[b]}\) has --node-rank=1 already"
echo 00112233445566778899aabbccddeeff >other && chmod 600 other
CT_STORE_SECRET_FILE=other fixed 1 c --node-rank=2 true
ended c
expect "another secret: refused" is "$code" 1
expect "  on its host" has "$err" "the store at h0 port $port has another secret than this process"
expect "  and on node 0, with its address" within 30 said a 'the client at 10.77.0.2 port [0-9]+ was closed: it does not know the job.s secret'
CT_STORE_SECRET_FILE=other fixed 0 c --node-rank=2 true
ended c
expect "  and so is another host's" within 30 said a 'the client at 10.77.0.1 port [0-9]+ was closed: it does not know the job.s secret'
CT_STORE_SECRET_FILE= fixed 1 c --node-rank=2 true
ended c
expect "no secret: refused" is "$code" 1
expect "  which its host says" has "$err" "the store at h0 port $port wants the job's secret, and this process has none (CT_STORE_SECRET, CT_STORE_SECRET_FILE)"
fixed 1 c --node-rank=2 --master-addr=nowhere --rdzv-conf=timeout=1 true
ended c
expect "a name that does not resolve ends" is "$code" 1
expect "  within its time, saying so once" is "$(grep -c 'node 0 did not come' <<<"$err")" 1
expect "  with the name" has "$err" "node 0 did not come within 1 s (--rdzv-conf=timeout=...): the name nowhere does not resolve"

for i in 0 1; do
    expect "a cable is cut: e$i names the host" within 30 said e$i 'node h2 \(pid [0-9]+\): its ctrun was lost: its host does not answer any more; the workers here start again, 2 in all'
done
expect "the host itself names the other end" within 30 said e2 "the coordinator at h0 port [0-9]+ was lost: its host does not answer any more"
rm up.2
plug 2
expect "and comes back with the cable" within 30 test -e up.2
touch over
for i in 0 1 2; do
    ended e$i
    expect "to a good end, e$i" is "$code" 0
done

# A ctrun that stood still was given up by the other end, which is no fault of that one.
new_port
rm -f over up.*
for i in 0 1 2; do fixed $i f$i --node-rank=$i --rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=3 bash -c "stays up.$i"; done
expect "three hosts of a fixed job" within 30 test -e up.0 -a -e up.1 -a -e up.2
kill -STOP "${pid[f2]}"
for i in 0 1; do
    ended f$i
    expect "one stands still: f$i ends" is "$code" 1
    expect "  and names it" has "$err" "node 2 (h2): its ctrun was lost: it has not answered for 3 s. ctrun stopped the workers here"
done
kill -CONT "${pid[f2]}"
ended f2
expect "it ends, too" is "$code" 1
expect "  and says why" matches "$err" "node 0 at h0 port $port was lost: this ctrun had not run for [0-9]+ s, and the connection was closed"
finish
