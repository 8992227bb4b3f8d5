# SPDX-License-Identifier: Apache-2.0
# --trace over nodes whose clocks are days apart: each writes a file on the clock of the host that has
# the rendezvous, here node 0's, so
# in the one file that `ctctl trace merge` makes of them, what happened at the same time stands at the
# same time; and what is left when one of the ctruns is killed.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
export OMP_NUM_THREADS=1
trap 'kill_agents; no_hosts; cd /; rm -rf "$work"' EXIT
hosts 3 || { echo "skipped: no right to make hosts of namespaces"; exit 77; }
unshare --time --monotonic 100000 --fork true 2>/dev/null || { echo "skipped: no clocks of their own for hosts"; exit 77; }
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret && chmod 600 secret
export CT_STORE_SECRET_FILE=$work/secret
endpoint=h0

# The monotonic clock of host 1 is a day ahead of host 0's, that of host 2 behind it.  No offset is
# negative: a clock below 0 is refused, and this machine may have started a minute ago.
shift_clock=("unshare --time --monotonic 1000 --fork --kill-child" "unshare --time --monotonic 101000 --fork --kill-child" "")
real_on=("${on[@]}")
for i in 0 1; do on[i]="${real_on[i]} ${shift_clock[i]}"; done
ctrun_of() { pgrep -P "${pid[$1]}" -x ctrun || echo "${pid[$1]}"; }

lines() { grep -cE -- "$2" "$1"; }
whole() { is "$(head -n 1 "$1") $(tail -n 1 "$1")" '{"traceEvents":[ ],"displayTimeUnit":"ns"}'; }
merge() {
    "$CT_BUILD/bin/ctctl" trace merge "$@" >run.json 2>.err
    code=$? err=$(cat .err)
}
if command -v python3 >/dev/null; then
    see() { python3 "$CT_SOURCE/tests/e2e/see_trace.py" "$1" "$2"; }
else
    see() { true; } # not seen
fi

fresh() { kill_agents; rm -f run*.json; new_job; }
three="run.node0.json run.node1.json run.node2.json"
static_start() {
    local node
    meet="--nnodes=3 --master-addr=h0 --master-port=$port"
    for node in 2 1 0; do agent_on $node h$node --node-rank=$node --nproc-per-node=2 --shutdown-timeout=1 --trace=run.json "$@"; done
}
c10d_start() {
    local node
    for node in 0 1 2; do
        agent_on $node h$node --nnodes=3 --nproc-per-node=2 --shutdown-timeout=1 --trace=run.json "$@"
        [ $node -gt 0 ] || within 30 ${real_on[0]} bash -c "(exec 3<>/dev/tcp/10.77.0.1/$port) 2>/dev/null"
    done
}
all_end() {
    for node in 0 1 2; do
        ended h$node 60
        expect "$1, h$node" is "$code" "$2"
    done
}

for kind in static c10d; do
    fresh
    ${kind}_start "$CT_BUILD/bin/demo"
    all_end "$kind: three nodes with a trace" 0
    expect "$kind: each has its file" is "$(echo run*.json)" "$three"
    expect "$kind: on the clock of node 0's host" see run.node1.json 'len(part) == 1 and re.fullmatch("[0-9a-f-]{36}/[0-9]+", part[0]["clock"]) and error > 0 and nodes == ["node 1: h1"]'
    merge $three
    expect "$kind: they are merged" is "$code,$err" "0,"
    expect "$kind: to a whole file" whole run.json
    expect "$kind: all ranks are in it" is "$(lines run.json '"X","name":"all_reduce"')" 6
    expect "$kind: of three nodes" see run.json 'sorted(n.split(" ")[2] for n in nodes) == ["h0", "h1", "h2"]'
    expect "$kind: nothing is missing" see run.json 'len(part) == 3 and not any(p["missing"] for p in part)'
    expect "$kind: the clocks are known" see run.json 'error > 0 and all(p["clock_error_ns"] < 200e6 for p in part)'
    expect "$kind: how they stand" see run.json 'all(abs(p["clock_offset_ns"] - {"h0": 0, "h1": -10**14, "h2": 10**12}[p["host"]]) <= p["clock_error_ns"] + 1 for p in part)'
    expect "$kind: the ranks of all nodes are in a call together" see run.json 'all(together(c) for c in ("all_reduce", "barrier", "all_gather", "all_to_all"))'
    expect "$kind: arrows pair up" see run.json 'begun == ended and len(begun) > 20'
    expect "$kind: none points back by more than the clocks' errors" see run.json 'forward()'
    expect "$kind: both ends are in slices" see run.json 'all(inside(e) for e in arrows)'
    merge run.node1.json run.node2.json run.node0.json
    expect "$kind: it is node 0's clock in any order" see run.json '[p["host"] for p in part if p["clock_error_ns"] == 0] == ["h0"] and forward()'
