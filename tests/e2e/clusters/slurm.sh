# SPDX-License-Identifier: Apache-2.0
# Jobs of a real Slurm with two nodes: the three forms, how they end, and what stands in their way.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/slurm.sh"
trap 'no_hosts; cd /; rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
unset CT_DEADLINE CT_DEADLINE_MARGIN
slurm SchedulerParameters=batch_sched_delay=0,sched_min_interval=0 || { echo "skipped: a Slurm needs slurm-wlm, munge and root"; exit 77; }
login=${on[0]} two="-N2 --ntasks-per-node=2"
PATH=$CT_BUILD/bin:$PATH
cp "$CT_BUILD/bin/hello" "$CT_BUILD/bin/stop" . # as the page has it

# on_login WORDS...: as run, where users log in.  An srun without -t there has no end.
on_login() {
    timeout 60 $login "$@" >.out 2>.err </dev/null
    code=$? out=$(cat .out) err=$(cat .err)
}
# start OPTIONS LINES: a batch job in the background; $id.  Its last line is "code N".
start() {
    printf '#!/bin/bash\n%s\necho "code $?"\n' "$2" >job.sh
    : >job.out
    : >job.err
    id=$($login sbatch --parsable $1 -o job.out -e job.err job.sh)
}
# result: of that job, when it is over
result() {
    within 60 is_over
    out=$(cat job.out) err=$(cat job.err) code=$(sed -n 's/^code //p' job.out | tail -1)
}
is_over() { listed=$($login squeue -h -j "$id" 2>/dev/null) && [ -z "$listed" ]; }
job() { start "$@"; result; }
ranks() { for ((r = 0; r < $1; r++)); do echo "rank $r of $1: the sum is $(($1 * ($1 + 1) / 2))"; done; }
says() { grep -q "$1" job.out 2>/dev/null; }
# The programs run in our folder, on hosts that share it.
nothing_left() { for p in $(pgrep -x "$1"); do [ "$(readlink "/proc/$p/cwd")" = "$work" ] && return 1; done; true; }

on_login srun -N2 --ntasks-per-node=2 ./hello
expect "srun ./app: one world" is "$code $(sorted "$out")" "0 $(ranks 4)"
on_login srun -N2 -n3 ./hello
expect "of uneven nodes, too" is "$code $(sorted "$out")" "0 $(ranks 3)"
on_login srun -N2 ctrun --nproc-per-node=2 ./hello
expect "srun ctrun ./app: one world" is "$code $(sorted "$out")" "0 $(ranks 4)"
on_login salloc -N2 --ntasks-per-node=2 ctrun ./hello
expect "salloc ctrun ./app: one world" is "$code $(sorted "$out")" "0 $(ranks 4)"
on_login salloc -N1 -n1 : -N1 -n1 ctrun ./hello
expect "in a heterogeneous salloc ctrun does not run on the first host alone" matches "$code $err" "^2 .*SLURM_HET_SIZE=2: ctrun starts itself on the nodes of one component only"
job "-N2 -n3" 'ctrun ./hello; ctrun --nnodes=1 ./hello; srun -N1 -n2 ./hello; ctrun ./hello >a & ctrun ./hello >b; wait $!'
expect "in a batch script ctrun uses all nodes, --nnodes=1 this one, a smaller step its own" \
    is "$(sort job.out)" "$(printf 'code 0\n%s\n%s\n%s\n' "$(ranks 3)" "$(ranks 2)" "$(ranks 2)" | sort)"
