# SPDX-License-Identifier: Apache-2.0
# "localhost" is ::1 and 127.0.0.1 in /etc/hosts, as in most containers.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
export OMP_NUM_THREADS=1
trap 'kill_agents; cd /; rm -rf "$work"' EXIT
printf '::1 localhost\n127.0.0.1 localhost\n' >hosts
hosts="mount --bind $work/hosts /etc/hosts"
where=(unshare -mn sh -c "$hosts && ip link set lo up")
"${where[@]}" 2>/dev/null || { echo "skipped: no namespaces for mounts and networks here"; exit 77; }

# in_one_network SETUP: two nodes that meet at localhost, in a network that SETUP made
in_one_network() {
    timeout 60 unshare -mn bash -c "$hosts; ip link set lo up; $1
        for node in 0 1; do
            $CTRUN --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:29611 --rdzv-id=two \
                sh -c 'echo rank \$RANK of \$WORLD_SIZE' >out.\$node 2>err.\$node &
            pids+=(\$!)
        done
        wait \${pids[0]} && wait \${pids[1]}" </dev/null
    code=$? out=$(cat out.0 out.1) err=$(cat err.0 err.1)
}

in_one_network ""
expect "both are there: one node serves at one of them, the other one joins it" is "$(grep -o 'rank.*' <<<"$out" | sort)" \
    "$(printf 'rank 0 of 2\nrank 1 of 2')"
expect "0" is "$code" 0
in_one_network "ip addr del ::1/128 dev lo"
expect "only 127.0.0.1 is there" is "$(grep -o 'rank.*' <<<"$out" | sort)" "$(printf 'rank 0 of 2\nrank 1 of 2')"
expect "0" is "$code" 0
in_one_network "ip addr del 127.0.0.1/8 dev lo"
expect "only ::1 is there" is "$(grep -o 'rank.*' <<<"$out" | sort)" "$(printf 'rank 0 of 2\nrank 1 of 2')"
expect "0" is "$code" 0
finish
