# SPDX-License-Identifier: Apache-2.0
# An option or a key that can do nothing, or a misspelt variable, is refused, or a line says so; a
# variable that can do nothing may be there for other jobs.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
export OMP_NUM_THREADS=1

# idle SENTENCE WORDS...: ctrun WORDS says it once, as its only line, and the job goes on.
idle() {
    local words=$1
    shift
    run "$@" true
    expect "said: $words" is "$code $err" "0 ctrun: $words"
}
# works WORDS...: nothing is said of these.
works() {
    run "$@" true
    expect "nothing is said of: $*" is "$code $err" "0 "
}

# ---- Ranks that there are not
idle "--show=7: the ranks are 0 to 1; the output of none is shown" --nproc-per-node=2 --show=7
idle "--local-ranks-filter=5,7: the local ranks are 0 to 1; the output of none is shown" --nproc-per-node=2 --local-ranks-filter=5,7
idle "--tee=2:1: the local ranks are 0 to 1" --nproc-per-node=2 --tee=2:1 --log-dir=logs
idle "--redirects=0:1,9:3: the local ranks are 0 to 1" --nproc-per-node=2 --redirects=0:1,9:3 --log-dir=logs
idle "--on-failure=continue:6 has no effect: of 2 ranks none may fail" --nproc-per-node=2 --on-failure=continue:6
idle "--on-failure=continue:2 has no effect: of 2 ranks none may fail" --nproc-per-node=2 --on-failure=continue:2
idle "--on-failure=continue has no effect: of 1 rank none may fail" --on-failure=continue
works --nproc-per-node=2 --on-failure=continue --show=0,7 --local-ranks-filter=1,7 --tee=1:1 --log-dir=logs
works --nproc-per-node=12 --tee=3 --redirects=3 --log-dir=logs

# ---- Options that go with another one
idle "--restart=on-exit:75 has no effect: --max-restarts is 0" --restart=on-exit:75
works --restart=on-exit:75 --max-restarts=1
idle "--store-request=2G has no effect: --store-memory is less" --store-memory=1G --store-request=2G
idle "--trace-size=1M has no effect: there is no --trace" --trace-size=1M
idle "--deadline-margin=5 has no effect: --deadline says when" --deadline=1h --deadline-margin=5
idle "--deadline-margin=5 has no effect: this is not a Slurm job (SLURM_JOB_ID is not set)" --deadline-margin=5
SLURM_JOB_END_TIME=$(($(date +%s) + 3600)) works --deadline-margin=5
idle "--log-line-prefix-template=x has no effect: there is no --tee" --log-line-prefix-template=x
idle "--duplicate-stdout-filters=a has no effect: --tee has no stdout" --duplicate-stdout-filters=a --tee=2 --log-dir=logs
idle "--duplicate-stderr-filters=a has no effect: --tee has no stderr" --duplicate-stderr-filters=a --tee=1 --log-dir=logs
idle "--tee=3 has no effect: --log-dir is /dev/null" --tee=3 --log-dir=/dev/null
idle "--redirects=1 has no effect: --log-dir is /dev/null" --redirects=1 --log-dir=/dev/null
CT_STORE_SECRET=0123456789abcdef CT_STORE_SECRET_FILE=x works
printf '[ctrun]\nstore-secret-file = x\n' >secret.ini
CT_STORE_SECRET=0123456789abcdef idle "secret.ini:2: store-secret-file = x has no effect: CT_STORE_SECRET takes precedence" --job=secret.ini
run --explain --dry-run true
expect "--dry-run with --explain" is "$code $err" "0 ctrun: --dry-run has no effect: --explain takes precedence"
run --run-path --module --dry-run /dev/null
expect "-m with --run-path" has "$err" "--module has no effect: --run-path takes precedence"

