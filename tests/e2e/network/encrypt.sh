# SPDX-License-Identifier: Apache-2.0
# CT_ENCRYPT=1 on two hosts: what the wire shows, and what is refused.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
export OMP_NUM_THREADS=1
unset CT_ENCRYPT CT_STORE_SECRET CT_STORE_SECRET_FILE

run --encrypt sh -c 'echo $CT_ENCRYPT'
expect "workers find it in CT_ENCRYPT" is "$out" 1
CT_ENCRYPT=0 run sh -c 'echo "<$CT_ENCRYPT>"'
expect "CT_ENCRYPT=0 is none" is "$out" "<>"
CT_LINK=tcp run --encrypt --nproc-per-node=2 "$CT_BUILD/tests/e2e_speaks"
expect "one node makes a secret for itself" is "$code" 0
run --encrypt --nnodes=2 --node-rank=0 --master-addr=127.0.0.1 --master-port=1 true
expect "two nodes need one" is "$code" 1
expect "and are told how to set it" matches "$err" "CT_ENCRYPT=1 needs the job's secret: .*CT_STORE_SECRET_FILE"
CT_ENCRYPT=yes "$CT_BUILD/tests/e2e_speaks" >/dev/null 2>.err
expect "another value is refused" matches "$(cat .err)" 'CT_ENCRYPT=yes is neither 0 nor 1'

trap 'kill_agents; no_hosts; cd /; rm -rf "$work"' EXIT
hosts 2 || { echo "skipped: no right to make hosts of namespaces"; finish; }
for name in secret other; do
    head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >$name && chmod 600 $name
done
export CT_STORE_SECRET_FILE=$work/secret

# node I WORDS...: a ctrun on host I, in the background; out.I and err.I.
node() {
    local i=$1
    shift
    ${on[i]} timeout 60 "$CTRUN" --nnodes=2 --node-rank=$i --nproc-per-node=2 --master-addr=10.77.0.1 --master-port=29500 \
        --rdzv-conf=timeout=5 "$@" >out.$i 2>err.$i </dev/null &
    pid[$i]=$!
}
# Waits for both: code0 and code1.
both_end() {
    wait "${pid[0]}"; code0=$?
    wait "${pid[1]}"; code1=$?
    pid=()
    err="$(cat err.0 err.1)" out=$(cat out.0) code="$code0 $code1"
}

# speaks WORDS...: two nodes run e2e_speaks; `packets` is what host 0's network has seen.
speaks() {
    local seen
    ${on[0]} "$CT_BUILD/tests/e2e_captures" eth0 >packets 2>up &
    seen=$!
    within 10 lines_in 1 up
    node 0 "$@" "$CT_BUILD/tests/e2e_speaks"
    node 1 "$@" "$CT_BUILD/tests/e2e_speaks"
    both_end
    sleep 0.2
    kill $seen && wait $seen
} 2>/dev/null
on_the_wire() { grep -qaF -- "$1" packets; }
not_on_the_wire() { ! on_the_wire "$1"; }

speaks
expect "two nodes run" is "$code" "0 0"
for word in word-of-the-group word-of-the-store "ct/$out/"; do
    expect "without CT_ENCRYPT the wire has $word" on_the_wire "$word"
done
speaks --encrypt
expect "with it they run, too" is "$code" "0 0"
expect "and something was captured" test "$(wc -c <packets)" -gt 200000
for word in word-of-the-group word-of-the-store "$out" "$(cat secret)" "e2e_speaks"; do
    expect "the wire does not have $word" not_on_the_wire "$word"
done
CT_ENCRYPT=1 speaks --rdzv-backend=c10d --rdzv-endpoint=10.77.0.1:29400 --rdzv-id=job
expect "an elastic job runs" is "$code" "0 0"
expect "and the wire does not have its words" not_on_the_wire word-of-the-

node 0 --encrypt "$CT_BUILD/bin/three_all_reduces"
node 1 --encrypt "$CT_BUILD/bin/three_all_reduces"
both_end
expect "larger messages are right" is "$code" "0 0"
expect "bit by bit" has "$out" "the same, bit by bit, on all 4 ranks"