done

# What can't be merged.
"$CT_BUILD/bin/ctctl" trace merge --output=all.json $three
expect "a file to write" see all.json 'len(part) == 3'
"$CT_BUILD/bin/ctctl" trace merge -o run.node1.json $three 2>.err
expect "no file is written over" is "$? $(cat .err)" "1 ctctl: run.node1.json: it is one of the files to merge"
merge run.node0.json all.json
expect "what is merged already" is "$code $err" "1 ctctl: all.json:$(grep -n '"ctrun_part"' all.json | head -n 1 | cut -d: -f1): this trace is merged already"
merge run.node0.json run.node0.json
expect "one node twice" is "$code $err" "1 ctctl: run.node0.json and run.node0.json are both of node 0 in the same round"
head -c 1000 run.node1.json >half.json
merge run.node0.json half.json
expect "half a file" matches "$code $err" '^1 ctctl: half.json:[0-9]+: this is not a whole line$'
"$CT_BUILD/bin/ctctl" trace mix 2>.err
expect "another word" is "$? $(cat .err)" "2 ctctl: trace: name what to do: ctctl trace merge FILE... (ctctl --help)"
"$CT_BUILD/bin/ctctl" trace merge $three >/dev/full 2>.err
expect "a full disk" is "$? $(cat .err)" "1 ctctl: standard output: No space left on device"
"$CT_BUILD/bin/ctctl" trace merge -o /dev/full $three 2>.err
expect "a full disk under a file" is "$? $(cat .err)" "1 ctctl: /dev/full: No space left on device"

# Nodes that exchange no messages.
fresh
static_start true
all_end "no messages" 0
merge $three
expect "are on one clock too" is "$code,$err" "0,"
expect "the rounds begin together" see run.json 'len(named("round")) == 3 and max(e["ts"] for e in named("round")) < min(e["ts"] for e in named("round")) + 5e6'

# Ranks without ctrun: no ctrun compared their clocks.
fresh
for rank in 2 1 0; do
    ${real_on[rank]} ${shift_clock[rank]} env RANK=$rank WORLD_SIZE=3 MASTER_ADDR=h0 MASTER_PORT=$port CT_TRACE=run.json \
        "$CT_BUILD/bin/demo" >/dev/null 2>&1 &
    ranks[rank]=$!
done
for rank in 0 1 2; do
    wait ${ranks[rank]}
    expect "rank $rank without ctrun" is $? 0
done
merge run.rank*.json
expect "wall clocks count" is "$code $err" "0 ctctl: these files do not share the clock of run.rank0.json; wall clocks place them: run.rank1.json run.rank2.json"
expect "the ranks are in a call together" see run.json 'len(named("all_reduce")) == 3 and max(e["ts"] for e in named("all_reduce")) < min(e["ts"] for e in named("all_reduce")) + 5e6'
expect "no error is known" see run.json '[p["clock_error_ns"] for p in part] == [None] * 3'
expect "how far they were moved" see run.json '[round(p["clock_shift_ns"] / 1e9) for p in part] == [0, -100000, 1000]'

