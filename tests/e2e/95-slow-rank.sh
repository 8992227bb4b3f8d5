# SPDX-License-Identifier: Apache-2.0
# A rank that comes last into each collective is named, once; one that is as quick as the others is not.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
line='^ctrun: rank 1 makes the others wait: for 2 s it has been in collectives for [0-9]+ % of the time, and each other rank of this host for [0-9 to]+ %$'

run --nproc-per-node=3 --stall=2s "$CT_BUILD/tests/e2e_slow" 8 60 2
expect "a rank that is late each time is named" matches "$code $(head -n 1 <<<"$err")" "^0 ${line#^}"
expect "  once" is "$(grep -c 'makes the others wait' <<<"$err")" 1
run --nproc-per-node=3 --stall=2s "$CT_BUILD/tests/e2e_slow" 5 30 30
expect "ranks that are alike are not" is "$code $err" "0 "
run --nproc-per-node=3 --stall=0 "$CT_BUILD/tests/e2e_slow" 4 60 2
expect "nor with --stall=0" is "$code $err" "0 "
finish