expect "two at a time don't meet" is "$(sort a b)" "$( (ranks 3; ranks 3) | sort)"
job "-N1 -n3" "ctrun ./hello"
expect "in a job of one node its tasks are the workers" is "$(sorted "$out")" "code 0
$(ranks 3)"
id=$($login sbatch --parsable -N2 --array=1-2 -o array.%a --wrap "ctrun ./hello")
result 2>/dev/null
expect "jobs of an array don't meet" is "$(sort array.1 array.2 | grep rank)" "$( (ranks 2; ranks 2) | sort)"
printf 'h2\nh1\nh1\n' >hostfile
SLURM_HOSTFILE=$work/hostfile on_login srun -N2 -n3 -m arbitrary ./hello
expect "rank 0 on the second node is found by the host file" is "$code $(sorted "$out")" "0 $(ranks 3)"
job "-N2 -n2 --export=NONE" "PATH=$PATH; export WORD=here; ctrun sh -c 'echo \$RANK \$WORD'"
expect "sbatch --export=NONE does not take the script's own variables from the workers" is "$(sorted "$out")" "0 here
1 here
code 0"
job "$two" "ctrun --nproc-per-node=1 sh -c 'test \$RANK = 1 || exit 0; srun --overlap -N1 -n2 ./hello'"
expect "srun in a worker is a job of its own" is "$(sorted "$out")" "code 0
$(ranks 2)"
job "$two" "seq 2 | ctrun --nproc-per-node=1 --stdin=all sh -c 'sed s/^/\$RANK:/'; seq 2 | ctrun sh -c 'sed s/^/\$RANK:/'; seq 2 | ctrun --stdin=3 sh -c 'sed s/^/\$RANK:/'"
expect "standard input goes to rank 0, and where --stdin says" is "$(sorted "$out")" "$(printf '%s\n' 0:1 0:2 1:1 1:2 0:1 0:2 3:1 3:2 'code 0' | sort)"

on_login srun -N2 -n4 ctrun ./hello
expect "several tasks a node are refused once" is "$code $(grep -c 'ctrun: srun started ctrun as 4 tasks' .err)" "2 1"
expect "with the command that works" has "$err" "srun --ntasks=2 --ntasks-per-node=1 ctrun"
job "$two" "srun --ntasks=2 --ntasks-per-node=1 ctrun --nproc-per-node=2 ./hello"
expect "in a job of more tasks, too" is "$(sorted "$out")" "code 0
$(ranks 4)"
SLURM_JOB_ID=77777 SLURM_JOB_NUM_NODES=2 on_login ctrun ./hello
expect "the variables of a job that is over are named" is "$code $err" \
    "1 ctrun: SLURM_JOB_ID=77777, but Slurm has no such job, or it is over: \`unset SLURM_JOB_ID\` if this shell has it from elsewhere, or --standalone uses this host only"
SLURM_JOB_ID=77777 SLURM_JOB_NUM_NODES=2 on_login ctrun --standalone ./hello
expect "as is what runs all the same" is "$code $out" "0 $(ranks 1)"

# How a job ends.
job "$two" "ctrun sh -c 'test \$RANK = 3 && exit 3; exec sleep 1$$'"
expect "a failed rank's code is ctrun's" is "$code" 3
expect "and is said once" is "$(grep -c 'ctrun: rank 3 .* failed first: it exited with code 3' job.err)" 1
expect "on no node anything is left" eval '! pgrep -f "sleep 1$$"'
start "$two" "ctrun ./stop model.txt 10"
within 30 says "from step" && sleep 1 # all ranks have called ct_should_stop()
$login scancel "$id"
result
expect "scancel: the ranks stop at a step and save" [ -s model.txt ]
expect "and nothing is left" nothing_left stop
start "$two" 'ctrun ./stop model.txt 10 & wait_for=$!; while [ ! -e now ]; do sleep 0.1; done; kill -TERM $wait_for; wait $wait_for'
within 30 says "from step" && sleep 1 # all ranks have called ct_should_stop()
touch now
result
expect "so they do when ctrun itself is told" has "$out" "saved at step"
expect "with their code" is "$code" 75
start "$two" "ctrun sh -c 'trap \"echo told \$RANK; exit 0\" USR1; echo began; while :; do sleep 0.1; done'"
within 30 eval '[ "$(grep -c began job.out)" = 4 ]'
$login scancel --signal=USR1 "$id"
result
expect "scancel --signal reaches all workers" is "$(grep told job.out | sort -u)" "$(printf 'told %d\n' 0 1 2 3)"
job "$two -t 5" "ctrun --deadline-margin=299 ./stop model.txt 10"
expect "before the time limit they save" matches "$out" "saved at step"
expect "as ctrun says" has "$err" "the ranks are asked to stop at the same step"

