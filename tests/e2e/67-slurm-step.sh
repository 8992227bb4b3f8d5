# SPDX-License-Identifier: Apache-2.0
# ctrun as several tasks of a Slurm step is never several jobs by mistake (by the variables that
# srun sets; no Slurm is needed).
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1

# step NODES TASKS WORDS...: ctrun WORDS as task 0 of such a step
step() {
    SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURM_NNODES=$1 SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=$1 SLURM_STEP_NUM_TASKS=$2 \
        SLURM_NTASKS=$2 SLURM_PROCID=0 SLURM_NODEID=0 SLURM_STEP_NODELIST='n[1-2]' run "${@:3}"
}

step 2 2 --nproc-per-node=2 touch ran
expect "two nodes and no --nnodes: wrong usage" is "$code" 2
expect "the mistake is named" has "$err" "ctrun: srun started ctrun as 2 tasks on 2 nodes, and without --nnodes each is a job of its own"
expect "and what to write" has "$err" 'srun --ntasks-per-node=1 sh -c '\''exec ctrun --nnodes=$SLURM_STEP_NUM_NODES --node-rank=$SLURM_NODEID --master-addr=$(scontrol show hostnames $SLURM_STEP_NODELIST | head -1) ...'\'
expect "for as many jobs, too" has "$err" "for 2 jobs, --standalone"
expect "no worker was started" [ ! -e ran ]
step 1 4 true
expect "several tasks on one node, too" is "$code" 2
expect "with what is right there" has "$err" "for one job, srun --ntasks=1 ctrun ...; for 4 jobs, --standalone"
step 2 2 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:29513 true
expect "c10d without --nnodes, too" is "$code" 2

for words in --standalone --nnodes=1 "--nnodes=1 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:0"; do
    step 2 2 $words true
    expect "what the user said counts ($words)" is "$code $err" "0 "
done
PET_NNODES=1 step 2 2 true
expect "also by its variable" is "$code $err" "0 "
printf '[ctrun]\nnnodes = 1\n' >job.ini
step 2 2 true
expect "and in job.ini" is "$code $err" "0 ctrun: reading ./job.ini, which lies here (--job=/dev/null: not)"
rm job.ini
TORCHELASTIC_RUN_ID=x step 2 2 true
expect "a worker's own ctrun is a job of its own" is "$code $err" "0 "
SLURM_PTY_PORT=4 step 1 4 true
expect "in the shell of srun --pty on one node ctrun is started once" is "$code $err" "0 "
SLURM_PTY_PORT=4 step 2 4 true
expect "of several, a line says what is not used" is "$code $err" "0 ctrun: of the nodes of this Slurm job only this host is used: srun starts ctrun on each, with --nnodes"
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=1 SLURM_STEP_NUM_TASKS=4 script -qec "$CTRUN echo here" /dev/null </dev/null >.out
    expect "so is one on a terminal" has "$(cat .out)" here
fi
step 1 1 true
expect "one task is one job" is "$code $err" "0 "

# A batch script, or the shell of salloc: no step, and torchrun would use this host.
SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURM_NNODES=2 SLURM_NTASKS=2 SLURM_PROCID=0 SLURM_NODEID=0 run true
expect "outside of a step ctrun runs" is "$code" 0
expect "and says that the other nodes are not used" is "$err" "ctrun: of the nodes of this Slurm job only this host is used: srun starts ctrun on each, with --nnodes"
TORCHELASTIC_RUN_ID=x SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 run true
expect "a worker's own ctrun says no such thing" is "$code $err" "0 "
SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=1 SLURM_NNODES=1 SLURM_PROCID=0 run true
expect "of one node there is nothing to say" is "$code $err" "0 "
finish
