# SPDX-License-Identifier: Apache-2.0
# A host's name that does not resolve yet, as a pod's in the first minute: nodes and ranks wait for it, node 0 too, and
# one that never comes is named in the end.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
export OMP_NUM_THREADS=1
trap 'kill_agents; no_hosts; cd /; rm -rf "$work"' EXIT
hosts 2 || { echo "skipped: no right to make hosts of namespaces"; exit 77; }
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret && chmod 600 secret
export CT_STORE_SECRET_FILE=$work/secret
hello=$CT_BUILD/bin/hello

# Each host has a name file of its own.
for i in 0 1; do
    ${on[$i]} cat /etc/hosts >hosts$i
    ${on[$i]} sh -c "umount /etc/hosts && mount --bind $work/hosts$i /etc/hosts" || exit 1
done
name=0
new_name() { name=$((name + 1)); N=train-$name.workers; }
known_on() { echo "10.77.0.1 $N" >>"hosts$1"; }
said() { grep -q "$2" "$1.err"; }
port=29500

# A fixed job: node 0 listens at once, though it does not know its own name; the other one comes when it finds it; then
# node 0's ranks wait for the name.
new_name
meet="--nnodes=2 --master-addr=$N --master-port=$port"
agent_on 1 n1 --node-rank=1 "$hello"
agent_on 0 n0 --node-rank=0 sh -c "touch began; exec $hello"
expect "node 0 says what it does" within 20 said n0 "the name $N does not resolve: .*; the store listens on all interfaces, port $port"
expect "after some seconds the other one says what it waits for" within 20 said n1 "waiting [0-9]* s for node 0: the name $N does not resolve"
known_on 1
expect "when it finds the name, the round begins" within 20 test -e began
known_on 0
for n in 0 1; do
    ended n$n
    expect "and node $n ends well" is "$code" 0
done

# An elastic one: whose address it is can be said only when there is one.
new_name
meet="--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=$N:$port --rdzv-id=x"
agent_on 0 n0 "$hello"
agent_on 1 n1 "$hello"
sleep 0.3
known_on 1
known_on 0
for n in 0 1; do
    ended n$n
    expect "then they meet, node $n" is "$code" 0
done
new_name
meet="--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=$N:$port --rdzv-id=x"
agent_on 0 n0 "$hello"
sleep 0.3
kill -TERM "${pid[n0]}"
ended n0 10
expect "one that waits for the name ends when it is told to" is "$code" 143

# Ranks without ctrun.
new_name
export MASTER_ADDR=$N MASTER_PORT=$port WORLD_SIZE=2
RANK=1 CT_LOG=warn ${on[1]} "$hello" >r1.out 2>r1.err &
one=$!
RANK=0 ${on[0]} "$hello" >r0.out 2>r0.err &
zero=$!
sleep 0.3
known_on 0
known_on 1
wait $zero; expect "rank 0 waits for its name" is "$? $(cat r0.out)" "0 rank 0 of 2: the sum is 3"
wait $one; expect "and rank 1 for rank 0's" is "$? $(cat r1.out)" "0 rank 1 of 2: the sum is 3"

# Names that never come.
new_name
export MASTER_ADDR=$N
RANK=1 CT_TIMEOUT_MS=1500 timeout 60 ${on[1]} "$hello" >r1.out 2>r1.err
expect "a rank's patience ends" has "$?, $(cat r1.err)" "1, "
expect "with the name" matches "$(cat r1.err)" "the name $N did not resolve in [0-9]+ ms: "
unset MASTER_ADDR MASTER_PORT WORLD_SIZE
meet="--nnodes=2 --master-addr=$N --master-port=$port --rdzv-conf=timeout=2"
agent_on 0 n0 --node-rank=0 true
agent_on 1 n1 --node-rank=1 true
ended n0; expect "node 0 names it, and the option" is "$code $(grep -c "$N port $port (--rdzv-conf=timeout=...)" n0.err)" "1 1"
ended n1; expect "and so does node 1" is "$code $(grep -c "node 0 did not come within 2 s (--rdzv-conf=timeout=...): the name $N does not resolve" n1.err)" "1 1"
meet="--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=$N:$port --rdzv-id=x --rdzv-conf=join_timeout=1"
agent_on 0 n0 true
ended n0; expect "and a node of an elastic job" is "$code $(grep -c "$N did not resolve within 1 s (--rdzv-conf=join_timeout=...)" n0.err)" "1 1"
finish
