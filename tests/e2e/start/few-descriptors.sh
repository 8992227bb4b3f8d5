# SPDX-License-Identifier: Apache-2.0
# What the kernel allows too little of, descriptors or processes: one sentence of ctrun and exit
# code 1 before a worker starts, or a job that runs as ever; where only the store may get more
# connections than are allowed, a line says so and the job runs.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1

# allowed N WORDS...: ctrun WORDS with N descriptors at most; without them the loader can't start it.
allowed() {
    timeout 120 bash -c 'ulimit -n "$1" && shift && exec "$@"' - "$1" "$CTRUN" "${@:2}" >.out 2>.err </dev/null
    code=$? out=$(cat .out) err=$(cat .err)
}
one_sentence() { [[ $code = 1 && -z $out && $err =~ ^ctrun:\ [^$'\n']*\(ulimit\ -Hn\)$ ]]; }
warned() { matches "$err" "^ctrun: ctrun needs up to [0-9]+ descriptors for $1 workers and $1 connections to the store, and $n are allowed \(ulimit -Hn\): some workers may not reach the store$"; }
all_ran() { [[ $code = 0 && $(grep -c 'of 2: the sum is 3' .out) = 2 ]] && { is "$err" "" || warned 2; }; }

for words in "" "--tee=3 --log-dir=logs --events=events --trace=trace"; do
    refused=0 ran=0
    for n in $(seq 4 64); do
        allowed $n --nproc-per-node=2 $words "$CT_BUILD/bin/hello"
        if one_sentence; then
            refused=$((refused + 1))
        elif all_ran; then
            ran=$((ran + 1))
        elif lacks "$err" "error while loading shared libraries"; then # too few for ld.so is none of ours
            expect "$n descriptors ($words): one sentence, or a job that runs" false
        fi
    done
    expect "few descriptors are refused ($words)" [ $refused -gt 20 ]
    expect "enough are enough ($words)" [ $ran -gt 9 ]
done
expect "nothing is left" is "$(ls "$TMPDIR")" ""

# The workers' connections to the store are ctrun's, too.
for n in 16 20 24 28 32 40 48 56 64 72; do
    CT_LINK=tcp allowed $n --nproc-per-node=16 "$CT_BUILD/bin/hello" # nor are many passed on
    if one_sentence; then
        expect "the numbers are said" matches "$err" "^ctrun: ctrun needs up to [0-9]+ descriptors for 16 workers, and $n are allowed \(ulimit -Hn\)$"
    elif ! warned 16; then
        expect "$n descriptors for 16 workers" eval '[[ $code = 0 && -z $err && $(grep -c "of 16: the sum is 136" .out) = 16 ]]'
    fi
done
expect "72 are enough for 16" is "$code $err" "0 "

# A program that does not connect needs none of these, and c10d may have its store elsewhere.
n=60 && allowed 60 --nproc-per-node=16 sh -c 'echo here'
expect "sh runs with 60" is "$code $(grep -c here <<<"$out")" "0 16"
expect "and a line says what the store may lack" warned 16
allowed 60 --nproc-per-node=16 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 sh -c 'echo here'
expect "with c10d nothing is said" is "$code $(grep -c here <<<"$out") $err" "0 16 "

# Those that the caller left open are none for ctrun.
timeout 120 bash -c 'for n in {10..57}; do eval "exec $n</dev/null"; done; ulimit -n 64; exec "$@"' - "$CTRUN" --nproc-per-node=2 "$CT_BUILD/bin/hello" >.out 2>.err </dev/null
code=$? out=$(cat .out) err=$(cat .err)
expect "what is open already counts" one_sentence

# A low soft limit is for the workers; ctrun takes what the hard one allows.
out=$(ulimit -Sn 16 && "$CTRUN" --nproc-per-node=16 sh -c 'ulimit -Sn' | sort | uniq -c)
expect "the soft limit is the workers'" is "$(echo $out)" "16 16"

# Processes: known before the first is started.
most=$(cat /proc/sys/kernel/pid_max)
if [ "$most" -lt 1000000 ]; then
    run --nproc-per-node=$((most + 1)) true
    expect "more workers than pids: 1" is "$code" 1
    expect "with the number" is "$err" "ctrun: --nproc-per-node=$((most + 1)): this machine allows $most processes (kernel.pid_max)"
fi
if [ "$(id -u)" = 0 ] && setpriv --reuid=64322 --clear-groups true 2>/dev/null; then
    chmod 755 "$work" && chmod 777 "$TMPDIR"
    mkdir -m 777 free && cp "$CTRUN" free/ctrun
    err=$(cd free && setpriv --reuid=64322 --clear-groups bash -c 'ulimit -u 30; exec ./ctrun --nproc-per-node=29 touch ran' 2>&1)
    code=$?
    expect "more workers than a user may have processes: 1" is "$code" 1
    expect "with the number, too" is "$err" "ctrun: --nproc-per-node=29: this user may have 30 processes (ulimit -u)"
    expect "no worker was started" [ ! -e free/ran ]
fi
finish
