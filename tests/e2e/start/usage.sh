# SPDX-License-Identifier: Apache-2.0
# Bad usage is a sentence and exit code 2; job.ini; --explain.
. "$CT_SOURCE/tests/e2e/lib.sh"

refused() {
    local words=$1
    shift
    run "$@"
    expect "$* is refused" is "$code" 2
    expect "  saying: $words" has "$err" "$words"
}

refused "no program to run is given"
cp /bin/true ./a
refused "--trace took './a' as its FILE, so no program is left; write --trace=FILE ./a" --trace ./a
run --trace=FILE ./a
expect "  and what it says to write runs" is "$code" 0
rm a FILE
refused "unrecognized arguments: --foo" --foo true
refused "Unsupported nproc_per_node value: x" --nproc-per-node x true
refused "0 workers are too few for a job. Without workers, ctrun can host the rendezvous" --nproc-per-node=0 true
refused "with --nnodes=2 the nodes are 0 to 1" --nnodes=2 --node-rank=2 true
refused "cannot be read: No such file" --job=nowhere.ini true
printf '[env]\nRANK = 77\n' >own.ini
refused "own.ini:2: RANK can't be set here; ctrun sets it for each worker" --job=own.ini true
printf '[env]\nCT_STORE_SECRET = 0123456789abcdef\n' >own.ini
refused "own.ini:2: CT_STORE_SECRET can't be set here; ctrun sets it for each worker" --job=own.ini true
run --help
expect "help on stdout" matches "$code $out" '^0 usage: ctrun'
expect "each option in it" has "$out" "--shutdown-timeout, --grace=SECONDS"
expect "an example" has "$out" "ctrun --nproc-per-node=4 ./hello"
expect "a default that is a word is no absence of one" matches "$(grep -c 'default: "none"\|default: "default"' <<<"$out")" 3
expect "and no blank at the end of a line" is "$(grep -c ' $' <<<"$out")" 0
help=$out
run help
expect "ctrun help is the same" is "$code $out" "0 $help"
printf '#!/bin/sh\necho mine\n' >help
chmod +x help
run help
expect "  unless there is a program of that name" is "$code $out" "0 mine"
rm help
run -h
expect "-h fits a screen of thirty lines" [ "$(wc -l <<<"$out")" -le 30 ]
expect "  and 80 columns" [ "$(wc -L <<<"$out")" -le 80 ]
expect "  with an option a line" matches "$code $out" '^0 usage: ctrun.*-m, --module +Run a Python module: python -u -m PROGRAM\s'
expect "  and where all are" has "$out" "ctrun --help"
expect "--help of a file has 80 columns" [ "$(wc -L <<<"$help")" -le 80 ]
if command -v script >/dev/null; then
    expect "  of a narrow terminal its own" is "$(script -qec "stty cols 60; exec '$CTRUN' --help" /dev/null | tr -d '\r' | grep '^ \{8\}[^$]' | wc -L)" 60
fi
for option in --version -V; do
    run $option
    expect "$option" is "$code ${out%%$'\n'*}" "0 ctrun $(sed -n 's/^#define CT_VERSION "\(.*\)"/\1/p' "$CT_SOURCE/include/ct.h")"
    expect "  with what a report of a fault needs" matches "$out" 'commit: +[^ ].*compiler: +(gcc|Clang).*libraries: +glibc [0-9.]+, libevent [0-9].*CUDA kernels: (yes|no).*encryption: +(yes|no)'
done
if git -C "$CT_SOURCE" rev-parse HEAD >.head 2>/dev/null; then
    expect "  the commit is the tree's" has "$out" "commit:       $(cut -c1-10 .head)"
fi
CUDA_VISIBLE_DEVICES= run --nproc-per-node=gpu true
expect "no GPU: 1" is "$code" 1
expect "  and a sentence" has "$err" "Cuda is not available"

