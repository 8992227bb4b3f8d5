# SPDX-License-Identifier: Apache-2.0
# A rank that is killed is named by the ctruns of all nodes, with its signal, and all end with
# 137: on 2, 3 and 4 hosts, of static jobs and with c10d.  Ranks sum 8 bytes in a loop, so that survivors fail
# of the death, and exit with 40, while it is told.  CT_KILLS=200 for more than a few, CT_SEED=N for the same again.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
export OMP_NUM_THREADS=1
trap 'kill_agents; no_hosts; cd /; rm -rf "$work"' EXIT
hosts 4 || { echo "skipped: no right to make hosts of namespaces"; exit 77; }
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret && chmod 600 secret
export CT_STORE_SECRET_FILE=$work/secret
endpoint=h0
kills=${CT_KILLS:-6}
RANDOM=${CT_SEED:=$RANDOM}
echo "CT_SEED=$CT_SEED"

up() { [ "$(ls pid.* 2>/dev/null | wc -l)" = "$1" ]; }
kill_one() { # KIND NODES WORKERS VICTIM
    local kind=$1 nodes=$2 workers=$3 victim=$4 node
    kill_agents
    rm -f pid.*
    new_job
    [ "$kind" = static ] && meet="--master-addr=h0 --master-port=$port"
    for ((node = 0; node < nodes; node++)); do
        [ "$kind" = static ] && set -- --node-rank=$node || set --
        agent_on $node h$node --nnodes="$nodes" --nproc-per-node="$workers" "$@" "$CT_BUILD/tests/e2e_sums"
    done
    within 30 up $((nodes * workers)) || { echo "not all are up"; cat h?.err; failed=1; return; }
    sleep 0.$((RANDOM % 3))
    kill -KILL "$(cat pid.$victim)"
    for ((node = 0; node < nodes; node++)); do
        ended h$node
        [ "$code" = 137 ] && matches "$err" "rank $victim \(pid [0-9]+.* was killed by SIGKILL" || {
            echo "FAIL $kind, $nodes nodes of $workers, rank $victim killed: node $node ends with $code"
            sed 's/^/     /' h$node.err | head -40
            failed=1
        }
    done
}

for ((i = 0; i < kills; i++)); do
    nodes=$((2 + i / 2 % 3)) workers=$((1 + RANDOM % 3))
    kind=static
    [ $((i % 2)) = 0 ] || kind=c10d
    kill_one $kind $nodes $workers $((RANDOM % (nodes * workers)))
done
echo "$kills ranks were killed"
finish
