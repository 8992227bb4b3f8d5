# SPDX-License-Identifier: Apache-2.0
# A child of a rank that runs the program's atexit() does its group no harm; a misspelt CT_ variable and a
# word that CT_LOG does not have are told once; who stands still in a call is not said to have not come.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
# LeakSanitizer may stand still for ever when a child of fork() exits whose parent has threads.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

run --nproc-per-node=2 "$CT_BUILD/tests/e2e_forks"
expect "a forked child's exit() changes nothing for its parent" is "$code $(sorted "$out" | tr '\n' ';')" \
    "0 the child's destroy: invalid argument;the sum is 2;the sum is 2;"

CT_TIMOUT_MS=5000 CT_SCANNER=2 run --nproc-per-node=2 "$CT_BUILD/bin/hello"
expect "a misspelt variable is told once" is "$code $(grep -c . <<<"$err") $(grep -o 'CT_TIMOUT_MS.*' <<<"$err")" \
    "0 1 CT_TIMOUT_MS has no effect; did you mean CT_TIMEOUT_MS?"
CT_LOG=loud run --nproc-per-node=2 "$CT_BUILD/bin/hello"
expect "a word that CT_LOG does not have ends ctrun" is "$code $out$err" \
    "2 ctrun: CT_LOG=loud is not a level; use none, waits, error, warn, info or debug"

# Rank 1 stands still behind the first of two steps: for longer than rank 0 waits, or stopped.
behind=rank:1,op:all_reduce,phase:1
for how in "tcp ring" "shm two_shot"; do
    CT_LINK=${how% *} CT_ALL_REDUCE=${how#* } CT_FAULT=$behind,delay:4s \
        run --nproc-per-node=2 --shutdown-timeout=1 "$CT_BUILD/tests/e2e_forks" 1500
    expect "a rank that stands still in the call is not said to have not come ($how)" matches "$err$out" \
        "rank 1 \(pid [0-9]+ on [^)]*\) is in this call, too, but got no further"
    expect "nor does ctrun say that" matches "$err" \
        "^ctrun: rank 1 \(pid [0-9]+\) got no further in the same call while rank 0 \(pid [0-9]+\) was in all_reduce #2;"
    CT_LINK=${how% *} CT_ALL_REDUCE=${how#* } CT_FAULT=$behind,stop \
        run --nproc-per-node=2 --shutdown-timeout=1 "$CT_BUILD/tests/e2e_forks" 1500
    expect "one that is stopped within the call is named as stopped ($how)" matches "$err$out" \
        "rank 1 \(pid [0-9]+ on [^)]*\) is stopped"
done

finish