# Clients that stop within their hello, one that begins with something else: they delay no rank.
silent() { within 10 eval "exec 3<>/dev/tcp/10.77.0.1/29500" && printf '\026\003\001' >&3 && exec sleep 30; }
node 0 --encrypt "$CT_BUILD/tests/e2e_speaks"
for i in 1 2 3; do
    ${on[1]} timeout 20 bash -c "$(declare -f within silent); silent" 2>/dev/null &
    silent[i]=$!
done
sleep 0.5
node 1 --encrypt "$CT_BUILD/tests/e2e_speaks"
both_end
kill "${silent[@]}" 2>/dev/null
expect "silent clients hold no rank up" is "$code" "0 0"

# ---- One encrypts, the other does not ----------------------------------------------

start=$SECONDS
node 0 --encrypt true
node 1 true
both_end
expect "a node that does not encrypt is refused" is "$code" "1 1"
expect "in time" test $((SECONDS - start)) -lt 20
expect "it is told so" has "$(cat err.1)" "the store at 10.77.0.1 port 29500 encrypts, but this process does not; set CT_ENCRYPT=1 on all hosts or on none"
expect "and so is node 0" matches "$(cat err.0)" "the client at 10.77.0.2 port [0-9]+ was closed: it does not encrypt, but this store does; set CT_ENCRYPT=1"

start=$SECONDS
node 0 true
node 1 --encrypt true
both_end
expect "a node that encrypts is refused by one that does not" is "$code" "1 1"
expect "in time" test $((SECONDS - start)) -lt 20
expect "it is told so" has "$(cat err.1)" "the store at 10.77.0.1 port 29500 does not encrypt, but this process does; set CT_ENCRYPT=1 on all hosts or on none"
expect "and so is node 0" matches "$(cat err.0)" "the client at 10.77.0.2 port [0-9]+ was closed: it encrypts, but this store does not; set CT_ENCRYPT=1"

node 0 --encrypt true
CT_STORE_SECRET_FILE=$work/other node 1 --encrypt true
both_end
expect "another secret is refused" is "$code" "1 1"
expect "it is told so" has "$(cat err.1)" "the store at 10.77.0.1 port 29500 has another secret than this process"
expect "and so is node 0" matches "$(cat err.0)" "the client at 10.77.0.2 port [0-9]+ was closed: it has another secret"

# Programs without ctrun.
# program I ENVIRONMENT...: rank I on host I.
program() {
    local i=$1
    shift
    ${on[i]} env RANK=$i WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 CT_TIMEOUT_MS=4000 "$@" \
        timeout 60 "$CT_BUILD/tests/e2e_speaks" >out.$i 2>err.$i </dev/null &
    pid[$i]=$!
}
program 0 CT_ENCRYPT=1; program 1 CT_ENCRYPT=1; both_end
expect "ranks without ctrun run" is "$code" "0 0"
program 0 CT_ENCRYPT=1; program 1; both_end
expect "a rank that does not encrypt is refused" is "$code" "1 1"
expect "and told so" has "$(cat err.1)" "the store at 10.77.0.1:29500 encrypts, but this process does not"
program 0 CT_ENCRYPT=1; program 1 CT_STORE_SECRET_FILE=; both_end
expect "one without a secret, too" has "$(cat err.1)" "the store at 10.77.0.1:29500 encrypts, but this process does not"
program 0; program 1 CT_ENCRYPT=1; both_end
expect "a rank that encrypts is refused" is "$code" "1 1"
expect "and told so" has "$(cat err.1)" "the store at 10.77.0.1:29500 does not encrypt, but this process does"
program 0 CT_ENCRYPT=1; program 1 CT_ENCRYPT=1 CT_STORE_SECRET_FILE=; both_end
expect "no secret is told" has "$(cat err.1)" "CT_ENCRYPT=1 needs the job's secret"
finish
