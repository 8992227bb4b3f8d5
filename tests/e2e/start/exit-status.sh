# SPDX-License-Identifier: Apache-2.0
# What is wrong in the words alone ends with 2, what the world refuses with 1.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1

# ends CODE SENTENCE WORDS...: ctrun WORDS ends with CODE, says SENTENCE, and starts no worker.
ends() {
    local want=$1 words=$2
    shift 2
    rm -f ran
    run "$@" touch ran
    expect "$want: ${*:-(no option)}" is "$code" "$want"
    expect "   saying: $words" has "$err" "$words"
    expect "   in one line" is "$(wc -l <<<"$err")" 1
    expect "   and nothing ran" [ ! -e ran ]
}

# ---- 2: single values
ends 2 "Unsupported nproc_per_node value: x" --nproc-per-node=x
ends 2 "0 workers are too few for a job. Without workers, ctrun can host the rendezvous" --nproc-per-node=0
ends 2 "min_nodes=0, max_nodes=0" --nnodes=0
ends 2 "min_nodes=2, max_nodes=1" --nnodes=2:1
ends 2 "is not in \"MIN:MAX\" format" --nnodes=x
ends 2 "there is no node -1" --node-rank=-1
ends 2 "99999 is not between 0 and 65535" --master-port=99999
ends 2 "invalid int value: '80x'" --master-port=80x
ends 2 "option 'zz' must have a value" --rdzv-conf=zz
ends 2 "join timeout (join_timeout) must be positive" --rdzv-conf=join_timeout=0
ends 2 "max_restarts must be >= 0, not -1" --max-restarts=-1
ends 2 "write causes, separated by commas: any, on-signal" --restart=sometimes
ends 2 "write stop, continue, or continue:MIN" --on-failure=continue:0
ends 2 "-1 must be non-negative" --shutdown-timeout=-1
ends 2 "-1 must be non-negative" --deadline-margin=-1
ends 2 "'soon' is not a deadline; write 90s, 30m, 2h or 1d from now" --deadline=soon
ends 2 "SIGKILL cannot be handled" --signals-to-handle=SIGKILL
ends 2 "'x' is not a time; write 10s or 5m (s, m, h, d), or 0" --stall=x
ends 2 "give the name of a file" --events=
ends 2 "give the name of a file" --trace=
ends 2 "'0' is not a size; write 4G, 512M, 64k or a number of bytes" --trace-size=0
ends 2 "4 does not match" --redirects=4
ends 2 "9 does not match" --tee=9
ends 2 "is not a comma-separated list of integers" --local-ranks-filter=zz
ends 2 "'x' is not a list of ranks; write 0,4-7,@last or *" --show=x
ends 2 "'x' is not a rank; write a rank, all or none" --stdin=x
ends 2 "invalid choice: 'x'" --numa-binding=x
ends 2 "write gpu, numa, core, none, or CPUs" --bind=zz
ends 2 "write numbers or names of GPUs, separated by commas" --gpus=1,,2
ends 2 "'1,2,1' has 1 twice" --gpus=1,2,1
ends 2 "invalid choice: 'x'" --report=x
ends 2 "'gdb': write ranks, a colon and a command, as --exec-on='3:gdb --args'" --exec-on=gdb
ends 2 "is not closed" --exec-on="0:gdb 'a"
ends 2 "'x' is not a network; write 10.1.0.0/16, fd00::/8 or any" --store-allow=x
ends 2 "is not a size" --store-memory=x
ends 2 "is not a size" --store-request=x
ends 2 "must be at least 1" --store-clients=0
ends 2 "must be > 0 seconds" --monitor-interval=0
ends 2 "invalid choice: 'x'" --start-method=x
ends 2 "KeyError: 'x'" --event-log-handler=x
ends 2 "Could not find entrypoint x" --logs-specs=x
ends 2 "the rendezvous backend 'foo' is not registered; use static or c10d" --rdzv-backend=foo
ends 2 "ctrun does not support etcd; use c10d, which needs only the nodes and no server" --rdzv-backend=etcd
ends 2 "port is missing in endpoint" --rdzv-endpoint=127.0.0.1
ends 2 "list of labels" --rdzv-backend=c10d --rdzv-endpoint=:1
ends 2 "ignored explicit argument '1'" --standalone=1
ends 2 "invalid choice: 'tcsh'" --print-completion=tcsh
ends 2 "unrecognized arguments: --foo" --foo

# ---- 2: words that do not go together
ends 2 "-m runs a Python module, so it can't be combined with --no-python" -m --no-python
ends 2 "--use-env works only with --legacy-launch; workers always find LOCAL_RANK in the environment" --use-env
ends 2 "add --use-env" --legacy-launch --no-python
ends 2 "--numa-binding and --bind=core both choose the CPUs; give only one of them" --numa-binding=node --bind=core
ends 2 "has CPUs for 1 worker, but there are 2 workers" --bind=0 --nproc-per-node=2
ends 2 "with --nnodes=2 the nodes are 0 to 1" --nnodes=2 --node-rank=5
ends 2 "/dev/null can't hold filtered_stdout.log or filtered_stderr.log; name a folder" --log-dir=/dev/null --duplicate-stdout-filters=a

# ---- 2: the same words elsewhere
PET_NNODES=0 ends 2 "PET_NNODES: min_nodes=0" --nproc-per-node=1
PET_MASTER_PORT=99999 ends 2 "PET_MASTER_PORT: the port 99999"
PET_STANDALONE=true ends 2 "PET_STANDALONE: invalid literal 'true'"
PET_RDZV_BACKEND=foo ends 2 "'foo' is not registered; use static or c10d"
CT_STALL=x ends 2 "CT_STALL: 'x'"
printf '[ctrun]\ntee = 9\n' >bad.ini
ends 2 "bad.ini:2: tee: 9 does not match" --job=bad.ini
printf '[ctrun]\ntea = 1\n' >bad.ini
ends 2 "bad.ini:2: unknown key 'tea'" --job=bad.ini
printf '[env]\nRANK = 1\n' >bad.ini
ends 2 "bad.ini:2: RANK can't be set here; ctrun sets it for each worker" --job=bad.ini
ends 2 "nowhere.ini: cannot be read" --job=nowhere.ini
run
expect "2: no program" matches "$code $err" '^2 .*no program to run is given'

# ---- 1: what the world refuses
ends 1 "can't listen" --master-addr=192.0.2.1 --master-port=0
ends 1 "nowhere/x: No such file or directory" --events=nowhere/x
ends 1 "nowhere/x: No such file or directory" --trace=nowhere/x
ends 1 "no-secret" --store-secret-file=no-secret
ends 1 "ctrun may use" --bind=8191
CUDA_VISIBLE_DEVICES= ends 1 "Cuda is not available" --nproc-per-node=gpu
: >file
ends 1 "--log-dir: file is a file" --log-dir=file --tee=3

# What starts ctrun as torchrun starts its workers finds either in its error file.
export TORCHELASTIC_ERROR_FILE=$work/parent.json
for words in --nnodes=0 --nope; do
    run "$words" true
    expect "an error of usage is the parent's error: $words" has "$code $(cat parent.json)" "2 {\"message\": {\"message\": \""
    rm -f parent.json
done
finish
