# SPDX-License-Identifier: Apache-2.0
# ctrun as several tasks of a Slurm step is never several jobs by mistake (by the variables that
# srun sets; no Slurm is needed).
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1

# step NODES TASKS WORDS...: ctrun WORDS as task 0 of such a step
step() {
    SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=$1 SLURM_NNODES=$1 SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=$1 SLURM_STEP_NUM_TASKS=$2 \
        SLURM_NTASKS=$2 SLURM_PROCID=0 SLURM_NODEID=0 SLURM_STEP_NODELIST='n[1-2]' run "${@:3}"
}

step 2 4 --nproc-per-node=2 touch ran
expect "two tasks on a node: wrong usage" is "$code" 2
expect "the mistake is named" has "$err" "ctrun: srun started ctrun as 4 tasks on 2 nodes, and without --nnodes each task is a separate job"
expect "and what to write" has "$err" "for one job, start one task per node: srun --ntasks=2 --ntasks-per-node=1 ctrun ...; for 4 jobs, add --standalone"
expect "no worker was started" [ ! -e ran ]
step 1 4 true
expect "several tasks on one node, too" is "$code" 2
step 2 4 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:29513 true
expect "c10d without --nnodes, too" is "$code" 2

step 2 2 --explain true
for line in "nnodes 2 SLURM_STEP_NUM_NODES" "node-rank 0 SLURM_NODEID" "master-addr n1 SLURM_STEP_NODELIST" \
    "rdzv-id slurm-7.0 SLURM_JOB_ID"; do
    expect "the step says: $line" has "$(tr -s ' ' <<<"$out")" "$line"
done

for words in --standalone --nnodes=1 "--nnodes=1 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:0"; do
    step 2 2 $words true
    expect "what the user said counts ($words)" is "$code $err" "0 "
done
PET_NNODES=1 step 2 2 true
expect "also by its variable" is "$code $err" "0 "
printf '[ctrun]\nnnodes = 1\n' >job.ini
step 2 2 true
expect "and in job.ini" is "$code $err" "0 ctrun: reading ./job.ini, which is in this folder (--job=/dev/null ignores it)"
rm job.ini
TORCHELASTIC_RUN_ID=x step 2 2 true
expect "a worker's own ctrun is a job of its own" is "$code $err" "0 "
SLURM_PTY_PORT=4 step 1 4 true
expect "in the shell of srun --pty on one node ctrun is started once" is "$code $err" "0 "
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=1 SLURM_STEP_NUM_TASKS=4 script -qec "$CTRUN echo here" /dev/null </dev/null >.out
    expect "so is one on a terminal" has "$(cat .out)" here
fi
step 1 1 true
expect "one task is one job" is "$code $err" "0 "

# Slurm's task/affinity gives a step the processors of its tasks, by default one each.
if [ "$(nproc)" -gt 1 ]; then
    printf '#!/bin/sh\nexec taskset -c %s "%s" "$@"\n' "$(taskset -cp $$ | sed 's/.*: *//; s/[,-].*//')" "$CTRUN" >one-cpu
    chmod +x one-cpu
    CTRUN=$PWD/one-cpu step 1 1 --nproc-per-node=2 true
    expect "workers that share a task's only processor get a line with srun's option" matches "$code $err" \
        "^0 ctrun: 2 workers share 1 of the [0-9]+ processors here, since ctrun was given no more: srun --cpus-per-task=2 gives more$"
    CTRUN=$PWD/one-cpu CT_SLOTS=1 step 1 1 --nproc-per-node=2 true
    expect "in a batch script the line names sbatch's option" has "$err" "sbatch --cpus-per-task=2 gives more"
    CTRUN=$PWD/one-cpu step 1 1 true
    expect "one worker has what it needs" is "$code $err" "0 "
    CTRUN=$PWD/one-cpu run --nproc-per-node=2 true
    expect "a user who chose one processor gets no line" is "$code $err" "0 "
else
    echo "skipped: a task's share of the processors, where there is only one"
fi

