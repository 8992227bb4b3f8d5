# SPDX-License-Identifier: Apache-2.0
# ct_bench --memory=cuda, against tests/fake's driver: the same rows in device memory, all of them
# right whichever way the calls go; a limit for each; and who has no GPU is told why.
. "$CT_SOURCE/tests/e2e/lib.sh"
bench=$CT_BUILD/bin/ct_bench
driver=$CT_BUILD/tests/libcuda.so.1
[ -e "$driver" ] || { echo "skipped: what needs CUDA"; exit 77; }

column() { # NAME ROW-PATTERN
    awk -F, -v name="$1" -v pattern="$2" \
        'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } $0 ~ pattern { print $at }' rows.csv
}

CT_TEST_DRIVER=/nowhere/libcuda.so.1 run --nproc-per-node=2 "$bench" --memory=cuda --end=8
expect "no driver: said by each, and the end" matches "$err" 'ct_bench: rank [01]: --memory=cuda: no CUDA driver: /nowhere/libcuda.so.1'
expect "with 1" has "$err" "exitcode  : 1 "

export CT_TEST_DRIVER=$driver
CT_BENCH_GPU=1 run --nproc-per-node=1 "$bench" --memory=cuda --end=8
expect "a GPU that is none" has "$err" "CT_BENCH_GPU=1 is no GPU; there are 0 to 0"
run --nproc-per-node=1 "$bench" --memory=cuda --end=8 --tune=tuned
expect "what is of host memory only" has "$err" "leave --memory=cuda out"
run --nproc-per-node=1 "$bench" --in-stream --end=8
expect "a stream of host memory" has "$err" "--in-stream: host memory has no streams; add --memory=cuda"

rows() { # WHAT CTRUN-WORDS...
    local what=$1
    shift
    run "$@" "$bench" --memory=cuda --sizes=24,5K,300K --check --iters=2 --calls=1 --warmup=0 --csv=rows.csv --json=rows.json
    expect "$what: all right" is "$code $(column wrong . | sort -u)" "0 0"
    expect "$what: of all operations" is "$(cut -d, -f1 rows.csv | sort -u | wc -l)" 12
    expect "$what: and the memory is said" has "$(head -n 1 <<<"$out")$(head -n 1 rows.json)" ' memory cuda, '
}
rows "one for all" --nproc-per-node=3
CT_DEVICE=staged rows "through the host" --nproc-per-node=2
FAKE_CUDA_DEVICES=2 rows "on two GPUs" --nproc-per-node=3
for way in host stream; do
    CT_HANDOVER=$way run --nproc-per-node=3 "$bench" --memory=cuda --in-stream --sizes=24,300K --check --iters=1 --calls=5 --warmup=0
    expect "in a stream, handed over by the $way: all right" is "$code" 0
done
FAKE_CUDA_LAG_RANK=all FAKE_CUDA_LAG_US=500 run --nproc-per-node=2 "$bench" --memory=cuda --sizes=5K --check --iters=2 --calls=1 --warmup=0 --ops=all_reduce,all_gather,all_to_all
expect "a late GPU: all right" is "$code" 0

# Which bytes a row's limit counts is for tests/bench/test_limits.c to show.
run --nproc-per-node=4 "$bench" --memory=cuda --limits --sizes=64,16M --out-of-place --iters=1 --calls=1 --warmup=0 --csv=rows.csv --json=rows.json
expect "limits" is "$code" 0
expect "those of the GPU" matches "$out" '# limits of this GPU: .*# +4096 +[0-9.]+ +[0-9.]+'
limit() { awk -F, -v op="$1" -v bytes="$2" '$1 == op && $2 == bytes { print $14 }' rows.csv; }
expect "a barrier has none" is "$(limit barrier 0)" ""
expect "all others have one" is "$(grep -v ^barrier rows.csv | awk -F, 'NR > 1 && !($14 > 0)')" ""
expect "small ones: the launch" is "$(limit all_reduce 64)" "$(limit broadcast 64)"
expect "the same bytes, the same limit" is "$(limit all_reduce 16777216)" "$(limit send_recv 16777216)"
expect "in JSON" matches "$(cat rows.json)" '"limits": \{"cpus": 0, "processes": 1, .*"copy_hot": [0-9.]+, "copy_cold": null'

FAKE_CUDA_DEVICES=2 run --nproc-per-node=2 "$bench" --memory=cuda --limits --end=8
expect "limits of several GPUs are refused" has "$err" "--limits are those of one GPU, but the ranks are on several"

finish
