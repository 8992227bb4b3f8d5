# SPDX-License-Identifier: Apache-2.0
# --trace over nodes whose clocks are days apart: one file, in which what happened at the same
# time stands at the same time; and what is left when one of the ctruns is killed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
. "$(dirname "$0")/hosts.sh"
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
if command -v python3 >/dev/null; then
    see() { python3 "$(dirname "$0")/see_trace.py" "$1" "$2"; }
else
    see() { true; } # not seen
fi

fresh() { kill_agents; rm -f run*.json; new_job; }
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
    expect "$kind: one file" is "$(echo run*.json)" run.json
    expect "$kind: it is whole" whole run.json
    expect "$kind: all ranks are in it" is "$(lines run.json '"X","name":"all_reduce"')" 6
    expect "$kind: of three nodes" see run.json 'sorted(n.split(" ")[2] for n in nodes) == ["h0", "h1", "h2"]'
    expect "$kind: nothing is missing" see run.json 'len(part) == 3 and not any(p["missing"] for p in part)'
    expect "$kind: the clocks are known" see run.json 'error > 0 and all(p["clock_error_ns"] < 200e6 for p in part)'
    expect "$kind: how they stand" see run.json 'all(abs(p["clock_offset_ns"] / 1e9 - {"h0": 0, "h1": -1e5, "h2": 1e3}[p["host"]]) < 1 for p in part)'
    expect "$kind: the ranks of all nodes are in a call together" see run.json 'all(together(c) for c in ("all_reduce", "barrier", "all_gather", "all_to_all"))'
    expect "$kind: arrows pair up" see run.json 'begun == ended and len(begun) > 20'
    expect "$kind: they go on in time" see run.json 'forward()'
done

# A restart on all nodes.
fresh
export program=$CT_BUILD/bin/demo
static_start --max-restarts=1 sh -c '[ $TORCHELASTIC_RESTART_COUNT = 1 ] || export CT_FAULT=rank:3,op:barrier,phase:0,kill; exec "$program"'
all_end "a restart" 0
expect "two rounds of three nodes" see run.json 'len(part) == 6 and len({p["generation"] for p in part}) == 2'
expect "the death is on the track of the dead" see run.json '[rank(e) for e in t if e["name"] == "rank 3 was killed by SIGKILL"] == [3]'

# A node that was not told to keep one.
fresh
meet="--nnodes=2 --master-addr=h0 --master-port=$port"
agent_on 1 h1 --node-rank=1 "$CT_BUILD/bin/ring"
agent_on 0 h0 --node-rank=0 --trace=run.json "$CT_BUILD/bin/ring"
ended h1
ended h0
expect "one node without --trace" is "$code" 0
expect "is said" has "$err" "no trace came of node 1"
expect "and stands in the file" see run.json '[p["missing"] for p in part if p["node"] == 1] == ["nothing came of it"]'
fresh
meet="--nnodes=2 --master-addr=h0 --master-port=$port"
agent_on 1 h1 --node-rank=1 --trace=run.json "$CT_BUILD/bin/ring"
agent_on 0 h0 --node-rank=0 "$CT_BUILD/bin/ring"
ended h0
ended h1
expect "node 0 without it" is "$code" 0
expect "the other says so" has "$err" "--trace is for all nodes"
expect "and writes its own" whole run.node1.json

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
expect "its file is whole without the killed node" whole run.json
expect "it has the others" see run.json '{p["node"] for p in part if not p["missing"]} == {0, 2}'
expect "and says who is missing" see run.json '[p["node"] for p in part if p["missing"]] == [1]'
expect "the guard of the killed one leaves a file" within 30 grep -qs '"missing":"ctrun was killed"' run.node1.json
expect "it is whole" whole run.node1.json
expect "with the last call open" see run.node1.json 'sorted(rank(e) for e in named("all_reduce") if e["ph"] == "B") == [2, 3]'
expect "on the clock of node 0" see run.node1.json 'part[0]["clock_error_ns"] > 0 and abs(part[0]["clock_offset_ns"] / 1e9 + 1e5) < 1'

fresh
static_start bash stuck
within 30 stuck
kill -KILL "$(ctrun_of h0)"
ended h1 60
expect "node 0 is killed" is "$code" 1
for node in 1 2; do
    expect "node $node has a file of its own" within 30 whole run.node$node.json
    expect "with the open calls" see run.node$node.json 'len(part) == 1 and [e["ph"] for e in named("all_reduce")] == ["B", "B"]'
done
expect "and so has the guard of node 0" within 30 grep -qs '"missing":"ctrun was killed"' run.json
finish
