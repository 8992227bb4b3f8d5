# SPDX-License-Identifier: Apache-2.0
# Who may use the store: another user of this host and a host without the job's
# secret read and write nothing; a worker in another network namespace (a
# container, say) with the secret joins the job.  Needs root.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
export OMP_NUM_THREADS=1
[ "$(id -u)" -eq 0 ] || { echo "skipped: only root has other users and networks"; exit 77; }

# How many of the 4 bytes of a PING come back (VALIDATE, SET "/k" "v", PING).
cat >knock <<'END2'
trap '' PIPE
exec 3<>/dev/tcp/$1/$2 || exit 1
{
    printf "\x00\xce\xf7\x85\x3c"
    printf "\x01\x02\0\0\0\0\0\0\0/k\x01\0\0\0\0\0\0\0v"
    printf "\x0dnonc"
} >&3 2>/dev/null
timeout 5 head -c 4 <&3 2>/dev/null | wc -c
END2
# Says how many keys there are, when told to.
cat >serve <<'END2'
echo $MASTER_PORT >$1/port.new && mv $1/port.new $1/port
until [ -e $1/count ]; do sleep 0.05; done
exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT
printf "\x00\xce\xf7\x85\x3c\x07" >&3
head -c 8 <&3 | od -An -tu8 | tr -d ' '
END2
chmod 755 . && chmod 644 knock serve && chmod 711 "$work"

# serving NAME OPTIONS...: a ctrun in the background; $port
serving() {
    local name=$1
    shift
    mkdir "$name"
    timeout 120 "$CTRUN" --nproc-per-node=1 "$@" bash serve "$work/$name" >"$name/out" 2>"$name/err" </dev/null &
    server=$!
    within 30 test -e "$name/port"
    port=$(cat "$name/port")
}
# $keys, and what ctrun said in $err
served() {
    touch "$1/count"
    wait $server
    keys=$(cat "$1/out")
    err=$(cat "$1/err")
}

serving users
expect "our own uid is let in" is "$(bash knock 127.0.0.1 "$port")" 4
expect "another uid reads nothing" is "$(setpriv --reuid=65534 --regid=65534 --clear-groups bash knock 127.0.0.1 "$port" 2>/dev/null)" 0
served users
expect "and writes nothing: one key, ours" is "$keys" 1
expect "which is said" matches "$err" 'store: the client at 127.0.0.1 port [0-9]+ was closed: it belongs to another user'

command -v ip >/dev/null || { echo "skipped: networks need iproute2"; finish; }
# Not by `ip netns exec`, which wants to mount things and can't where / is no mount point.
net=ctdoor$$ lan=10.213.$(($$ % 250))
there="nsenter --net=/run/netns/$net"
cleanup() { ip netns del $net 2>/dev/null; ip link del $net 2>/dev/null; cd /; rm -rf "$work"; }
trap cleanup EXIT
ip netns add $net 2>/dev/null || { echo "skipped: no right to make networks"; finish; }
ip link add $net type veth peer name inner netns $net &&
    ip addr add $lan.1/24 dev $net && ip link set $net up &&
    $there ip addr add $lan.2/24 dev inner && $there ip link set inner up &&
    $there ip link set lo up || { echo "skipped: no network could be made"; finish; }

serving strangers --local-addr=$lan.1
expect "a host without the secret reads nothing" is "$($there bash knock $lan.1 "$port" 2>/dev/null)" 0
CT_STORE_SECRET=not-the-right-one-at-all run --nnodes=1 $there env MASTER_ADDR=$lan.1 MASTER_PORT=$port WORLD_SIZE=2 RANK=1 CT_GENERATION= CT_STORE_SECRET=not-the-right-one-at-all "$CT_BUILD/bin/hello"
expect "one with another secret neither" has "$err" "has another secret than this process"
served strangers
expect "and they write nothing" is "$keys" 0
expect "which is said" has "$err" "it comes from another host without the job's secret"

serving friends --local-addr=$lan.1 --store-allow=$lan.0/24
expect "a network that is allowed is let in" is "$($there bash knock $lan.1 "$port")" 4
served friends

run --nproc-per-node=2 --local-addr=$lan.1 bash -c "if [ \$RANK = 1 ]; then exec $there $CT_BUILD/bin/hello; else exec $CT_BUILD/bin/hello; fi"
expect "a worker in another network joins by the job's secret" is "$code" 0
run --nproc-per-node=2 --local-addr=$lan.1 bash -c "if [ \$RANK = 1 ]; then unset CT_STORE_SECRET; exec $there $CT_BUILD/bin/hello; else CT_TIMEOUT_MS=3000 exec $CT_BUILD/bin/hello; fi"
expect "and not without" is "$code" 1

# Two nodes: PyTorch's clients have no secret, so the other node's ctrun is asked
# whose they are.
echo 0123456789abcdef0123 >secret && chmod 600 secret
export CT_STORE_SECRET_FILE=$work/secret
new_port
both="--nnodes=2 --master-addr=$lan.1 --master-port=$port"
cat >strange <<'END2'
bash knock $MASTER_ADDR $MASTER_PORT >mine
setpriv --reuid=65534 --regid=65534 --clear-groups bash knock $MASTER_ADDR $MASTER_PORT >theirs 2>/dev/null
true
END2
timeout 120 $there "$CTRUN" $both --node-rank=1 bash strange 2>err1 </dev/null &
run $both --node-rank=0 true
wait $!
expect "two hosts with one secret are a job" is "$code $?" "0 0"
expect "the other node's programs are let in" is "$(cat mine)" 4
expect "but not those of another user there" is "$(cat theirs)" 0
expect "which is said" has "$err" "the launcher of its host says that it belongs to another user there"
expect "no open door is said" lacks "$err" "no job secret"

timeout 120 "$CTRUN" $both --node-rank=0 true 2>err0 </dev/null &
CT_STORE_SECRET=something-else-entirely timeout 120 $there "$CTRUN" $both --node-rank=1 true 2>err1 </dev/null
expect "a node with another secret is refused" is "$?" 1
expect "and knows why" has "$(cat err1)" "has another secret than this process"
kill -TERM $!
wait $!

# The cable: both sides notice, stop their workers and say whom they lost.
timeout 120 $there "$CTRUN" $both --node-rank=1 sleep 60 2>err1 </dev/null &
run $both --node-rank=0 sh -c "sleep 0.5; ip link set $net down; sleep 60"
wait $!
expect "a network that is cut ends the job on both sides" is "$code $?" "1 1"
expect "node 0 names the node that it lost" matches "$err" "node 1 \([^ ]+\): its ctrun was lost"
expect "and so does node 1" has "$(cat err1)" "node 0 at $lan.1 port $port was lost"
ip link set $net up

unset CT_STORE_SECRET_FILE
timeout 120 $there "$CTRUN" $both --node-rank=1 bash strange 2>err1 </dev/null &
run $both --node-rank=0 true
wait $!
expect "without a secret two hosts are a job too, as under torchrun" is "$code $?" "0 0"
expect "and it is said that the door is open" has "$err" "no job secret: every host that reaches $lan.1 port $port"
finish