# ---- Where nodes meet
idle "--nnodes=2 has no effect: --standalone runs on one node" --standalone --nnodes=2
works --standalone --nnodes=1
idle "--rdzv-backend=c10d has no effect: --standalone meets no other node" --standalone --rdzv-backend=c10d
idle "--rdzv-endpoint=h:1 has no effect: --standalone meets no other node" --standalone --rdzv-endpoint=h:1
idle "--master-addr=h has no effect: --standalone stays on 127.0.0.1" --standalone --master-addr=h
idle "--master-port=5 has no effect: --standalone takes any free port" --standalone --master-port=5
idle "--local-addr=h has no effect: --standalone stays on 127.0.0.1" --standalone --local-addr=h
idle "--node-rank=7 has no effect: --standalone runs on one node" --standalone --node-rank=7
idle "--rdzv-conf=join_timeout=5 has no effect: one node meets no other" --rdzv-conf=join_timeout=5
new_port
idle "--master-addr=h has no effect: --rdzv-endpoint says where the nodes meet" --rdzv-endpoint=localhost:$port --master-addr=h
new_port
idle "--master-port=5 has no effect: --rdzv-endpoint says where the nodes meet" --rdzv-endpoint=localhost:$port --master-port=5
idle "--local-addr=h has no effect: --master-addr says where the store is" --master-addr=127.0.0.1 --local-addr=h
works --local-addr=127.0.0.2
c10d="--rdzv-backend=c10d --rdzv-endpoint=localhost:0"
works $c10d --rdzv-conf=last_call_timeout=0
idle "--rdzv-conf=last_cal_timeout=0: the key 'last_cal_timeout' has no effect; did you mean last_call_timeout?" $c10d --rdzv-conf=last_cal_timeout=0
idle "--rdzv-conf=nonsense=x,join_timeout=60: the key 'nonsense' has no effect" $c10d --rdzv-conf=nonsense=x,join_timeout=60
idle "--rdzv-conf=read_timeout=5: the key 'read_timeout' has no effect with --rdzv-backend=c10d" $c10d --rdzv-conf=read_timeout=5

idle "--rdzv-conf=timeout=5: the key 'timeout' has no effect with --rdzv-backend=c10d" $c10d --rdzv-conf=timeout=5
works $c10d --rdzv-conf=last_call_timeout=0,join_timeout=60,keep_alive_interval=1,is_host=1,store_type=tcp
new_port
idle "--rdzv-conf=join_timeout=5,timeout=5: the key 'join_timeout' has no effect with --rdzv-backend=static" --rdzv-endpoint=localhost:$port --rdzv-conf=join_timeout=5,timeout=5
new_port
idle "--rdzv-conf=is_host=1: the key 'is_host' has no effect with --rdzv-backend=static" --rdzv-endpoint=localhost:$port --rdzv-conf=is_host=1
new_port
works --rdzv-endpoint=localhost:$port --rdzv-conf=timeout=60,keep_alive_interval=1

run --node-rank=7 touch ran
expect "a rank that the only node can't have is refused" matches "$code $err" "^2 .*--node-rank=7: with --nnodes=1 the only node is 0"
printf '[ctrun]\nnode-rank = 1\n' >one.ini
run --job=one.ini touch ran
expect "in a job file too" is "$code $(ls ran 2>/dev/null)" "2 "
expect "  as it stands there" has "$err" "one.ini:2: node-rank = 1: with --nnodes=1 the only node is 0"
PET_NODE_RANK=7 works
PET_NODE_RANK=1 PET_MASTER_PORT=29500 run --nnodes=1 touch ran
expect "with a port it is refused, by its variable's name" matches "$code $err" "^2 .*ctrun: PET_NODE_RANK=1: with --nnodes=1 the only node is 0; --standalone runs a job on this node alone"
PET_NODE_RANK=0 works --nnodes=1

new_port
two="--master-addr=127.0.0.1 --master-port=$port --nnodes=1:2"
timeout 120 "$CTRUN" $two --node-rank=1 true 2>err1 &
run $two --node-rank=0 true
wait $!
expect "a range without c10d" is "$code $(grep -c 'nnodes=1:2 has no effect as a range: the job waits for all 2 nodes; --rdzv-backend=c10d begins with 1' <<<"$err") $(grep -c 'nnodes=1:2 has no effect as a range: the job waits for all 2 nodes; --rdzv-backend=c10d begins with 1' err1)" "0 1 1"

