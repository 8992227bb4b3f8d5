# SPDX-License-Identifier: Apache-2.0
# Other launchers in the job: tests/interop/agent.py speaks PyTorch's rendezvous
# and pickles as CPython does.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
command -v python3 >/dev/null || { echo "skipped: python3 is missing"; exit 77; }
export OMP_NUM_THREADS=1
trap 'kill_agents; cd /; rm -rf "$work"' EXIT

# foreign NAME ADDRESS NODES SECONDS WORDS...
foreign() {
    local name=$1
    shift
    : >"$name.out"
    python3 -u "$CT_SOURCE/tests/interop/agent.py" "localhost:$port" "job$jobs" "$@" >"$name.out" 2>"$name.err" </dev/null &
    pid[$name]=$!
}
show='echo $RANK/$WORLD_SIZE $ROLE_RANK/$ROLE_WORLD_SIZE $MASTER_ADDR'
quick="--rdzv-conf=last_call_timeout=1,keep_alive_interval=1"

new_job
foreign P 127.0.0.9 2 2 --nproc=3
agent A --nnodes=2 --nproc-per-node=2 --local-addr=127.0.0.2 sh -c "$show; sleep 1"
ended A
expect "beside an agent with a higher address: 0" is "$code" 0
expect "ours are the first ranks" is "$(sorted "$out")" "0/5 0/5 127.0.0.2
1/5 1/5 127.0.0.2"
ended P
expect "the agent is content" is "$code $err" "0 "
expect "it has the ranks behind" has "$out" "ranks 2 to 4 of 5"
expect "and our master" has "$out" "master 127.0.0.2"
expect "and met us at the end" has "$out" barrier

new_job
foreign P 127.0.0.1 2 2 --nproc=3 --role=zeta
agent A --nnodes=2 --nproc-per-node=2 --local-addr=127.0.0.2 sh -c "$show; sleep 1"
ended A
expect "beside one with a lower address: 0" is "$code" 0
expect "ours come behind, with its master and our own role" is "$(sorted "$out")" "3/5 0/2 127.0.0.1
4/5 1/2 127.0.0.1"
ended P
expect "the agent is content as rank 0" is "$code $err" "0 "
expect "it counted our ranks" has "$out" "ranks 0 to 2 of 5"

# 20 s slow: PyTorch's agents take its heartbeats for dead and go on alone.
new_job
foreign P 127.0.0.9 2 6 --behind=20
agent A --nnodes=2 --local-addr=127.0.0.2 sh -c "$show; sleep 4"
ended A
expect "an agent whose clock is slow is no dead one" is "$code $out" "0 0/2 0/2 127.0.0.2"
ended P
expect "and ends well" is "$code $err" "0 "

new_job
agent A --nnodes=2 --local-addr=127.0.0.2 sh -c "$show; until [ -e over ]; do sleep 0.05; done"
agent B --nnodes=2 --local-addr=127.0.0.3 sh -c "$show; until [ -e over ]; do sleep 0.05; done"
within 30 lines_in 1 B.out
foreign P 127.0.0.1 2 1 --spare
expect "an agent too many waits" within 30 grep -q waits P.out
touch over
ended A
expect "the job is done without it" is "$code $(wc -l <<<"$out")" "0 1"
ended B
ended P
expect "and it too is sent away, or left without a store" [ "$code" != hangs ]

# One that dies.
new_job
agent A --nnodes=1:2 --local-addr=127.0.0.2 $quick sh -c "$show; until [ -e alone ]; do sleep 0.05; done"
within 30 lines_in 1 A.out
foreign P 127.0.0.9 2 60
expect "an agent joins" within 30 lines_in 2 A.out
killed P
within 30 lines_in 3 A.out
touch alone
ended A
expect "and dies: ours goes on without it" is "$(cut -d' ' -f1 <<<"$out")" "0/1
0/2
0/1"
expect "to a good end" is "$code" 0
finish
