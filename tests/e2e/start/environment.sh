# SPDX-License-Identifier: Apache-2.0
# What workers find: torchrun's variables, their arguments as written.
. "$CT_SOURCE/tests/e2e/lib.sh"

run --nproc-per-node=2 --role=tr sh -c 'echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $ROLE_NAME $ROLE_RANK $ROLE_WORLD_SIZE'
expect "ranks and sizes" is "$(sorted "$out")" $'0 0 2 2 0 1 tr 0 2\n1 1 2 2 0 1 tr 1 2'
expect "the OMP line comes with several workers" has "$err" "Setting OMP_NUM_THREADS"
if [ -z "$CT_SANITIZE" ]; then # a sanitizer's library would be one more
    run --nproc-per-node=2 "$CT_BUILD/bin/hello"
    expect "but not for a rank in C that uses no OpenMP" is "$code $err" "0 "
    ln -s "$CT_BUILD/bin/hello" rank
    run --nproc-per-node=2 ./rank
    expect "nor for a link to one" is "$code $err" "0 "
fi

run sh -c 'echo $MASTER_ADDR $TORCHELASTIC_USE_AGENT_STORE $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS $TORCH_NCCL_ASYNC_ERROR_HANDLING $TORCHELASTIC_SIGNALS_TO_HANDLE; echo omp=$OMP_NUM_THREADS'
expect "one worker" is "$out" $'127.0.0.1 True 0 0 1 SIGTERM,SIGINT,SIGHUP,SIGQUIT\nomp='
expect "nothing on stderr" is "$err" ""

run sh -c 'echo $MASTER_PORT $CT_GENERATION $TORCHELASTIC_RUN_ID'
expect "port, generation and a UUID4" matches "$out" '^[0-9]+ [0-9a-f]{16} [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-'
first=$out
run sh -c 'echo $MASTER_PORT $CT_GENERATION $TORCHELASTIC_RUN_ID'
expect "the next run has another generation" [ "${first#* }" != "${out#* }" ]

run sh -c 'echo "{}" >$TORCHELASTIC_ERROR_FILE && echo $TORCHELASTIC_ERROR_FILE'
expect "the error file can be written" matches "$out" '/attempt_0/0/error.json$'
expect "nothing is left in TMPDIR" is "$(ls "$TMPDIR")" ""

RANK=9 WORLD_SIZE=9 FOO=bar OMP_NUM_THREADS=7 run --nproc-per-node=2 sh -c 'echo $RANK $WORLD_SIZE $FOO $OMP_NUM_THREADS'
expect "inherited, but for what is ours" is "$(sorted "$out")" $'0 2 bar 7\n1 2 bar 7'
expect "no OMP line when it is set" lacks "$err" OMP

CUDA_DEVICE_MAX_CONNECTIONS= run sh -c 'echo $CUDA_DEVICE_MAX_CONNECTIONS'
expect "each stream has a hardware queue" is "$out" 32
CUDA_DEVICE_MAX_CONNECTIONS=1 run sh -c 'echo $CUDA_DEVICE_MAX_CONNECTIONS'
expect "but for the user's own choice" is "$out" 1

run echo --help --nproc-per-node 5 'a  b' '*' ''
expect "arguments untouched" is "$out" '--help --nproc-per-node 5 a  b * '
run --nproc-per-node=2 echo '${local_rank}' '$local_rank' '$$x' '${rank}'
expect "but for torchrun's macros" is "$(sorted "$out")" $'0 0 $x ${rank}\n1 1 $x ${rank}'

run --master-port=0 --rdzv-id X sh -c 'echo $TORCHELASTIC_RUN_ID'
expect "rdzv-id is for a named port" lacks "$out" X
run sh -c 'test $(ps -o sid= -p $PPID) != $(cut -d" " -f6 /proc/self/stat) && echo new'
expect "one worker has its own session" is "$out" new
# pid, its parent, group and session
run --nproc-per-node=3 --max-restarts=1 sh -c 'echo $TORCHELASTIC_RESTART_COUNT $$$$ $(ps -o ppid=,pgid=,sid= -p $$$$) $(ps -o sid= -p $PPID); exit $((1 - TORCHELASTIC_RESTART_COUNT))'
for round in 0 1; do
    lines=$(grep "^$round " <<<"$out")
    expect "several workers share a session in round $round" is "$(cut -d' ' -f5 <<<"$lines" | sort -u | wc -l)" 1
    expect "  not ctrun's" eval '[ -z "$(awk '\''$5 == $6'\'' <<<"$lines")" ]'
    expect "  and none of them leads it" eval '[ -z "$(awk '\''$2 == $5'\'' <<<"$lines")" ]'
    expect "each leads its own process group" is "$(awk '$2 == $4' <<<"$lines")" "$lines"
    expect "ctrun is their parent" is "$(cut -d' ' -f3 <<<"$out" | sort -u | wc -l)" 1
done
expect "the next round has another session" is "$(cut -d' ' -f1,5 <<<"$out" | sort -u | wc -l)" 2
run bash -c 'IFS=: read -r page event _ <<<"$CT_CONTROL"; exec 2>/dev/null; echo $(ls /proc/self/fd | grep -vx -e $page -e $event)' 7</dev/null
expect "only 0, 1, 2 and the control page are inherited (3 is ls's)" is "$out" "0 1 2 3"
# What a worker sent before it died may still lie in its socket: it is the old round's.
cat >writes <<'END'
exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT
printf "\x00\xce\xf7\x85\x3c" >&3
if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then
    for ((i = 1000; i < 1500; i++)); do all+="\x01\x05\0\0\0\0\0\0\0/$i\x01\0\0\0\0\0\0\0v"; done
    printf "$all" >&3
    exit 1
fi
sleep 0.3
printf "\x07" >&3
head -c 8 <&3 | od -An -tu8 | tr -d ' '
END
for i in 1 2 3; do run --max-restarts=1 bash writes; keys+="$code $out,"; done
expect "no key of an older round is there" is "$keys" "0 0,0 0,0 0,"

echo 0123456789abcdef >own && chmod 600 own
CT_STORE_SECRET=inherited-from-somewhere run --store-secret-file=own sh -c 'echo $CT_STORE_SECRET'
expect "the command line's secret is stronger" is "$out" 0123456789abcdef
(ulimit -Sn 100; "$CTRUN" sh -c 'ulimit -Sn' >limit)
expect "workers keep their limit of descriptors" is "$(cat limit)" 100
finish
