# SPDX-License-Identifier: Apache-2.0
# A network in which not even the loopback is up, as in some containers.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
unshare -n true 2>/dev/null || { echo "skipped: no network namespaces here"; exit 77; }

CTRUN="unshare -n $CTRUN"
for words in "" --standalone "--master-addr=localhost" \
    "--nnodes=2 --node-rank=0 --master-addr=127.0.0.1 --master-port=29511" \
    "--nnodes=2 --node-rank=1 --master-addr=127.0.0.1 --master-port=29511" \
    "--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:29511"; do
    timeout 20 $CTRUN --nproc-per-node=2 $words touch ran >.out 2>.err </dev/null
    code=$? out=$(cat .out) err=$(grep -v 'MASTER\|master' .err)
    expect "it is said (${words:-alone})" matches "$err" '^ctrun: [^ ]+: the loopback interface is down \(ip link set lo up\)$'
    expect "1" is "$code" 1
    expect "and no worker was started" [ ! -e ran ]
done

# The loopback is up, but it has lost its address.
timeout 20 unshare -n sh -c 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && exec "$@"' - "${CTRUN#unshare -n }" --nproc-per-node=2 touch ran >.out 2>.err </dev/null
code=$? out=$(cat .out) err=$(cat .err)
expect "a loopback without its address is named, with the remedy" is "$code $err" "1 ctrun: 127.0.0.1: the loopback interface has no address 127.0.0.1 (ip addr add 127.0.0.1/8 dev lo)"

# A rank that was started by hand.
out=$(RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 timeout 20 unshare -n "$CT_BUILD/bin/hello" 2>&1)
code=$?
expect "a rank says it, too" has "$out" "the loopback interface is down (ip link set lo up)"
expect "at once" is "$code" 1
finish
