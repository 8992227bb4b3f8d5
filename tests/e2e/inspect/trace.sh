# SPDX-License-Identifier: Apache-2.0
# --trace: one timeline of all ranks, whole whatever became of them.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
bin=$CT_BUILD/bin

# lines PATTERN: how many events of run.json match; each is a line.
lines() { grep -cE -- "$1" run.json; }
whole() { is "$(head -n 1 run.json) $(tail -n 1 run.json)" '{"traceEvents":[ ],"displayTimeUnit":"ns"}'; }
says() { grep -qE -- "$1" <<<"$err"; }

if command -v python3 >/dev/null; then
    see() { python3 "$CT_SOURCE/tests/e2e/see_trace.py" run.json "$1"; }
else
    see() { true; } # not seen
fi

run --trace=run.json --nproc-per-node=4 "$bin/demo"
expect "a job with a trace is as it was" is "$code" 0
expect "the file is whole" whole
expect "each rank has a track" is "$(lines '"thread_name".*"rank [0-3] \(pid [0-9]+\)"')" 4
expect "each rank was in the all_reduce" is "$(lines '"X","name":"all_reduce"')" 4
expect "ctrun has one too" is "$(lines '"thread_name".*"ctrun \(pid')" 1
expect "how each rank ended" is "$(lines '"i","name":"rank [0-3] exited with code 0"')" 4
expect "tracks" see 'tracks == {"rank 0", "rank 1", "rank 2", "rank 3", "ctrun"}'
expect "every call has an end" see 'all("dur" in e for e in calls)'
expect "bytes" see 'args("all_reduce", "bytes") == {16} and args("broadcast", "bytes") == {16}'
expect "what it was" see 'args("all_reduce", "op") == {"sum"} and args("reduce", "root") == {0}
    and args("all_reduce", "dtype") == {"i32"} and args("all_reduce", "group") == {"world"}'
expect "the algorithm" see 'args("barrier", "algorithm") == {"shm"}'
expect "the same call has the same number on all ranks" see 'len(args("all_reduce", "seq")) == 1'
expect "ranks are in it together" see 'together("all_reduce") and together("barrier")'
expect "slices of a thread are nested" see 'all(nested(a, b) for a in calls for b in slices
    if a["tid"] == b["tid"] and a is not b)'
expect "nothing is lost" see 'len(part) == 1 and part[0]["events_lost"] == 0 and not part[0]["missing"]'

run --trace=run.json --nproc-per-node=3 "$bin/ring"
expect "the token went round" is "$code" 0
expect "three messages" see 'len([e for e in calls if e["name"] == "send" and e["args"]["bytes"] == 4]) == 3'
expect "arrows pair up" see 'begun == ended and len(begun) == len(set(begun)) and len(begun) >= 3'
expect "both ends are in slices" see 'all(inside(e) for e in arrows)'
expect "they go on in time" see 'forward()'

CT_TRACE=run.json run --nproc-per-node=3 sh -c "echo x\$CT_TRACE; exec $bin/ring"
expect "CT_TRACE is --trace" is "$(lines '"X","name":"init"')" 3
expect "and no worker has it" is "$(grep -c '^x$' <<<"$out")" 3
expect "nor writes a file" is "$(ls run*)" run.json

# A rank is killed in its call; what it was in is open, and so is what it was waiting for.
CT_FAULT=rank:2,op:reduce,phase:0,kill run --trace=run.json --on-failure=continue:1 --nproc-per-node=4 "$bin/demo"
expect "a rank dies" is "$(lines '"name":"rank [013] exited with code')" 3
expect "the file is whole after that" whole
expect "its death stands there" is "$(lines '"i","name":"rank 2 was killed by SIGKILL"')" 1
expect "as valid JSON" see 'len(part) == 1'
expect "who waits for it fails" see '"a peer is gone" in args("reduce", "failed") | args("gather", "failed")'
CT_FAULT=rank:1,op:all_reduce,phase:0,stop run --trace=run.json --on-failure=continue:1 --nproc-per-node=3 sh -c '
    [ $RANK = 0 ] && (while ! grep -qs "State:.T" /proc/$(cat pid)/status; do sleep 0.02; done; kill -9 $(cat pid)) &
    [ $RANK = 1 ] && echo $$$$ >pid.new && mv pid.new pid
    exec '"$bin/demo"
expect "a rank is killed while it is stopped in a call" is "$(lines '"name":"rank 1 was killed by SIGKILL"')" 1
expect "it has no end" see '[rank(e) for e in named("all_reduce") if e["ph"] == "B"] == [1]'
expect "the others have" see 'sorted(rank(e) for e in named("all_reduce") if e["ph"] == "X") == [0, 2]'