# A restart on all nodes.
fresh
export program=$CT_BUILD/bin/demo
static_start --max-restarts=1 sh -c '[ $TORCHELASTIC_RESTART_COUNT = 1 ] || export CT_FAULT=rank:3,op:barrier,phase:0,kill; exec "$program"'
all_end "a restart" 0
merge $three
expect "two rounds of three nodes" see run.json 'len(part) == 6 and len({p["generation"] for p in part}) == 2 and forward()'
expect "the death is on the track of the dead" see run.json '[rank(e) for e in t if e["name"] == "rank 3 was killed by SIGKILL"] == [3]'

# A node that joins when the job runs already: with a number that a lost one may have had.
fresh
elastic="--nnodes=1:2 --rdzv-conf=last_call_timeout=1 --trace=run.json"
agent_on 0 h0 $elastic sh -c '[ $WORLD_SIZE = 2 ] && exec "$program"; touch alone; exec sleep 60'
expect "a node begins alone" within 30 test -e alone
agent_on 1 h1 $elastic "$program"
for node in 0 1; do
    ended h$node 60
    expect "with another, h$node" is "$code" 0
done
expect "each has its file" is "$(echo run*.json)" "run.node0.json run.node1.round1.json"
merge run*.json
expect "it has both rounds" see run.json 'sorted(e["pid"] for e in named("round")) == [1, 100001, 100002]'
expect "the second one together" see run.json 'len(named("all_reduce")) == 2 and together("all_reduce") and forward()'

# Only one of two nodes has one; two jobs have one file; a file that can't be.
fresh
meet="--nnodes=2 --master-addr=h0 --master-port=$port"
agent_on 1 h1 --node-rank=1 --trace=run.json "$CT_BUILD/bin/ring"
agent_on 0 h0 --node-rank=0 "$CT_BUILD/bin/ring"
ended h0
ended h1
expect "one node without --trace" is "$code,$err" 0,
expect "the other has its file" is "$(echo run*.json)" run.node1.json
exec {lock}<run.node1.json
flock "$lock"
fresh_meet() { new_job; meet="--nnodes=2 --master-addr=h0 --master-port=$port"; }
fresh_meet
agent_on 1 h1 --node-rank=1 --trace=run.json touch ran
agent_on 0 h0 --node-rank=0 touch ran0
ended h1
expect "a file that another job writes to" has "$code $err" "1 ctrun: --trace run.node1.json: another job writes to it"
expect "is no file for this one" [ ! -e ran ]
ended h0
expect "the job ends on all nodes" matches "$code $err" "1 ctrun: node 1 \([^ ]+\): it could not start its workers"
exec {lock}<&-

# A ctrun is killed while its ranks are in a call.
cat >stuck <<'END'
for rank in 2 3 4 5; do CT_FAULT="$CT_FAULT;rank:$rank,op:all_reduce,phase:0,stop"; done
CT_FAULT=${CT_FAULT#;} exec "$program"
END
stopped() { pgrep -P "$(ctrun_of "$1")" -r T | wc -l; }
stuck() { [ "$(stopped h1) $(stopped h2)" = "2 2" ]; }
fresh
static_start bash stuck
expect "a job hangs" within 30 stuck
kill -KILL "$(ctrun_of h1)"
ended h0 60
expect "node 0 ends" is "$code" 1
expect "its file is whole" whole run.node0.json
ended h2 60
expect "the guard of the killed one ends its file" within 30 grep -qs '"missing":"ctrun was killed"' run.node1.json
merge $three
expect "with it all are merged" is "$code" 0
expect "it is marked" see run.json '[p["node"] for p in part if p["missing"]] == [1]'
expect "its guard knows node 0's clock" see run.json 'len({p["clock"] for p in part}) == 1 and errors[2] > 0 and forward()'
expect "its last call is open" see run.json 'sorted(rank(e) for e in named("all_reduce") if e["ph"] == "B" and rank(e) in (2, 3)) == [2, 3]'
finish
