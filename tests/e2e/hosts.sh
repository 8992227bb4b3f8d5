# SPDX-License-Identifier: Apache-2.0
# hosts.sh - hosts on one machine: each a network, a host name and an /etc/hosts of its own.
#   hosts N [WIRE]       h0 ... h(N-1) at 10.77.0.1 ... on one switch; fails without the right.
#                        WIRE PID... makes eth0 for the networks of PIDs, instead of a switch
#   ${on[I]} COMMAND...  COMMAND on host I, in the folder where `hosts` was called; it becomes
#                        COMMAND, so $! and kill are COMMAND's
#   unplug I; plug I     takes the cable of host I out of the switch, and puts it back
#   limit_host I RATE    host I sends RATE at most (tc's word: 500mbit), and gets as much
#   need_hosts N         the same in a test of several nodes (nodes.sh), which is skipped without the right; with a secret
#   no_hosts             they are gone, and all that runs in their networks
# A host is what a sleeping process holds by its namespaces, and so is the switch:
# nothing of it is seen outside, two runs at a time can't meet, and however the
# script ends, its sleepers die with it and the networks with them.
on=() held=()

# holder COMMAND...: in the background until we end; $!, once it says "up".
holder() {
    local line= from
    exec {from}< <(exec setpriv --pdeathsig KILL "$@" </dev/null 2>/dev/null)
    held+=($!)
    read -r line <&"$from"
    exec {from}<&-
    [ "$line" = up ]
}

# asleep NAMESPACES SCRIPT WORDS...: SCRIPT runs in them, which are then held.
asleep() {
    local namespaces=$1 script=$2
    shift 2
    holder unshare $namespaces sh -c "{ $script; } >&2 && echo up && exec sleep 1000000 >&-" sh "$@"
}

hosts() {
    local n=$1 wire=${2:-} i files
    files=$(mktemp -d) || return
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$files/hosts"
    for ((i = 0; i < n; i++)); do echo "10.77.0.$((i + 1)) h$i"; done >>"$files/hosts"
    echo 'hosts: files' >"$files/nsswitch.conf" # or a name server is asked that nobody reaches
    make_hosts "$n" "$files" "$wire"
    i=$?
    rm -rf "$files" # but what is mounted lives on
    [ $i -eq 0 ] || no_hosts
    return $i
}

make_hosts() {
    local n=$1 files=$2 wire=$3 i pids=()
    for ((i = 0; i < n; i++)); do
        asleep '-m -u -n' 'mount --bind $1/hosts /etc/hosts && hostname $2 && ip link set lo up &&
            mount --bind $1/nsswitch.conf /etc/nsswitch.conf' "$files" h$i || return
        pids[i]=$!
        on[i]="nsenter --target $! --mount --uts --net --wd"
    done
    if [ -n "$wire" ]; then
        holder $wire "${pids[@]}" || return
    else
        asleep -n 'ip link add br0 type bridge && ip link set br0 up' || return
        at_switch="nsenter --target $! --net"
    fi
    for ((i = 0; i < n; i++)); do
        [ -n "$wire" ] || {
            $at_switch ip link add h$i type veth peer name eth0 netns "${pids[i]}" &&
                $at_switch ip link set h$i master br0 up
        } || return
        ${on[i]} ip addr add 10.77.0.$((i + 1))/24 dev eth0 && ${on[i]} ip link set eth0 up || return
    done
} 2>/dev/null

unplug() { $at_switch ip link set "h$1" down; }
plug() { $at_switch ip link set "h$1" up; }

# A bucket takes a segment of TCP whole, or it is cut into frames, which is most of the work of a processor then: so
# segments are kept small, for that is how much is free after a pause.  A queue has room for all that one call sends.
limit_host() {
    local how="tbf rate $2 burst 34k latency 100ms"
    ${on[$1]} ip link set eth0 gso_max_size 32000 && ${on[$1]} tc qdisc replace dev eth0 root $how &&
        $at_switch tc qdisc replace dev "h$1" root $how
}

# Whatever is left in the hosts' networks ends with them: a daemon, or a process whose peer went without a word.  Our own
# network is spared, whatever is in `on`.
no_hosts() {
    local host networks= path network inside=() own=$(readlink /proc/self/ns/net)
    for host in "${on[@]}"; do networks+=" $($host readlink /proc/self/ns/net) "; done
    while read -r path network; do
        path=${path#/proc/}
        [[ $network = "$own" || $networks != *" $network "* ]] || inside+=("${path%%/*}")
    done < <(find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/net' -printf '%p %l\n')
    [ ${#inside[@]} -eq 0 ] || kill -KILL "${inside[@]}"
    [ ${#held[@]} -eq 0 ] || { kill -KILL "${held[@]}"; wait "${held[@]}"; }
    held=() on=()
} 2>/dev/null

need_hosts() {
    export OMP_NUM_THREADS=1
    trap 'kill_agents; no_hosts; cd /; rm -rf "$work"' EXIT
    hosts "$1" || { echo "skipped: no right to make hosts of namespaces"; exit 77; }
    head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret && chmod 600 secret
    export CT_STORE_SECRET_FILE=$work/secret
    endpoint=h0
}