# A restart is another process of the timeline.
run --trace=run.json --max-restarts=1 --nproc-per-node=2 sh -c '
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] || export CT_FAULT=rank:1,op:barrier,phase:0,kill
    exec '"$bin/demo"
expect "restarted" is "$code" 0
expect "the file is whole with two rounds" whole
expect "the second is labelled" is "$(lines '"process_name".*, restart 1"')" 1
expect "two rounds" see 'sorted(e["args"]["restarts"] for e in named("round")) == [0, 1]'
expect "of generations of their own" see 'len({p["generation"] for p in part}) == 2'
expect "the first died of it" see 'len({e["pid"] for e in calls}) == 2
    and len([e for e in named("barrier") if e["pid"] == 100001]) == 2'

# Too much for its memory: the oldest go, and it is said.
cat >many.c <<'END'
#include <ct.h>
int main(void)
{
    int x = 1;
    if (ct_init_process_group(0) != CT_OK) return 1;
    for (int i = 0; i < 3000; i++) ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_MAX, 0);
    return ct_destroy_process_group(CT_WORLD) != CT_OK;
}
END
if cc -o many many.c -I"$CT_SOURCE/include" -L"$CT_BUILD/lib" -Wl,-rpath,"$CT_BUILD/lib" -lct 2>/dev/null &&
    ./many; then
    run --trace=run.json --trace-size=200k --nproc-per-node=2 ./many
    expect "a small trace" is "$code" 0
    expect "what it lacks is said" says 'the trace lacks [0-9]+ events of rank 1, the oldest: its ring holds 512'
    expect "bounded" [ "$(stat -c %s run.json)" -lt 700000 ]
    expect "the newest are there" see 'max(args("all_reduce", "seq")) == 3000 and part[0]["events_lost"] > 2000'
fi

# Told to stop; and ctrun itself is killed.
stuck="CT_FAULT=rank:1,op:all_reduce,phase:0,stop"
in_the_call() { pgrep -P "$1" -r T >/dev/null; }
for number in TERM KILL; do
    rm -f run.json
    env $stuck "$CTRUN" --trace=run.json --grace=1 --nproc-per-node=2 "$bin/demo" >.out 2>.err &
    pid=$!
    expect "a job hangs" within 30 in_the_call $pid
    kill -$number $pid
    { wait $pid; } 2>/dev/null
    code=$? err=$(cat .err)
    if [ $number = TERM ]; then
        expect "ctrun ends by SIGTERM" is $code 143
        expect "it asked them to stop" is "$(lines 'ctrun asks the workers to stop \(SIGTERM\)')" 1
    else
        expect "ctrun is killed" is $code 137
        expect "its guard writes what there was" within 30 grep -q '"missing":"ctrun was killed"' run.json
    fi
    expect "the file is whole after SIG$number" whole
    expect "the last call is open" see 'any(e["ph"] == "B" for e in named("all_reduce"))'
done

# One file is one job's.
"$CTRUN" --trace=run.json --nproc-per-node=2 sh -c 'touch up; until test -e go; do sleep 0.02; done' 2>.first &
first=$!
within 30 test -e up
run --trace=run.json --nproc-per-node=2 touch ran
expect "a file that another job writes to" is "$code $err" "1 ctrun: --trace run.json: another job writes to it"
expect "is no file for this one" [ ! -e ran ]
touch go
wait $first
expect "the other one has all of it" is "$(lines 'exited with code 0')" 2
expect "and it is whole" whole
run --trace= touch ran
expect "an empty name is none" is "$code $err" "2 ctrun: --trace: give the name of a file (ctrun --help lists the options)"
run --events= touch ran
expect "for --events too" has "$code $err" "2 ctrun: --events: give the name of a file"

# A wrapper that closes descriptors; a program without libct; a file that can't be.
run --trace=run.json --nproc-per-node=2 bash -c 'for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval "exec $fd>&-"; done; exec '"$bin/ring"
expect "who has no ring goes without" is "$code $(lines '"name":"init"')" "0 0"
run --trace=run.json --nproc-per-node=2 true
expect "a program without libct" is "$code $(lines 'exited with code 0')" "0 2"
run --trace=/no/such/folder/run.json touch ran
expect "a file that can't be written" has "$code $err" "1 ctrun: --trace /no/such/folder/run.json: No such file or directory"
expect "is said before anything runs" [ ! -e ran ]
finish