printf '[ctrun]\nnproc-per-node = 2\n[env]\nA = file\nB = file\n[collectives]\nall_reduce = ring\n' >job.ini
A=env run sh -c 'echo $WORLD_SIZE $A $B $CT_ALL_REDUCE'
expect "./job.ini is read; the environment is stronger" is "$out" $'2 env file ring\n2 env file ring'
expect "and a line says that it is" is "$(grep -c "reading ./job.ini, which is in this folder (--job=/dev/null ignores it)" <<<"$err")" 1
run --job=job.ini true
expect "not of one that is named" lacks "$err" "reading"
PET_NPROC_PER_NODE=3 run sh -c 'echo $WORLD_SIZE'
expect "PET_ is stronger than job.ini" is "$out" $'3\n3\n3'
PET_NPROC_PER_NODE=3 run --nproc-per-node=1 sh -c 'echo $WORLD_SIZE'
expect "the command line is stronger than all" is "$out" 1
PET_NODE_RANK=0 run --explain --role=r sh
expect "explain: from the file" matches "$out" 'nproc-per-node +2 +job.ini:2'
expect "explain: from the environment" matches "$out" 'node-rank +0 +PET_NODE_RANK'
expect "explain: from the command line" matches "$out" 'role +r +--role'
expect "explain: a default" matches "$out" 'max-restarts +0 +default'
expect "explain: a job of one node has a name of its own" matches "$out" 'rdzv-id +<a new UUID> +one node alone'
PET_NNODES=2 run --explain sh
expect "explain: one of several has the one that was given" matches "$out" 'rdzv-id +none +default'
TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE='${role_name} on ${hostname} as ${local_rank}:' run --explain --tee=1 sh
expect "explain: its columns hold, whatever is in them" has "$out" "$(printf '%-25s%s\n%56s%s\n%85sThe prefix of --tee' log-line-prefix-template '${role_name} on ${hostname} as ${local_rank}:' '' TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE '')"
expect "explain: and all others do" is "$(grep -cE '^.{24} .{30} default {22}[^ ]' <<<"$out")" "$(grep -cE ' default +[^ ]' <<<"$out")"
run --explain touch ran
expect "explain runs nothing" [ ! -e ran ]
printf '[ctrun]\n\nnporc = 2\n' >job.ini
refused "job.ini:3: unknown key 'nporc'" true
run --job=/dev/null echo ok
expect "--job=/dev/null passes by ./job.ini" is "$out$err" ok
rm job.ini

# misspelt WORD SUGGESTION: ctctl WORD is refused, and says which word there is.
misspelt() {
    err=$("$CT_BUILD/bin/ctctl" "$1" 2>&1)
    code=$?
    expect "ctctl $1 is no ${2#--}" matches "$code $err" "^2 ctctl: .*$1; did you mean $2\?"
}
misspelt stauts status
misspelt stak stack
misspelt --jsno --json
misspelt --aftre=3 --after

# helps BEGINNING WORDS...: ctctl WORDS prints a help that begins so.
helps() {
    local beginning=$1
    shift
    out=$("$CT_BUILD/bin/ctctl" "$@" 2>.err)
    code=$?
    err=$(cat .err)
    expect "ctctl $* helps" matches "$code $out$err" "^0 $beginning"
}
expect "ctctl -V" matches "$("$CT_BUILD/bin/ctctl" -V)" '^ctctl [0-9.]+\s.*commit: '
helps "usage: ctctl ps" help
whole=$out
helps "usage: ctctl ps" --help
expect "  as --help" is "$out" "$whole"
for command in $(sed -n 's/^  \([a-z]*\) .*/\1/p' <<<"$whole" | sort -u); do
    helps "usage: ctctl $command" $command --help
    helps "usage: ctctl $command" help $command
done
helps "usage: ctctl stack \[JOB\] RANK" stack --help --json
expect "  with what its words mean" has "$out" "RANK is a rank of the job"
helps 'usage: ctctl status \[--json\] \[-v\] \[--after=SECONDS\] \[JOB\]' status some-job -h
expect "  with its options" matches "$out" '--after=SECONDS +Leave out waits'
expect "  and no other's" lacks "$out" --hosts
err=$("$CT_BUILD/bin/ctctl" help stak 2>&1)
expect "ctctl help stak is refused" matches "$? $err" '^2 ctctl: .*stak; did you mean stack\?'

# A port in use, by a ctrun: the other one is named.
"$CTRUN" --nproc-per-node=1 sh -c 'echo $MASTER_PORT >port; exec sleep 100' 2>/dev/null &
holder=$!
within 30 lines_in 1 port
run --master-port "$(cat port)" true
expect "a port in use is refused" is "$code" 1
expect "  naming who has it" has "$err" "$holder"
kill $holder
wait $holder
finish
