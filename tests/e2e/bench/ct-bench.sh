# SPDX-License-Identifier: Apache-2.0
# ct_bench: every operation has its rows, all of them right; what it writes for programs is
# what it shows, and a command line that is wrong is refused once, by rank 0.
. "$CT_SOURCE/tests/e2e/lib.sh"
bench=$CT_BUILD/bin/ct_bench

# column NAME ROW-PATTERN: that column of the CSV's rows, in lines.
column() {
    awk -F, -v name="$1" -v pattern="$2" \
        'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } $0 ~ pattern { print $at }' rows.csv
}

run --nproc-per-node=3 "$bench" --begin 24 --end=1536 --factor 64 --check --iters 3 --calls 1 --warmup=0 --csv rows.csv --json=rows.json
expect "all operations are right" is "$code" 0
expect "all operations have rows" is "$(cut -d, -f1 rows.csv | uniq | tr '\n' ' ')" \
    "operation all_reduce reduce broadcast all_gather gather scatter reduce_scatter all_to_all barrier ping_pong send_recv "
expect "nothing is wrong" is "$(column wrong . | sort -u)" 0
expect "the sizes" is "$(column bytes ^all_reduce,.*,out, | tr '\n' ' ')" "24 1536 "
expect "the count is what the call is given" is "$(column count ^all_gather,.*,out, | tr '\n' ' ')" "2 128 "
expect "in place and out of it" is "$(column place ^all_reduce | tr '\n' ' ')" "out in out in "
expect "a broadcast has one buffer" is "$(column place ^broadcast | sort -u)" in
expect "rows without a root" is "$(column root ^all_to_all | sort -u)" -1
expect "samples as asked for" is "$(column samples . | sort -u)" 3
expect "one barrier" is "$(column bytes ^barrier)" 0

# As in nccl-tests: 2(n-1)/n, (n-1)/n, 1.
bus() { awk -F, -v op="$1" '$1 == op { printf "%.3f\n", $12 / $11 }' rows.csv | sort -u; }
expect "bus bandwidth of all_reduce" is "$(bus all_reduce)" 1.333
expect "bus bandwidth of reduce_scatter" is "$(bus reduce_scatter)" 0.667
expect "bus bandwidth of broadcast" is "$(bus broadcast)" 1.000
expect "bandwidth is bytes over p50" is "$(awk -F, 'NR > 1 && $2 && ($2 / $8 / 1e3 / $11 < 0.999 || $2 / $8 / 1e3 / $11 > 1.001)' rows.csv)" ""
expect "min, p50 and p99 in order" is "$(awk -F, 'NR > 1 && ($10 > $8 || $8 > $9)' rows.csv)" ""

expect "as many rows on the screen" is "$(grep -vc '^#' <<<"$out")" "$(($(wc -l <rows.csv) - 1))"
expect "as many rows in JSON" is "$(grep -c '"operation": ' rows.json)" "$(($(wc -l <rows.csv) - 1))"
expect "the median of the slowest rank is at most that of the slowest in each sample" is "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } $at["rank_p50_us"] > $at["p50_us"]' rows.csv)" ""
expect "a mean" is "$(column mean_us . | grep -c '[1-9]')" "$(($(wc -l <rows.csv) - 1))"
expect "JSON has the same figures" is "$(sed -n 's/.*"p50_us": \([^,]*\),.*/\1/p' rows.json)" "$(column p50_us .)"
expect "JSON ends" is "$(tail -n 1 rows.json)" "]}"
expect "no limits, none said" has "$(cat rows.json)" '"limits": null'

run --nproc-per-node=2 "$bench" -b 1 -e 8 -n 1 -w 0 --ops=gather,barrier --dtype=f64 --root=1 --out-of-place --csv rows.csv
expect "a size below one element is one element" is "$(column bytes ^gather)" 16
expect "unchecked" is "$(column wrong . | grep -c .)" 0
expect "the root" is "$(column root ^gather)" 1

run --nproc-per-node=3 "$bench" --memory=ct --sizes=24,1M --check --iters=1 --warmup=0 --csv=rows.csv --json=rows.json
expect "all operations are right in memory of ct_mem_alloc()" is "$code $(column wrong . | sort -u)" "0 0"
expect "and that is said" has "$(head -n 1 <<<"$out")$(head -n 1 rows.json)" ' memory ct, calls to warm up 0.'
expect "in JSON too" has "$(head -n 1 rows.json)" '"memory": "ct"'

run --nproc-per-node=2 "$bench" --sizes=8,1K,24 --iters=1 --ops=all_reduce,all_gather --in-place --csv rows.csv
expect "the sizes that are listed" is "$(column bytes . | tr '\n' ' ')" "8 1024 24 8 1024 24 "

run --nproc-per-node=2 "$bench" --limits --end=4K --factor=8 --iters=2 --ops=all_reduce,ping_pong --csv rows.csv --json rows.json
expect "limits" is "$code" 0
expect "hand-overs" matches "$out" 'hand-over, futex wake, one CPU +[0-9.]+ us'
expect "each row has its limit" is "$(column limit_us . | grep -c '^[0-9.e-]*[1-9]')" "$(($(wc -l <rows.csv) - 1))"
expect "and the ratio" is "$(awk -F, 'NR > 1 && ($8 / $14 / $15 < 0.999 || $8 / $14 / $15 > 1.001)' rows.csv)" ""
expect "limits in JSON" has "$(cat rows.json)" '"yield_on_one": '

run --nproc-per-node=1 "$bench" --end=8 --iters=1 --check
expect "alone" is "$code" 0
expect "what takes two says so" has "$out" "# ping_pong takes 2 ranks"

