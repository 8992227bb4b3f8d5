# SPDX-License-Identifier: Apache-2.0
# Two hosts with a network for the store and another one, of IPv6 alone, for the workers' data.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
export OMP_NUM_THREADS=1

run --iface=nothere0 true
expect "an interface that is not there is 1" is "$code" 1
expect "which names it and those that are there" matches "$err" '--iface=nothere0: this host has no interface of that name or address that is up; it has .*lo'
run --iface=lo sh -c 'echo $CT_INTERFACE'
expect "workers find it in CT_INTERFACE" is "$out" lo

trap 'kill_agents; no_hosts; cd /; rm -rf "$work"' EXIT
hosts 2 || { echo "skipped: no right to make hosts of namespaces"; finish; }
other=$(sed 's/.*--target \([0-9]*\).*/\1/' <<<"${on[1]}")
${on[0]} ip link add data0 type veth peer name data0 netns "$other"
for i in 0 1; do
    ${on[i]} ip link set data0 up && ${on[i]} ip addr add fd77::$((i + 1))/64 dev data0 nodad
done
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret && chmod 600 secret
export CT_STORE_SECRET_FILE=$work/secret

# KiB that an interface of host 0 has taken in.
taken() { ${on[0]} ip -s link show "$1" | awk 'next_line { print int($1 / 1024); exit } /RX/ { next_line = 1 }'; }

# both OPTION: $data and $control, what host 0 took in on each while 2 ranks exchanged some MiB.
both() {
    local before_data before_control a b
    before_data=$(taken data0) before_control=$(taken eth0)
    for i in 1 0; do
        ${on[i]} timeout 120 "$CTRUN" --nnodes=2 --node-rank=$i --nproc-per-node=1 --master-addr=10.77.0.1 --master-port=29500 "$@" \
            "$CT_BUILD/bin/three_all_reduces" >out$i 2>err$i </dev/null &
    done
    wait -n; a=$?
    wait -n; b=$?
    code=$((a > b ? a : b))
    data=$(($(taken data0) - before_data)) control=$(($(taken eth0) - before_control))
}
both
expect "without --iface they run" is "$code" 0
expect "the data goes where the store is" test "$control" -gt 4096 -a "$data" -lt 100
both --iface=data0
expect "with --iface they run" is "$code" 0
expect "the data goes over that interface" test "$data" -gt 4096 -a "$data" -gt $((10 * control))
finish