# A batch script, or the shell of salloc: ctrun starts srun.
mkdir bin
printf '#!/bin/sh\nprintf "%%s\\n" "$@" >srun.words; env >srun.variables\n' >bin/srun
printf '#!/bin/sh\nprintf "%%s" "${ends-NONE}"\n' >bin/squeue
chmod +x bin/*
batch() { PATH=$PWD/bin:$PATH SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURM_NNODES=2 SLURM_PROCID=0 SLURM_NODEID=0 "$@"; }
rm -f srun.words
SLURM_NTASKS=3 SLURM_TASKS_PER_NODE=2,1 batch run --tee=3 ./app -- -x
expect "in a batch script ctrun starts srun, with one task a node and its own words" \
    is "$(tr '\n' ' ' <srun.words)" "--nodes=2 --ntasks=2 --ntasks-per-node=1 --distribution=block --overlap --cpu-bind=none --kill-on-bad-exit=0 --wait=60 --disable-status --mpi=none --export=ALL --input=0 $(realpath "$CTRUN") --tee=3 ./app -- -x "
expect "the tasks of each node go along" grep -qx CT_SLOTS=2,1 srun.variables
expect "so does a secret, made for this job" grep -qxE 'CT_STORE_SECRET=[0-9a-f]{64}' srun.variables
expect "which stands in no word" [ "$(grep -c "$(sed -n 's/^CT_STORE_SECRET=//p' srun.variables)" srun.words)" = 0 ]
expect "nothing says when the job ends" [ "$(grep -c SLURM_JOB_END_TIME srun.variables)" = 0 ]
ends=2000000000 batch run true
expect "what squeue says about that goes along" grep -qx SLURM_JOB_END_TIME=2000000000 srun.variables
ends= batch run true
expect "of a job that is over a sentence says so" is "$code $err" \
    "1 ctrun: SLURM_JOB_ID=7, but Slurm has no such job, or it is over: \`unset SLURM_JOB_ID\` if this shell has it from elsewhere, or --standalone uses this host only"
SLURM_CPUS_PER_TASK=3 SLURM_NTASKS_PER_GPU=1 SLURM_GPUS_PER_TASK=1 SLURM_GPUS_ON_NODE=4 batch run true
expect "a task's share of processors is no limit, but programs can read it" has "$(cat srun.words)" --export=ALL,SLURM_CPUS_PER_TASK=3
expect "nor is its share of GPUs" has "$(cat srun.words)" --gpus-per-node=4
expect "and what contradicts one task a node is left out" [ "$(grep -c '^SLURM_\(GPUS_PER_TASK\|NTASKS_PER_GPU\|CPUS_PER_TASK\)=' srun.variables)" = 0 ]
batch run --nnodes=1:4 --rdzv-backend=c10d true
expect "an elastic job uses the nodes that there are, and goes on without one" has "$(tr '\n' ' ' <srun.words)" "--wait=0 --disable-status --mpi=none --export=ALL --no-kill"
SLURM_HET_SIZE=2 SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES_HET_GROUP_0=1 SLURM_JOB_NUM_NODES_HET_GROUP_1=1 SLURM_NTASKS=2 run true
expect "in a heterogeneous salloc ctrun does not run on the first host alone" is "$code $err" "2 ctrun: SLURM_HET_SIZE=2: ctrun starts itself on the nodes of one component only; srun --het-group=0-1 ./app starts the ranks of all, and ctrun --nnodes=1 uses the first component (ctrun --help lists the options)"
SLURM_HET_SIZE=2 batch run true
expect "of a heterogeneous job the components are named" is "$code $err" "2 ctrun: SLURM_HET_SIZE=2: ctrun starts itself on the nodes of one component only; srun --het-group=0-1 ./app starts the ranks of all, and ctrun --nnodes=2 uses the first component (ctrun --help lists the options)"
printf '#!/bin/sh\ntrap "exit 130" INT\nkill -TERM $PPID\nwhile :; do sleep 0.1; done\n' >bin/srun
batch run true
expect "SIGTERM to ctrun is SIGINT to srun, which kills the tasks otherwise" is "$code" 143
printf '#!/bin/sh\nprintf "%%s\\n" "$@" >srun.words\n' >bin/srun
rm srun.words
SLURM_PTY_PORT=4 SLURM_STEP_ID=1 batch run true
expect "so it does in the shell of srun --pty, which is a step of its own" grep -qx -- --nodes=2 srun.words
batch run --nnodes=3 true
expect "more nodes than the job has are refused" is "$code $err" \
    "2 ctrun: --nnodes=3: the Slurm job 7 has 2 nodes (ctrun --help lists the options)"
for words in --standalone --nnodes=1; do
    rm -f srun.words
    batch run $words touch ran
    expect "$words uses this node only" is "$code $err $(ls srun.words ran 2>/dev/null)" "0  ran"
    rm -f ran
done
TORCHELASTIC_RUN_ID=x batch run true
expect "a worker's own ctrun is a job of its own" is "$code $err" "0 "
PATH=$(dirname "$(command -v env)") SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 run true
command -v srun >/dev/null || expect "without srun a sentence says so" has "$err" "this is Slurm job 7 with 2 nodes, but srun can't be executed"
PATH=$PWD/bin:$PATH
ends= SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=1 run true
expect "on one node ctrun names a job that is over, and runs" is "$code $err" "0 ctrun: SLURM_JOB_ID=7, but Slurm has no such job, or it is over, so the job has no deadline: \`unset SLURM_JOB_ID\` if this shell has it from elsewhere, or --standalone uses this host only"
SLURM_NTASKS=3 SLURM_TASKS_PER_NODE=3 SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=1 run sh -c 'echo $WORLD_SIZE >w$RANK'
expect "in a job of one node the tasks are the workers" is "$code $(cat w0 w1 w2)" "0 3
3
3"
SLURM_GPUS_ON_NODE=2 SLURM_NTASKS=1 SLURM_TASKS_PER_NODE=1 SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=1 run --explain true
expect "where that is one, its GPUs are" has "$(tr -s ' ' <<<"$out")" "nproc-per-node 2 SLURM_GPUS_ON_NODE"
finish