# The scripts of docs/slurm.md, as they stand.
awk '/^```sh$/ { file = "page." ++n; next } /^```$/ { file = "" } file { print >file }' "$CT_SOURCE/docs/slurm.md"
for page in page.1 page.3 page.4; do
    id=$($login sbatch --parsable -o job.out -e job.err $page)
    result
    expect "the page's script runs: $(grep -m1 ^ctrun $page)" is "$(sort job.out $(ls first second 2>/dev/null) | uniq -c | tr -s ' ')" \
        "$(ranks 4 | sed "s/^/ $([ $page = page.3 ] && echo 2 || echo 1) /")"
    rm -f first second
done
expect "there are four of them" is "$(ls page.*)" "$(printf 'page.%d\n' 1 2 3 4)"
rm model.txt stop job.out
printf '#!/bin/sh\n[ ${SLURM_RESTART_COUNT:-0} = 0 ] && set -- "$1" 10\nexec "%s/bin/stop" "$@"\n' "$CT_BUILD" >stop # first slow, then fast
chmod +x stop
id=$($login sbatch --parsable -o job.out -e job.err page.2)
within 30 says "from step" && sleep 1 # all ranks have called ct_should_stop()
$login scancel --signal=TERM "$id"
# It begins two minutes later unless it is hurried: not before the first run is quite over, which would be forgotten, nor
# within the same second or two, when Slurm takes the second run for the one that it has just ended.
requeued() { $login scontrol show job "$id" | tr '\n' ' ' | grep -q 'JobState=PENDING.* Restarts=1'; }
hurry() { says "run 1" || { $login scontrol update jobid="$id" StartTime=now 2>/dev/null; sleep 0.5; false; }; }
within 30 requeued
sleep 3
within 60 hurry
within 60 says "done at"
result
expect "a job that saved goes back into the queue, and goes on where it was" matches "$(tr '\n' ' ' <job.out)" \
    '^run 0 from step 0 saved at step ([0-9]+): .* run 1 from step ([0-9]+) done at step 2000'
expect "at that step" is "${BASH_REMATCH[1]:-}" "${BASH_REMATCH[2]:-none}"

# Nodes and ctruns that die.
start "$two" "ctrun sh -c 'echo began; exec sleep 2$$'"
within 30 eval '[ "$(grep -c began job.out)" = 4 ]'
agent= # the ctrun of node 1 of this job; one of the job before may still be ending
for p in $(pgrep -x ctrun); do
    tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" >variables || continue # it ended: "variables" is still the one before's
    grep -qx "TMPDIR=$TMPDIR" variables && grep -qx "SLURM_JOB_ID=$id" variables && grep -qx SLURM_NODEID=1 variables && agent=$p && cp variables of_agent
done
sed -n 's/^CT_STORE_SECRET=//p' of_agent >secret
expect "ctrun made a secret for its nodes" grep -qxE '[0-9a-f]{64}' secret
expect "which stands in no command line" [ "$(cat /proc/[0-9]*/cmdline 2>/dev/null | grep -acFf secret)" = 0 ]
kill -KILL "$agent"
result
expect "a ctrun that is killed ends the job" is "$code" 137
expect "and is named" has "$err" "ctrun: node 1 (h2): its ctrun was lost: its connection was closed. ctrun stopped the workers here"
expect "with nothing left" eval '! pgrep -f "sleep 2$$"'
finish
