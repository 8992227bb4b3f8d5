# SPDX-License-Identifier: Apache-2.0
# More ranks than 64 connect to one over sockets: each message arrives.
# CT_MANY="66 128 256" and CT_MANY_RUNS=50 make of it a soak.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
export OMP_NUM_THREADS=1
many=$CT_BUILD/tests/e2e_many

for ((i = 0; i < ${CT_MANY_RUNS:-1}; i++)); do
    for n in ${CT_MANY:-70}; do
        for what in "gather late" "send late" all_to_all all_reduce; do
            CT_LINK=tcp CT_TIMEOUT_MS=60000 run --nproc-per-node=$n "$many" $what
            expect "$n ranks, $what first" is "$code $out" "0 $n ranks"
        done
    done
done

trap 'no_hosts; cd /; rm -rf "$work"' EXIT
hosts 2 || { echo "skipped in part: no right to make hosts of namespaces"; finish; }
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret && chmod 600 secret
export CT_STORE_SECRET_FILE=$work/secret

# on_both N WHAT...: N ranks on each of two hosts.
on_both() {
    local n=$1
    shift
    CT_TIMEOUT_MS=60000 timeout 120 ${on[1]} "$CTRUN" --nnodes=2 --node-rank=1 --nproc-per-node="$n" \
        --master-addr=10.77.0.1 --master-port=29500 "$many" "$@" >there 2>&1 </dev/null &
    CT_TIMEOUT_MS=60000 timeout 120 ${on[0]} "$CTRUN" --nnodes=2 --node-rank=0 --nproc-per-node="$n" \
        --master-addr=10.77.0.1 --master-port=29500 "$many" "$@" >"$work/.out" 2>"$work/.err" </dev/null
    code=$?
    wait $!
    code="$code $?"
    out=$(cat "$work/.out")
    err=$(cat "$work/.err" there)
}
for ((i = 0; i < ${CT_MANY_RUNS:-1}; i++)); do
    for n in ${CT_MANY:-70}; do
        for what in "gather late" "send late" all_to_all all_reduce; do
            [ -n "${CT_MANY:-}" ] || [ "$what" != all_to_all ] || continue
            on_both $((n / 2)) $what
            expect "$n ranks on two hosts, $what first" is "$code $out" "0 0 $n ranks"
        done
    done
done
finish
