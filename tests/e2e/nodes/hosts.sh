# SPDX-License-Identifier: Apache-2.0
# Nodes that are hosts, each with a network and a name of its own: they meet by
# name, go on without one that dies or is cut off, and take it back.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
need_hosts 3
quick="--rdzv-conf=last_call_timeout=1,keep_alive_interval=1"

cat >stay <<'END'
echo "$RANK/$WORLD_SIZE $(hostname) $MASTER_ADDR:$MASTER_PORT" >>$(hostname).ranks
echo $$ >>$(hostname).workers
until [ -e over ]; do sleep 0.05; done
END
in_world() {
    local node
    for node in $1; do
        [[ $(tail -n 1 "$node.ranks" 2>/dev/null) == */"$2 "* ]] || return 1
    done
}
worker_gone() { ! alive "$(tail -n 1 "$1.workers")"; }
fresh() { kill_agents; rm -f over ./*.ranks ./*.workers; new_job; }
all_start() {
    local node
    for node in 2 1 0; do agent_on $node h$node "$@" bash stay; done
}
all_end() {
    local node
    touch over
    for node in $1; do
        ended "h$node"
        expect "h$node ends well" is "$code" 0
    done
}

# The host of the store is who has its address, not who comes first.
fresh
all_start --nnodes=3
expect "three hosts" within 30 in_world "h0 h1 h2" 3
expect "ranks follow the names" is "$(cut -d' ' -f1,2 h?.ranks)" "0/3 h0
1/3 h1
2/3 h2"
expect "one master, by the name of rank 0's host" matches "$(cut -d' ' -f3 h?.ranks | sort -u)" '^h0:[0-9]+$'
all_end "0 1 2"

# The workers reach that store: examples/hello meets there.
fresh
for node in 0 1 2; do agent_on $node h$node --nnodes=3 --nproc-per-node=2 "$CT_BUILD/bin/hello"; done
for node in 0 1 2; do
    ended h$node 60
    expect "six ranks of C on three hosts, h$node" is "$code" 0
done

# With addresses for names, h2's lower than h1's.
fresh
agent_on 0 h0 --nnodes=2 --local-addr=10.77.0.1 bash stay
agent_on 2 h2 --nnodes=2 --local-addr=10.77.0.3 bash stay
expect "two hosts by their addresses" within 30 in_world "h0 h2" 2
expect "the master is where the endpoint is" has "$(cat h2.ranks)" "h0:"
all_end "0 2"

# A ctrun is killed, and comes back.
fresh
all_start --nnodes=1:3 $quick
expect "three elastic hosts" within 30 in_world "h0 h1 h2" 3
killed h2
expect "a node is killed: the others go on" within 30 in_world "h0 h1" 2
expect "its worker is gone" within 30 worker_gone h2
agent_on 2 h2 --nnodes=1:3 $quick bash stay
expect "it comes back" within 30 in_world "h0 h1 h2" 3
all_end "0 1 2"

# The cable.  Both sides have the rest of the world to decide upon.
fresh
all_start --nnodes=1:3 $quick
within 30 in_world "h0 h1 h2" 3
unplug 2
expect "a host is cut off: the others go on" within 60 in_world "h0 h1" 2
expect "who is alone without the store stops its workers" within 60 worker_gone h2
ended h2 60
expect "and ends" is "$code" 1
plug 2
agent_on 2 h2 --nnodes=1:3 $quick bash stay
expect "it comes back with the cable" within 30 in_world "h0 h1 h2" 3
all_end "0 1 2"

# A host that answers nobody: its ctrun is stopped.
fresh
all_start --nnodes=1:3 $quick
within 30 in_world "h0 h1 h2" 3
kill -STOP "${pid[h2]}"
expect "a host is frozen: the others go on" within 60 in_world "h0 h1" 2
kill -CONT "${pid[h2]}"
expect "thawed it joins them again" within 60 in_world "h0 h1 h2" 3
all_end "0 1 2"

# The store's host.
fresh
all_start --nnodes=1:3 $quick
within 30 in_world "h0 h1 h2" 3
killed h0
for node in 1 2; do
    ended h$node 30
    expect "the store's host is killed: h$node ends" is "$code" 1
    expect "and says what is lost" has "$err" "h0 port $port"
    expect "and leaves no worker" worker_gone h$node
done
finish
