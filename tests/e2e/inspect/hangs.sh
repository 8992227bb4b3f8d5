# SPDX-License-Identifier: Apache-2.0
# ctctl: the classic ways to hang, each with its sentence; with all ranks stopped; without ctrun;
# programs without libct; ps, stack, and what programs read.
python=${TORCH_PYTHON:-} # lib.sh unsets all TORCH*
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
ctctl=$CT_BUILD/bin/ctctl hangs=$CT_BUILD/tests/e2e_hangs
export OMP_NUM_THREADS=1

# job WORDS...: ctrun in the background, $job is its pid; no_job ends it.
job() {
    "$CTRUN" --nproc-per-node=4 "$@" >job.out 2>job.err </dev/null &
    job=$!
}
no_job() { kill -KILL "$job"; wait "$job"; } 2>/dev/null

# said PATTERN: ctctl status says it, sooner or later; $out is what it said last, $code its exit code.
said_now() {
    out=$("$ctctl" status --after=0.2 "$job" 2>&1)
    code=$?
    [[ $out =~ $1 ]]
}
said() { within 30 said_now "$1"; }
# saw PATTERN COMMAND...: so too, of any command
saw_now() {
    out=$("${@:2}" 2>&1)
    [[ $out =~ $1 ]]
}
saw() { within 30 saw_now "$@"; }
sentences() { grep -c '^  ' <<<"$out"; }

# Rank 3's own process, once it is in ct_init_process_group().
kill_in_init() {
    local pid
    pid=$("$ctctl" status --json "$job" | grep -o '"rank": 3, "pid": [0-9]*,[^{]*"state": "init"' | grep -o '"pid": [0-9]*')
    [ -n "$pid" ] && kill -KILL "${pid#*: }"
}

# hang WAY NAME PATTERN [SENTENCES]
hang() {
    job "$hangs" "$1"
    [ "$1" != silent ] || within 30 kill_in_init || echo "rank 3 is not in init"
    expect "$2" said "$3"
    expect "$2: with exit code 1" is "$code" 1
    expect "$2: in ${4:-1} sentences" is "$(sentences)" "${4:-1}"
    no_job
}

call='all_reduce #2 \(1024 f32, sum\)' place='hangs\.c:[0-9]+ \(sum\)' waited='Ranks 0-2 have waited [0-9.]+ s'
sum="in $call at $place" init="\. $waited in ct_init_process_group\(\)"
deadlock='deadlock for [0-9.]+ s:' blocks='this also blocks'
sleeps='\(pid [0-9]+, sleeping\)'
# idle STATE: the sentence when the others wait for rank 3 at $place.
idle() { echo "rank 3 \(pid [0-9]+, $1\) has not joined $call; its last call was #1\. $waited at $place"; }
lets='kill -CONT lets the job continue'
hang sleeps "a rank sleeps" "$(idle sleeping)"
hang stopped "a rank is stopped" "a signal stopped rank 3 after #1: $lets \(pid [0-9]+, stopped\)\. $waited $sum"
hang order "calls in another order" "$deadlock 0 -> 1 -> 0, rank 0 in recv \(8 f32, tag 7\) at hangs\.c:[0-9]+ \(out_of_order\); rank 1 $sum; $blocks ranks 2-3 $sum"
hang groups "a rank waits in another group" "$deadlock 0 -> 1 -> 0, rank 0 in all_reduce #1 \(16 f32, sum\) of group tensor at .*; rank 1 in barrier #1 of group pipe at .*; $blocks rank 2 in all_reduce #1 \(16 f32, sum\) of group tensor at .* and rank 3 in barrier #1 of group pipe at "
hang silent "a rank died silently" "rank 3 died silently in the same call: its process \(pid [0-9]+\) is gone, but e2e_hangs \(pid [0-9]+\), which ctrun started, lives on$init"
hang size "a message of the wrong size" "rank 3 made no call after recv of 256 f32 from rank 0 \(tag 0\) failed $sleeps\. $waited $sum"
hang init "a rank never calls init" "rank 3 $sleeps has not called ct_init_process_group\(\)$init"
hang sends "two ranks send to each other" "$deadlock 0 -> 1 -> 0, both in send \(8388608 u8, tag 0\) at hangs\.c:[0-9]+ \(two_sends\); $blocks ranks 2-3 $sum"
hang circle "three ranks in a circle" "$deadlock 0 -> 1 -> 2 -> 0, all in recv \(8 f32, tag 0\) at hangs\.c:[0-9]+ \(three_receives\); $blocks rank 3 $sum"
hang probe "a probe" "rank 1 $sleeps is in no call; its last call was #1\. Rank 0 has waited [0-9.]+ s in probe for a message from rank 1 at hangs\.c:[0-9]+ \(probes\)"
hang itself "a rank waits for itself" "$deadlock 2 -> 2, rank 2 in recv \(8 f32, tag 0\) at hangs\.c:[0-9]+ \(itself\); $blocks ranks 0-1,3 $sum"
hang half "others have left a group of the same name and size" "rank 1 $sleeps has not joined barrier #2 of group world\.1; its last call was #1\. Rank 0 has waited [0-9.]+ s at hangs\.c:[0-9]+ \(half_leaves\)"