run --nproc-per-node=2 "$bench" --tune=tuned --sizes=8,256K --iters=3 --ops=all_reduce,broadcast,barrier
expect "tuning ends well" is "$code" 0
expect "each algorithm has its time" matches "$(grep '^# all_reduce, 262144 bytes per rank:' <<<"$out")" 'shm_one_shot [0-9.]+ us.*shm_two_shot [0-9.]+ us'
expect "a line for each operation that has a size" is "$(grep -c = tuned)" 2
CT_TUNING=tuned run --nproc-per-node=2 "$bench" --end=8 --iters=1 --ops=all_reduce
expect "what it wrote can be followed" is "$code" 0
CT_EXPLAIN=1 CT_TUNING=tuned run --nproc-per-node=2 "$bench" --end=8 --iters=1 --ops=all_reduce
expect "and is" has "$err" "CT_TUNING (tuned)"
run --nproc-per-node=2 "$bench" --tune=/nowhere/tuned --end=8
expect "a file that can't be written is said" has "$err" "/nowhere/tuned can't be written: No such file"

run --nproc-per-node=3 env CT_LINK=tcp CT_BROADCAST=ring "$bench" --model=2 --sizes=64,1M --iters=1 --ops=all_reduce,broadcast,ping_pong --out-of-place --csv rows.csv
expect "a model of the ring's shortest segments" is "$(awk -F, '$1 == "broadcast" && $2 == 1048576 { print $16 }' rows.csv)" 528.384
expect "of the all-reduce's parts" is "$(awk -F, '$1 == "all_reduce" && $2 > 1000000 { printf "%.1f", $16 }' rows.csv)" 699.1
expect "and none where there is none" is "$(awk -F, '$1 == "ping_pong" { printf $16 }' rows.csv)" ""
run --nproc-per-node=2 "$bench" --model --sizes=1K --iters=1 --ops=all_reduce
expect "a wire that was measured" matches "$out" 'the models. wire: [0-9.]+ GB/s'
expect "and which rows have no model" has "$out" 'those of two levels (nodes) have no model'

refused() {
    run --nproc-per-node=2 "$bench" "$1"
    expect "$1 is refused with 2" has "$err" "exitcode  : 2 "
    expect "$1: why" is "$(grep -c "^ct_bench: .*$2" <<<"$err")" 1
}
refused --end=4 'begin=8 is more than --end=4'
refused --op=plus 'op=plus is none of sum avg product min max band bor bxor'
refused --dtype=float 'dtype=float is none of i8 '
refused --ops=all_reduce,nothing '"nothing" is no operation'
refused --begin=8X 'begin=8X is no size'
refused --sizes=8,x 'sizes: "x": give up to 64 sizes'
refused --factor=1 'factor=1: give a number from 2 to 2147483647'
refused --factor=x 'factor=x: give a number from 2 to 2147483647'
refused --memory=new 'memory=new: there are any, ct and cuda'
refused --model=fast 'model=fast: give the bandwidth of a wire'
refused --iters=0 'iters=0: give a number from 1 to 10000'
refused --root=2 'root=2 is no rank; there are 0 to 1'
refused --bogus 'bogus is no option'
run --nproc-per-node=2 "$bench" --help
expect "help once" is "$code $(grep -c '^usage: ' <<<"$out")" "0 1"
run --nproc-per-node=2 "$bench" --end=8 --csv=/nowhere/rows.csv
expect "a file that can't be written" has "$err" "ct_bench: rank 0: /nowhere/rows.csv can't be written: No such file"
for file in csv json; do
    run --nproc-per-node=2 "$bench" --end=8 --iters=1 --ops=all_reduce --$file=/dev/full
    expect "a full disk (--$file)" matches "$err" "ct_bench: rank 0: --$file can't be written: "
    expect "and its exit code (--$file)" has "$err" "exitcode  : 1 "
done
run --nproc-per-node=2 "$bench" --end=8 --ops=all_reduce --op=bxor
expect "what has no meaning is said by the library" matches "$err" 'ct_bench: rank [01]: .*bxor'

CT_EXPLAIN=1 CT_NETWORK=10us,1GB/s,7us CT_FAULT=hosts:0.1.2.3 run --nproc-per-node=4 "$bench" --sizes=8 --iters=1 --ops=all_reduce
expect "between hosts each row has its time by the model" has "$err" "all_reduce, 8 bytes per rank, group world of 4 on 4 hosts: \
nodes_doubling, the least on a network of 10 us and 1 GB/s (20 us); shm_one_shot can't; shm_two_shot can't; nodes could (24 us); nodes_halving could (40 us);"

# The simulation is another program, which it becomes.  Its coroutines change stacks, which the sanitizers can't follow.
if [ -z "${CT_SANITIZE:-}" ]; then
    "$bench" --simulate=20x2 --sizes=64K --csv rows.csv --json=rows.json --figure rows.svg >simulated 2>&1
    expect "a simulation ends well" is "$?" 0
    expect "each operation has one row that is chosen" is "$(column operation ',1,[0-9.]*,[0-9.]*,[0-9.]*,[0-9]*,[0-9]*,[0-9]*$' | uniq | wc -l)" 6
    expect "nothing is faster than it can be" is "$(awk -F, 'NR > 1 && $7 < $9' rows.csv)" ""
    expect "its JSON" is "$(grep -c '"operation": ' rows.json)" 6
    expect "its figure" has "$(cat rows.svg)" "all_reduce by hosts of 2 ranks"
    "$bench" --simulate --hosts=0 >simulated 2>&1
    expect "a wrong command line" is "$? $(cat simulated)" "2 network_sim: --hosts=0 is wrong; --help says what there is"
fi

finish