# What one node has not, another may; what none has is said once, by node 0, however often the job begins.
new_port
two="--master-addr=127.0.0.1 --master-port=$port --nnodes=2 --local-ranks-filter=1 --tee=1:1 --redirects=1:2 --log-dir=logs"
two="$two --show=7 --max-restarts=2"
timeout 120 "$CTRUN" $two --node-rank=1 --nproc-per-node=2 true >out1 2>err1 </dev/null &
run $two --node-rank=0 --nproc-per-node=1 sh -c '[ $TORCHELASTIC_RESTART_COUNT = 2 ]'
wait $!
expect "local ranks of another node" is "$code $(grep -c 'local ranks are' <<<"$err") $(grep -c 'local ranks are' err1)" "0 0 0"
expect "ranks of none are named once" is "$(grep -c 'ranks are 0 to 2' <<<"$err") $(grep -c 'ranks are 0 to 2' err1) $(grep -c 'restart . of 2' <<<"$err")" "1 0 2"

# ---- Variables and keys
# A pod has those of another job.
pod() { PET_NNODES=2 PET_NODE_RANK=1 PET_MASTER_ADDR=h PET_MASTER_PORT=29500 PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=h:1 PET_RDZV_CONF=timeout=5 CT_TRACE_SIZE=1M "$@"; }
pod works --standalone
CT_SHOW=7 works --nproc-per-node=2
CT_TEE=5:1 CT_LOG_DIR=logs works --nproc-per-node=2
new_port
PET_RDZV_CONF=last_cal_timeout=0 idle "PET_RDZV_CONF=last_cal_timeout=0: the key 'last_cal_timeout' has no effect; did you mean last_call_timeout?" --rdzv-backend=c10d --rdzv-endpoint=localhost:0
printf '[ctrun]\n\ntrace-size = 1M\n' >size.ini
idle "size.ini:3: trace-size = 1M has no effect: there is no --trace" --job=size.ini
CT_STAL=5s idle "CT_STAL has no effect; did you mean CT_STALL?"
PET_NPROC_PER_NODES=5 idle "PET_NPROC_PER_NODES has no effect; did you mean PET_NPROC_PER_NODE?"
CT_ALL_REDOCE=ring idle "CT_ALL_REDOCE has no effect; did you mean CT_ALL_REDUCE?"
CT_FOO=1 works
printf '[env]\nCT_LOGG = info\nPATH_TO = x\n' >env.ini
idle "env.ini:2: CT_LOGG has no effect; did you mean CT_LOG?" --job=env.ini
# Each variable that libct or ctrun reads is known: with one letter more it is near to one.
for name in $(grep -rhoE 'getenv\("CT_[A-Z_]+"' "$CT_SOURCE"/{runtime,collectives,cuda} | grep -oE 'CT_[A-Z_]+' | sort -u); do
    case $name in CT_CONTROL | CT_TRACE_RING | CT_GENERATION | CT_TEST_*) continue ;; esac # not the user's
    err=$(env "${name}X=1" "$CTRUN" --job=/dev/null true 2>&1)
    expect "$name is known" is "$err" "ctrun: ${name}X has no effect; did you mean $name?"
done
printf '[collectives]\nall_redoce = x\n' >wrong.ini
run --job=wrong.ini touch ran
expect "a misspelt key of [collectives] is refused" matches "$code $err" "^2 .*wrong.ini:2: unknown key 'all_redoce' in \[collectives\]; did you mean all-reduce\?"
printf '[collectives]\nring = all-reduce\n' >wrong.ini
run --job=wrong.ini touch ran
expect "an unknown one too" matches "$code $err" "^2 .*wrong.ini:2: unknown key 'ring' in \[collectives\]; it has operations"
printf '[collectives]\n\nstall = 5s\n' >wrong.ini
run --job=wrong.ini touch ran
expect "an option, too, which workers would not read" matches "$code $err" "^2 .*wrong.ini:3: 'stall' in \[collectives\] is an option: it belongs in \[ctrun\]"
expect "and nothing ran" [ ! -e ran ]
printf '[collectives]\nall-to-all-v = pairwise\nbarrier = shm\norder = rank\nlink = tcp\ndevice = staged\ntuning = x\ntimeout_ms = 5\n' >right.ini
run --job=right.ini sh -c 'echo $CT_ALL_TO_ALL_V $CT_BARRIER $CT_ORDER $CT_LINK $CT_DEVICE $CT_TUNING $CT_TIMEOUT_MS'
expect "what libct reads may stand there" is "$code $out $err" "0 pairwise shm rank tcp staged x 5 "
finish
