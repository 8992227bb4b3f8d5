# SPDX-License-Identifier: Apache-2.0
# A ctrun without workers (--nproc-per-node=0) serves an elastic job: it is no node, and any node may die,
# that of rank 0 too.  If it dies itself and is started again, the nodes find it.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
export OMP_NUM_THREADS=1
trap 'kill_agents; no_hosts; cd /; rm -rf "$work"' EXIT

refused() {
    run "${@:2}" true
    expect "no workers with $1: refused" is "$code" 2
    expect "  with what there is to do" matches "$err" "--nproc-per-node=0: 0 workers are too few for a job. Without workers, ctrun can host the rendezvous of an elastic job: give --rdzv-backend=c10d"
}
refused "one node" --nproc-per-node=0
refused "--standalone" --standalone --nproc-per-node=0
refused "a fixed job" --nproc-per-node=0 --nnodes=2 --node-rank=0 --master-addr=localhost --master-port=29400
refused "an elastic job of one node" --nproc-per-node=0 --nnodes=1 --rdzv-backend=c10d
refused "is_host=0" --nproc-per-node=0 --nnodes=2 --rdzv-backend=c10d --rdzv-conf=is_host=0
TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 run --nproc-per-node=0 --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 true
expect "no worker is there to host the store of TORCH_DISABLE_SHARE_RDZV_TCP_STORE" is "$code" 1
expect "  which is said" has "$err" "has worker 0 host the store at --rdzv-endpoint, but with --nproc-per-node=0 no worker is there"

hosts 3 || { echo "skipped: no right to make hosts of namespaces"; [ $failed = 0 ] && exit 77; finish; }
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret && chmod 600 secret
export CT_STORE_SECRET_FILE=$work/secret
endpoint=h0

cat >stay <<'EOF'
echo "$RANK/$WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $MASTER_ADDR $TORCHELASTIC_RESTART_COUNT" >>$(hostname).ranks
until [ -e over ]; do sleep 0.05; done
EOF
shows() { [ "$(tail -n 1 "$1.ranks" 2>/dev/null)" = "$2" ]; }
both() { shows h1 "$1" && shows h2 "$2"; }
serve() { agent_on 0 h0 --nproc-per-node=0 "$@" not-on-this-host; }
fresh() { kill_agents; rm -f over ./*.ranks; new_job; }

fresh
serve --nnodes=1:2 --events=events
for node in 1 2; do agent_on $node h$node --nnodes=1:2 bash stay; done
expect "two nodes are there, and the host that serves is none" within 30 both "0/2 0/2 h0 0" "1/2 1/2 h0 0"
killed h1
expect "the node of rank 0 dies: the other goes on" within 30 shows h2 "0/1 0/1 h0 0"
rm h1.ranks
agent_on 1 h1 --nnodes=1:2 bash stay
expect "it comes back behind the one that was there" within 30 both "1/2 1/2 h0 0" "0/2 0/2 h0 0"
touch over
for node in 1 2 0; do
    ended h$node
    expect "all end well, h$node" is "$code" 0
done
expect "the serving node says what happened" matches "$err" "node h1 \(pid [0-9]+\): its ctrun was lost: its connection was closed; the workers start again, 1 in all"
expect "and has no worker in its events" is "$(grep -c worker_ events)" 0
expect "but the rounds" is "$(grep -o '"node":-1.*"nodes":[0-9]' events | grep -o '.$' | tr -d '\n')" 212

fresh
serve --nnodes=2 --max-restarts=0
agent_on 1 h1 --nnodes=2 "$CT_BUILD/bin/hello"
agent_on 2 h2 --nnodes=2 --nproc-per-node=2 "$CT_BUILD/bin/hello"
all=
for node in 1 2 0; do
    ended h$node
    expect "ranks of C meet at the store there, h$node" is "$code" 0
    all+=$out$'\n'
done
expect "as one world" is "$(grep -c 'of 3: the sum is 6' <<<"$all")" 3

fresh
serve --nnodes=2
agent_on 1 h1 --nnodes=2 bash -c 'until [ -e h2.ranks ]; do sleep 0.05; done; exit 7'
agent_on 2 h2 --nnodes=2 bash stay
for node in 1 2 0; do
    ended h$node
    expect "a failure is the code of all, h$node" is "$code" 7
done
expect "the serving node names the failed rank and its node" matches "$err" "node h1 \(pid [0-9]+\): rank 0 \(pid [0-9]+\) exited with code 7\.$"

fresh
serve --nnodes=2
for node in 1 2; do agent_on $node h$node --nnodes=2 bash stay; done
expect "two nodes once more" within 30 both "0/2 0/2 h0 0" "1/2 1/2 h0 0"
killed h0
rm h1.ranks h2.ranks
serve --nnodes=2
expect "the serving node dies and is started again: the nodes find it" within 30 both "0/2 0/2 h0 0" "1/2 1/2 h0 0"
agent_on 0 second --nproc-per-node=0 --nnodes=2 true
ended second
expect "a second one has no place" is "$code" 1
expect "  and names the process that has it" matches "$err" "--nproc-per-node=0: the rendezvous can't be served here: port $port on h0 is in use by pid [0-9]+ \(ctrun\)"
kill -TERM "${pid[h0]}"
for node in 1 2 0; do
    ended h$node
    expect "told to stop it ends the job, h$node" is "$code" 143
done
finish
