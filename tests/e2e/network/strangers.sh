# SPDX-License-Identifier: Apache-2.0
# Strangers who reach the data ports of a job on two hosts, and know nothing of it, hang no call and
# end no rank, with a secret and without.  CT_STRANGERS=2000 CT_STRANGER_RUNS=20 make of it a soak.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
export OMP_NUM_THREADS=1
trap 'no_hosts; cd /; rm -rf "$work"' EXIT
hosts 3 || { echo "skipped: no right to make hosts of namespaces"; exit 77; }
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret && chmod 600 secret

# Of host I, but the store's.
data_ports() {
    ${on[$1]} cat /proc/net/tcp | awk '$4 == "0A" { split($2, at, ":"); print at[2] }' |
        while read -r hex; do echo $((16#$hex)); done | grep -vx 29500 | sort -u
}
four_ports() { [ "$(data_ports "$1" | wc -l)" -ge 4 ]; }

node() {
    CT_TIMEOUT_MS=60000 exec timeout 100 ${on[$1]} "$CTRUN" --nnodes=2 --node-rank=$1 --nproc-per-node=4 \
        --master-addr=10.77.0.1 --master-port=29500 "$CT_BUILD/tests/e2e_many" "$what" "$work/go" >out.$1 2>err.$1 </dev/null
}

# flooded HOW
flooded() {
    local how=$1 i jobs=() strangers=()
    rm -f go here.*
    for i in 1 0; do
        (node $i) &
        jobs[i]=$!
    done
    for i in 0 1; do expect "host $i listens" within 30 four_ports $i; done
    for i in 0 1; do
        ${on[2]} "$CT_BUILD/tests/e2e_strangers" "${CT_STRANGERS:-500}" 8 "$how" 10.77.0.$((i + 1)) $(data_ports $i) >here.$i &
        strangers+=($!)
    done
    for i in 0 1; do expect "strangers are there" within 30 lines_in 1 here.$i; done
    touch go
    for i in 0 1; do
        wait "${jobs[i]}"
        code=$?
        out=$(cat out.$i) err=$(cat err.$i)
        expect "$what among strangers ($how, ${CT_STORE_SECRET_FILE:+a secret}), host $i" is "$code" 0
    done
    kill "${strangers[@]}" 2>/dev/null
    wait "${strangers[@]}" 2>/dev/null
}

for ((run = 0; run < ${CT_STRANGER_RUNS:-1}; run++)); do
    export CT_STORE_SECRET_FILE=$work/secret
    what=all_to_all flooded silent
    what=all_to_all flooded half
    what=all_reduce flooded wrong
    what=all_to_all flooded hello
    unset CT_STORE_SECRET_FILE
    what=all_to_all flooded silent
    [ "${CT_STRANGER_RUNS:-1}" = 1 ] || what=all_reduce flooded wrong
done
finish
