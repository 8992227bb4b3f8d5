# SPDX-License-Identifier: Apache-2.0
# Another user of this host has taken the port of the store first.  With a secret nothing
# is said to that store, on the loopback either.  Needs root.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
export OMP_NUM_THREADS=1
[ "$(id -u)" -eq 0 ] || { echo "skipped: only root has other users"; exit 77; }
trap 'kill_agents; cd /; rm -rf "$work"' EXIT
echo 0123456789abcdef0123 >secret && chmod 600 secret
chmod 755 . && chmod 711 "$work" && mkdir -m 777 open

# The squatter serves a store to everybody, and says which keys are in it.
cat >serve <<'END2'
echo $$ >open/pid
until [ -e count ]; do sleep 0.05; done
exec 3<>/dev/tcp/127.0.0.1/$MASTER_PORT
printf "\x00\xce\xf7\x85\x3c\x07" >&3
head -c 8 <&3 | od -An -tu8 | tr -d ' ' >open/keys
END2
squat() {
    rm -f count open/*
    new_port
    TMPDIR=$work/open setpriv --reuid=65534 --regid=65534 --clear-groups "$CTRUN" --nproc-per-node=1 --master-addr=127.0.0.1 \
        --master-port="$port" --store-allow=127.0.0.0/8 bash serve >open/out 2>open/err </dev/null &
    squatter=$!
    within 30 test -e open/pid
}
# $keys: how many there are in the squatter's store
evict() {
    touch count
    wait $squatter
    keys=$(cat open/keys)
}

squat
CT_STORE_SECRET_FILE=$work/secret RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port CT_TIMEOUT_MS=5000 \
    timeout 60 "$CT_BUILD/bin/hello" >out 2>err </dev/null
code=$? err=$(cat err)
expect "a rank with a secret does not speak to another user's store on the loopback" is "$code" 1
expect "and says what is wrong" has "$err" "the store at 127.0.0.1:$port"
evict
expect "and it has written nothing there" is "$keys" 0

squat
meet="--rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:$port --rdzv-id=squatted"
CT_STORE_SECRET_FILE=$work/secret agent n0 --nnodes=2 --rdzv-conf=join_timeout=5 true
CT_STORE_SECRET_FILE=$work/secret agent n1 --nnodes=2 --rdzv-conf=join_timeout=5 true
for n in n0 n1; do
    ended $n
    expect "c10d: $n does not meet the other in another user's store" is "$code" 1
    expect "c10d: and $n says what is wrong" has "$err" "127.0.0.1 port $port"
done
evict
expect "c10d: and they have written nothing there" is "$keys" 0

# A store of our own user that has the secret serves both sides as before, and so does one
# that has none: the kernel says that it is ours.
new_port
for secret in "" "$work/secret"; do
    [ -n "$secret" ] && who="with" || who="without"
    for rank in 0 1; do
        [ $rank = 1 ] && export CT_STORE_SECRET_FILE=$work/secret || export CT_STORE_SECRET_FILE=$secret
        RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port CT_TIMEOUT_MS=20000 timeout 60 "$CT_BUILD/bin/hello" \
            >out$rank 2>err$rank </dev/null &
        pids[rank]=$!
    done
    for rank in 0 1; do
        wait "${pids[rank]}"
        code=$? err=$(cat err$rank)
        expect "a store of our user, $who the secret, is used by rank $rank" is "$code" 0
    done
    unset CT_STORE_SECRET_FILE
    new_port
done
finish