# What libct finds out by itself is no hang.
for way in count root; do
    run --nproc-per-node=4 "$hangs" $way
    expect "a wrong $way is told to both sides" matches "$code $err" "^3 .*the ranks disagree: rank [0-3] calls (reduce|all_reduce) #2"
done
run --nproc-per-node=4 "$hangs" returns
expect "a rank returned early" matches "$code $err" "^3 .*all_reduce #2 \(1024 f32, sum\) on group eval, rank [0-2]: rank 3 .*destroyed the group without making this call"

# ---- All stopped, ctrun too: ctctl needs no answer of theirs.
job "$hangs" sleeps
said "rank 3 .* has not joined"
workers=$("$ctctl" status --json "$job" | grep -o '"pid": [0-9]*' | cut -d' ' -f2)
kill -STOP $workers "$job"
expect "with all ranks and ctrun stopped" said "$(idle stopped)"
expect "that they are is said once" said "a signal stopped all ranks here, ranks 0-3: $lets"
kill -CONT $workers "$job"
expect "ps" saw "JOB .*$job .*stuck .*4 ranks .*hangs" "$ctctl" ps --after=0.2
if command -v python3 >/dev/null; then
    reads() {
        "$ctctl" status --json --after=0.2 "$job" >status.json
        "$ctctl" ps --json --after=0.2 >ps.json
        out=$(python3 -c 'import json
job, = json.load(open("status.json"))
said, = job["sentences"]
assert job["state"] == "stuck" and said["kind"] == "missing" and said["group"] == "world", job
assert (said["operation"], said["sequence"]) == ("all_reduce", 2) and said["text"] and said["for_seconds"] > 0, said
waiting, = said["waiting"]
missing, = said["missing"]
assert waiting["ranks"] == [0, 1, 2] and waiting["where"].startswith("hangs.c:"), waiting
assert missing["ranks"] == [3] and (missing["reason"], missing["after"]) == ("idle", 1), missing
assert missing["pids"] == [job["ranks"][3]["pid"]] and missing["state"] == "sleeping", missing
assert [len(r["groups"]) for r in job["ranks"]] == [1, 1, 1, 1] and job["ranks"][0]["groups"][0]["begun"] == 2, job
assert any(j["launcher"] == job["launcher"] for j in json.load(open("ps.json")))' 2>&1)
    }
    expect "programs read it" within 30 reads
fi
expect "a stack, after the call that the rank is in" \
    saw "rank 1 of job .*, pid [0-9]+: .*e2e_hangs sleeps
all_reduce #2 \(1024 f32, sum\) on group world at hangs\.c:[0-9]+ \(sum\)
.*(all_reduce|/proc/[0-9]+/syscall)" "$ctctl" stack "$job" 1
expect "without tools what /proc shows, and what to install" \
    saw "state S, in .*/proc/[0-9]+/.*the stack needs eu-stack or gdb: apt-get install elfutils" env PATH=/nowhere "$ctctl" stack "$job" 1
expect "the sentence needs no tools" \
    saw "rank 3 .* has not joined $call; .*$waited at e2e_hangs\+0x[0-9a-f]+" env PATH=/nowhere "$ctctl" status --after=0.2 "$job"
expect "top names the rank that the others wait for first, and folds the others" saw "IN CALLS  NOW
3 +[0-9]+ S  ! blocking +[0-9]+ +0 +0 %  \(sleep\)
0-2 +3 ranks S  = waiting +[0-9]+ +0 +100 %  all_reduce #2 \(1024 f32, sum\) on group world at hangs\.c:[0-9]+ \(sum\)\$" "$ctctl" top --after=0.2 "$job"
expect "where each rank is" saw "  ! rank 3: blocking; pid [0-9]+, S \(sleep\), [0-9.]+ s CPU; in no call; .*e2e_hangs sleeps
  = rank 0: waiting; pid [0-9]+, " "$ctctl" status -v "$job"
no_job

# ---- Ranks that closed what they inherited have pages of their own: it is one job all the same.
cat >closes <<'END'
for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval "exec $fd>&-"; done
exec "$@"
END
for who in '*' 1; do
    job bash -c "[[ \$RANK == $who ]] && exec bash closes $hangs sleeps; exec $hangs sleeps"
    expect "its own page ($who)" said "$(idle sleeping)"
    expect "is no job of its own ($who)" is "$("$ctctl" ps | grep -cw "$job")" 1
    expect "and its rank has begun ($who)" lacks "$("$ctctl" status -v "$job")" "it does not use libct"
    no_job
done

job sh -c '("$@" &); exec sleep 600' - "$hangs" sleeps
expect "a rank whose parent has ended is found" said "$(idle sleeping)"
no_job

# ---- ctrun says it by itself.
job --stall=1s --events=events "$hangs" sleeps
in_err() { grep -qE "$1" job.err; }
expect "--stall" within 30 in_err "^ctrun: rank 3 $sleeps has not joined $call; its last call was #1\. $waited at e2e_hangs\+0x[0-9a-f]+; ctctl status $job names the source line, if the program was compiled with -g\$"
expect "as an event" within 30 grep -qE '"event":"stall",.*"sentences":\[\{"kind":"missing","group":"world","seconds":[0-9.]+,"text":"rank 3 .* has not joined .*"operation":"all_reduce","sequence":2,.*"missing":\[\{"reason":"idle","ranks":\[3\]' events

# A debugger that looks and goes, as ctctl stack does, is no news; one that stays is.
rank3=$("$ctctl" status --json "$job" | grep -o '"rank": 3, "pid": [0-9]*' | grep -o '[0-9]*$')
if [ "$("$CT_BUILD/tests/e2e_holds" "$rank3" 2)" = held ]; then
    expect "a rank that a debugger holds for 2 s is no news" lacks "$(cat job.err)" "debugger"
    "$CT_BUILD/tests/e2e_holds" "$rank3" 60 >held &
    holder=$!
    expect "one that it holds for longer is" within 30 in_err "a debugger \(pid [0-9]+\) holds rank 3 after #1"
    kill $holder
    wait $holder
fi
no_job

job --stall=1s sleep 600
expect "--stall tells that no process of any program works" within 30 in_err "^ctrun: no process has used a processor or written output for [0-9.]+ s: ranks 0-3 \(pids [0-9, ]+, sleeping\)\$"
no_job
job --stall=1s sh -c 'while sleep 0.2; do echo step; done'
sleep 4
expect "and not of one that writes, but hardly uses a processor" lacks "$(cat job.err)" "no process"
no_job
job --stall=6s sh -c 'sleep 1; exec "$@"' - "$hangs" sleeps # the wait begins between two checks
expect "--stall=6s tells of a wait of 6 s, not of 9 s" within 30 in_err "has not joined $call; .* have waited [67]\.[0-9] s"
no_job

job --stall=1s sh -c 'test $RANK != 2 || kill -STOP $$$$; sleep 600'
expect "--stall tells of a stopped process of any program" within 30 in_err "^ctrun: a signal stopped rank 2 before any call: $lets \(pid [0-9]+, stopped\)\$"
sleep 3
expect "once, and of none that sleeps" is "$(grep -c '^ctrun: ' job.err)" 1
no_job

# ---- By the name that the user gave.
job --rdzv-id=my/name.$$ sleep 600
named() { "$ctctl" status my/name.$$ >job.out 2>&1; }
expect "a job of one node has the name that it was given" within 30 named
expect "which is said" has "$(cat job.out)" "job my/name.$$ (ctrun $job, sleep, 4 ranks"
no_job

# ---- Usage.
for words in "" "nothing" "status --nope" "status a b" "stack" "stack x" "status --after=x" "status 999999999" "ps x"; do
    out=$("$ctctl" $words 2>&1)
    expect "'ctctl $words' is wrong" is "$?" 2
done
expect "help" has "$("$ctctl" --help)" "usage: ctctl ps"
expect "version" matches "$("$ctctl" --version)" "^ctctl [0-9]"

# ---- Without ctrun.
new_port
alone=()
for r in 0 1 2 3; do
    RANK=$r WORLD_SIZE=4 LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$hangs" sleeps >alone.out 2>&1 </dev/null &
    alone+=($!)
done
job=127.0.0.1:$port
expect "without ctrun" said "job 127.0.0.1:$port \(started by pid $$,.* 4 ranks,.*: stuck
  $(idle sleeping)"
kill -KILL "${alone[@]}"
wait "${alone[@]}" 2>/dev/null

# ---- Programs without libct: their processes.
job sh -c 'test $RANK != 2 || kill -STOP $$$$; while test $RANK = 3; do :; done; sleep 600'
expect "a stopped process of any program" said "  a signal stopped rank 2 before any call: $lets \(pid [0-9]+, stopped\)"
expect "and what the others' show" said "does not use libct.*  > rank 1: running; pid [0-9]+, S .*, [0-9.]+ s CPU \(none in the last second\); sh -c"
expect "a rank that computes differs from the ranks that wait" said "rank 3: running; pid [0-9]+, R, [0-9.]+ s CPU; sh -c"
no_job
if command -v python3 >/dev/null; then
    job python3 -c 'import time; time.sleep(600)'
    expect "a stack of Python without py-spy says what to install, and shows what there is" \
        saw "Python lines need py-spy \(pip install py-spy\); this is the interpreter's stack:
state S" env PATH=/nowhere "$ctctl" stack "$job" 1
    no_job
fi
if [ -n "$python" ] && "$python" -c 'import torch' 2>/dev/null; then
    cat >train.py <<'END'
import time, torch
def step():
    time.sleep(600)
step()
END
    if ! command -v py-spy >/dev/null; then # what it would say
        mkdir tools
        printf '#!/bin/sh\nprintf "Thread 1 (idle): \\"MainThread\\"\\n    step (train.py:3)\\n    <module> (train.py:4)\\n"\n' >tools/py-spy
        chmod +x tools/py-spy
        PATH=$PWD/tools:$PATH
    fi
    PYTHON_EXEC=$python job train.py
    expect "a PyTorch program" said "rank 3: running; pid [0-9]+, S \(sleep\), .*in Python at train\.py:3 \(step\); .*train\.py"
    expect "nothing stands there" is "$code" 0
    no_job
fi
finish
