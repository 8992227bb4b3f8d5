# SPDX-License-Identifier: Apache-2.0
# A death on one host is told to the workers of all others, by the links between the
# ctruns; and that of a host to those who are left, and to those who are on it.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
need_hosts 3
killed_by_9=2 host_lost=100 # CLD_KILLED, CONTROL_HOST_LOST
deaths=$CT_BUILD/tests/e2e_deaths

# Two workers on each of three hosts; $victim ends by SIGKILL when all are up.
cat >worker <<'END'
if [ "$RANK" = "$victim" ]; then exec "$deaths" 1 9; fi
exec "$deaths" 100
END
export victim deaths
fresh() { kill_agents; rm -f all.up deaths.*; new_job; }
static_start() {
    local node
    meet="--nnodes=3 --master-addr=h0 --master-port=$port --shutdown-timeout=20"
    for node in 0 1 2; do agent_on $node h$node --node-rank=$node --nproc-per-node=2 "$@" bash worker; done
}
c10d_start() {
    local node
    for node in 0 1 2; do agent_on $node h$node --nnodes=3 --nproc-per-node=2 --shutdown-timeout=20 "$@" bash worker; done
}
all_up() {
    for rank in 0 1 2 3 4 5; do [ -e deaths.$rank ] || return 1; done
    : >all.up
}
# told RANK LINES: the first deaths that RANK was told, in any order
told() { [ "$(head -n "$(wc -l <<<"$2")" "deaths.$1" 2>/dev/null | sort)" = "$2" ]; }
all_told() {
    local rank
    for rank in $1; do
        told "$rank" "$2" || { out=$(grep . deaths.*) err=$(cat h?.err); return 1; }
    done
}
silent=0 closed=1 how=$silent # CONTROL_SILENT, CONTROL_CLOSED
lost() { for rank in "$@"; do echo "$rank $host_lost $how"; done; }
lost_on() { # HOST RANKS...
    local host=$1
    shift
    lost "$@" | sed "s/\$/ $host/"
}

for kind in static c10d; do
    fresh
    victim=4
    ${kind}_start
    expect "$kind: three hosts" within 30 all_up
    expect "$kind: a worker that is killed is named on all hosts" \
        within 30 all_told "0 1 2 3 5" "4 $killed_by_9 9 h2"

    fresh
    victim=0
    ${kind}_start
    within 30 all_up
    expect "$kind: and so is one beside the store" within 30 all_told "1 2 3 4 5" "0 $killed_by_9 9 h0"
done
victim=none

# A ctrun that is killed takes its workers along; its connection ends with it.
how=$closed
fresh
static_start
within 30 all_up
killed h1
expect "static: a lost ctrun's workers are told to be lost" within 30 all_told "0 1 4 5" "$(lost_on h1 2 3)"

fresh
c10d_start
within 30 all_up
killed h1
expect "c10d: a lost ctrun's workers are told to be lost" within 30 all_told "0 1 4 5" "$(lost_on h1 2 3)"

# One that dies while it starts them: its first worker stops it.
cat >stopper <<'END'
kill -STOP $PPID
exec "$deaths" 100
END
starting() { grep -q '^State:.T' "/proc/${pid[h1]}/status"; }
others_up() { for rank in 0 1 10 11; do [ -e deaths.$rank ] || return 1; done; }
fresh
for node in 0 2; do agent_on $node h$node --nnodes=3 --nproc-per-node=2 --shutdown-timeout=20 bash worker; done
agent_on 1 h1 --nnodes=3 --nproc-per-node=8 bash stopper
expect "c10d: a ctrun stands still that has begun to start its workers" within 30 starting
within 30 others_up
killed h1
expect "c10d: all that a lost ctrun was about to start are told to be lost" \
    within 30 all_told "0 1 10 11" "$(lost_on h1 {2..9})"

how=$silent
# Its cable.  Who is alone takes all others for lost.
fresh
static_start
within 30 all_up
unplug 2
expect "static: a host that is cut off is told to be lost" within 30 all_told "0 1 2 3" "$(lost_on h2 4 5)"
expect "and the others are, there" within 30 all_told "4 5" "$(lost 0 1 2 3 | sed 's/$/ /')"
plug 2

# A frozen one: its kernel answers.
fresh
static_start --shutdown-timeout=8 # the workers have that long to read what they are told
within 30 all_up
kill -STOP "${pid[h2]}"
expect "static: a frozen ctrun's workers are told to be lost" within 30 all_told "0 1 2 3" "$(lost_on h2 4 5)"
expect "and node 0 says how long it was silent" within 30 \
    grep -q "node 2 (h2): its ctrun was lost: it has not answered for 5 s" h0.err
kill -KILL "${pid[h2]}"

fresh
static_start --rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=2
within 30 all_up
kill -STOP "${pid[h0]}"
expect "static: and so is node 0, as soon as is asked for" within 30 all_told "2 3 4 5" "$(lost 0 1 | sed 's/$/ /')"
expect "with a sentence" within 30 grep -q "node 0 at h0 port $port was lost: it has not answered for 2 s" h1.err
kill -KILL "${pid[h0]}"

fresh
c10d_start --rdzv-conf=keep_alive_interval=1
within 30 all_up
kill -STOP "${pid[h2]}"
expect "c10d: a frozen ctrun's workers are told to be lost" within 30 all_told "0 1 2 3" "$(lost_on h2 4 5)"
kill -KILL "${pid[h2]}"
finish
