# SPDX-License-Identifier: Apache-2.0
# Where workers run: CPUs as the kernel has them, GPUs as the environment has them.
. "$CT_SOURCE/tests/e2e/lib.sh"
unset CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES
export OMP_NUM_THREADS=3 # no line about it on stderr

allowed() { sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$1/status"; }
# "0-2,5" into "0 1 2 5"
numbers() { local part; for part in ${1//,/ }; do seq -s ' ' "${part%-*}" "${part#*-}"; done | tr '\n' ' '; }
mine=$(allowed self)
read -r -a cpus <<<"$(numbers "$mine")"
first=${cpus[0]} last=${cpus[-1]}
tell='echo $LOCAL_RANK $(sed -n "s/^Cpus_allowed_list:\t//p" /proc/self/status)'

# ---- CPUs ----
run --nproc-per-node=2 sh -c "$tell"
expect "without an option workers have ctrun's CPUs" is "$(sorted "$out")" $"0 $mine
1 $mine"
run --nproc-per-node=2 --bind=none sh -c "$tell"
expect "and with none" is "$code $(sorted "$out")" $"0 0 $mine
1 $mine"
run --nproc-per-node=2 --bind="$last;$first" sh -c "$tell"
expect "a list is by local rank" is "$code $(sorted "$out") $err" $"0 0 $last
1 $first "
CT_BIND="$first;$last" run --nproc-per-node=2 sh -c "$tell"
expect "it may come from the environment" is "$(sorted "$out")" $"0 $first
1 $last"
run --nproc-per-node=2 --bind="$first" true
expect "fewer lists than workers are refused" is "$code $err" "2 ctrun: --bind=$first has CPUs for 1 worker, but there are 2 workers"
run --bind=8191 true
expect "CPUs that are not ours are refused" is "$code $err" "1 ctrun: --bind gives local rank 0 the CPUs 8191, but ctrun may use $mine only"
taskset -c "$first" "$CTRUN" --bind=numa sh -c "$tell" >.numa 2>&1
expect "what ctrun was given is not left" is "$(cat .numa)" "0 $first"
taskset -c "$first" "$CTRUN" --nproc-per-node=2 --bind=core true >.core 2>&1
expect "a core is not shared by --bind=core" is "$? $(cat .core)" "1 ctrun: --bind=core: 2 workers, but ctrun may use 1 core only (1 CPUs); start fewer, or let them share with --bind=numa or none"
run --bind=core sh -c "$tell; sh -c '$tell'"
expect "children of workers stay there" is "$out" $"0 $mine
0 $mine"
cores=$(for cpu in "${cpus[@]}"; do cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" 2>/dev/null || echo "$cpu"; done | sort -u | wc -l)
if [ "$cores" -ge 2 ]; then
    run --nproc-per-node=2 --bind=core sh -c "$tell"
    mapfile -t lines <<<"$(sorted "$out")"
    both=$(for line in "${lines[@]}"; do numbers "${line#* }"; done | tr ' ' '\n' | grep . | sort -n | tr '\n' ' ')
    expect "cores are divided without rest" is "$code $both" "0 ${cpus[*]} "
fi
run --max-restarts=1 --bind="$last" sh -c "$tell; exit \$((1 - TORCHELASTIC_RESTART_COUNT))"
expect "so it is after a restart" is "$out" $"0 $last
0 $last"

run --nproc-per-node=2 --bind="$last;$first" --explain true
expect "--explain says where, and runs nothing" matches "$out" "local rank 0 +CPUs $last .*local rank 1 +CPUs $first "

# ---- GPUs: no machine needs to have any for these ----
see='echo $RANK L$LOCAL_RANK C$CUDA_VISIBLE_DEVICES H$HIP_VISIBLE_DEVICES'
CUDA_VISIBLE_DEVICES=4,5 run --nproc-per-node=2 --virtual-local-rank sh -c "$see" '$local_rank'
expect "E18: each sees its own item" is "$code $(sorted "$out")" $'0 0 L0 C4 H\n1 L0 C5 H'
CUDA_VISIBLE_DEVICES=4,5 run --nproc-per-node=2 --virtual-local-rank echo '$local_rank'
expect "macros keep the real local rank" is "$(sorted "$out")" $'0\n1'
CUDA_VISIBLE_DEVICES=4 run --nproc-per-node=2 --virtual-local-rank true
expect "E19: too few" is "$code $err" "1 ctrun: local_rank 1 exceeds available GPUs in CUDA_VISIBLE_DEVICES=4"
HIP_VISIBLE_DEVICES=2,3 CUDA_VISIBLE_DEVICES=8,9 run --nproc-per-node=2 --virtual-local-rank sh -c "$see"
expect "E20: HIP's list is stronger" is "$(sorted "$out")" $'0 L0 C2 H2\n1 L0 C3 H3'
run --nproc-per-node=2 --virtual-local-rank sh -c "$see"
expect "without a list numbers are local ranks" is "$(sorted "$out")" $'0 L0 C0 H\n1 L0 C1 H'
printf '[ctrun]\nnproc-per-node = 2\nvirtual-local-rank = 1\n[env]\nCUDA_VISIBLE_DEVICES = 6,7\n' >job.ini
run sh -c "$see"
expect "the list may be job.ini's" is "$code $(sorted "$out")" $'0 0 L0 C6 H\n1 L0 C7 H'
rm job.ini

if [ ! -e /dev/nvidia0 ]; then
    CUDA_VISIBLE_DEVICES=4,5,6 run --nproc-per-node=auto --gpus=2,0 sh -c "$see"
    expect "--gpus counts in what is visible, and is counted" is "$(sorted "$out")" $'0 L0 C6,4 H\n1 L1 C6,4 H'
    CUDA_VISIBLE_DEVICES=4,5,6 run --nproc-per-node=gpu --gpus=2,0 --virtual-local-rank sh -c "$see"
    expect "with one each" is "$(sorted "$out")" $'0 L0 C6 H\n1 L0 C4 H'
    CUDA_VISIBLE_DEVICES=4,5 run --gpus=2 true
    expect "one that is not there is refused" is "$code $err" "1 ctrun: --gpus: there is no GPU 2 here: 2 are visible"
    CUDA_VISIBLE_DEVICES=4,5 run --nproc-per-node=gpu --gpus=2 true
    expect "also where it would be counted" is "$code $err" "1 ctrun: --gpus: there is no GPU 2 here: 2 are visible"
    run --nproc-per-node=gpu true
    expect "A17: no GPU" matches "$code $err" '^1 ctrun: --nproc-per-node=gpu: Cuda is not available'
fi
for mode in node socket exclusive core-complex; do
    CUDA_VISIBLE_DEVICES= run --numa-binding=$mode true
    expect "A45: --numa-binding=$mode needs a GPU" matches "$code $err" '^1 ctrun: --numa-binding: No accelerator available'
done
CUDA_VISIBLE_DEVICES= run --bind=gpu true
expect "and so does --bind=gpu" matches "$code $err" '^1 ctrun: --bind=gpu: No accelerator available'

# ---- The report ----
run --nproc-per-node=2 --bind="$first;$last" --report sh -c 'echo $RANK $$$$; sleep 0.3'
mapfile -t pids <<<"$(sorted "$out" | cut -d' ' -f2)"
expect "a table on stderr" is "$(sed 's/  */ /g' <<<"$err" | cut -d' ' -f1-3,5-)" "RANK LOCAL PID NUMA CPUS THREADS TRANSPORT
0 0 ${pids[0]} $(sed 's/  */ /g' <<<"$err" | sed -n 2p | cut -d' ' -f5) $first 3 shm
1 1 ${pids[1]} $(sed 's/  */ /g' <<<"$err" | sed -n 3p | cut -d' ' -f5) $last 3 shm"
run --nproc-per-node=2 --report=json sh -c 'sleep 0.3'
expect "or JSON, an object a line" is "$(sed 's/"pid":[0-9]*/"pid":P/; s/"host":"[^"]*"/"host":"H"/; s/"numa":"[^"]*"/"numa":"N"/' <<<"$err" | grep -c '^{"rank":[01],"local_rank":[01],"pid":P,"host":"H",.*"numa":"N","cpus":"'"$mine"'","omp_num_threads":"3","transport":"shm"}$')" 2
unset OMP_NUM_THREADS
run --report sh -c 'sleep 0.1'
expect "one worker: no threads said, no transport" matches "$err" ' - +none$'
CT_REPORT=json CT_LINK=tcp run --nproc-per-node=2 sh -c 'sleep 0.3'
expect "torchrun's rule for threads, and the user's link" has "$err" '"omp_num_threads":"1","transport":"tcp"}'
expect "the report is not on stdout" is "$out" ""
export OMP_NUM_THREADS=3

# ---- How many ----
all=$(env -u OMP_NUM_THREADS nproc)
run --nproc-per-node=cpu sh -c 'echo $WORLD_SIZE'
expect "A18: cpu is the affinity mask" is "$(sort -u <<<"$out")" "$all"
taskset -c "$first" "$CTRUN" --nproc-per-node=cpu sh -c 'echo $WORLD_SIZE' >.one
expect "of ctrun" is "$(cat .one)" 1

"$CT_BUILD/tests/e2e_denies" "$CTRUN" --nproc-per-node=1 --bind=core true >.out 2>.err
code=$? out=$(cat .out) err=$(cat .err)
if [ $code = 77 ]; then
    echo "skip no filter for system calls can be set here"
else
    expect "where no processors may be chosen, --bind is named" is "$code $err" \
        "1 ctrun: cannot start rank 0: Operation not permitted: it may not be bound to processors here (sched_setaffinity); leave out --bind and --numa-binding"
fi

# A group of our own with the time of one CPU, by the version that this machine has.
group=
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    group=/sys/fs/cgroup/ctrun-test-$$ limit="cpu.max" one="100000 100000"
elif [ -d /sys/fs/cgroup/cpu ]; then
    group=/sys/fs/cgroup/cpu/ctrun-test-$$ limit="cpu.cfs_quota_us" one="100000"
fi
if [ "$all" -gt 1 ] && [ ! -e /dev/nvidia0 ] && [ -n "$group" ] && mkdir "$group" 2>/dev/null; then
    trap 'rmdir "$group"; cd /; rm -rf "$work"' EXIT
    if { echo "$one" >"$group/$limit"; } 2>/dev/null; then
        within_group() { bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$CTRUN" "$@"; }
        within_group --nproc-per-node=auto sh -c 'echo $WORLD_SIZE' >.auto
        expect "auto is the quota of the control group" is "$(cat .auto)" 1
        within_group --nproc-per-node=cpu sh -c 'echo $WORLD_SIZE' >.cpu
        expect "cpu is not" is "$(sort -u .cpu)" "$all"
        within_group --nproc-per-node=auto --explain true >.explain
        expect "and --explain says so" has "$(cat .explain)" "the control group (cpu.max) gives the time of 1 of the $all CPUs"
    else
        echo "skip no quota can be set here"
    fi
else
    echo "skip no control group can be made here, or there is one CPU or a GPU"
fi

finish
