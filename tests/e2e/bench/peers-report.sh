# SPDX-License-Identifier: Apache-2.0
# peers_report, which makes bench/peers' table and figures: medians over rounds, the best of the
# others, what is left out of the means; and figures in which all that was measured has its curve.
. "$CT_SOURCE/tests/e2e/lib.sh"
report=$CT_BUILD/bin/peers_report

# Two rounds of three libraries, ours once with memory of ct_mem_alloc(), too; of 2 ranks on 2 processors, and of 4.
cat >rows <<'END'
libct,2,1,all_reduce,8,1,2,1,10
libct,2,1,all_reduce,1048576,100,200,110,10
libct,2,1,barrier,0,2,32,2,10
libct-mem,2,1,all_reduce,1048576,25,50,25,10
libct,4,1,broadcast,8,0.5,1,1,10
libct,4,1,broadcast,65536,10,20,10,10
limit,2,1,all_reduce,8,0.5,,,
limit,2,1,all_reduce,1048576,50,,,
gloo,2,1,all_reduce,8,100,200,100,10
gloo,2,1,all_reduce,1048576,150,300,150,10
gloo,2,1,barrier,0,80,160,80,10
impi,2,1,all_reduce,8,2,6,2,10
impi,2,1,all_reduce,1048576,300,900,300,10
impi,4,1,broadcast,8,0.1,0.3,0.1,10
impi,4,1,broadcast,65536,80,240,80,10
libct,2,2,all_reduce,8,3,6,3,10
libct,2,2,all_reduce,1048576,100,200,110,10
libct,2,2,barrier,0,2,32,2,10
gloo,2,2,all_reduce,8,100,200,100,10
gloo,2,2,all_reduce,1048576,250,500,150,10
impi,2,2,all_reduce,8,6,18,2,10
impi,2,2,all_reduce,1048576,300,900,300,10
END

out=$("$report" --machine='the machine' --processors=2 --json=rows.json --figures=figures rows) err=
code=$?
expect "it ends well" is "$code" 0
line() { grep -F "| $1 | $2 | $3 |" <<<"$out"; }
expect "who has no row has no column" has "$out" "| operation | ranks | bytes | libct | libct, ct_mem_alloc | gloo | Intel MPI | best peer | best / libct | best / libct-mem | limit | libct / limit | libct-mem / limit |"
expect "medians of the rounds, the best of the others" is "$(line all_reduce 2 8)" "| all_reduce | 2 | 8 | 2.00 | - | 100 | 4.00 | Intel MPI | 2.00 | - | 0.50 | 4.00 | - |"
expect "another size, another best" is "$(line all_reduce 2 '1 MiB')" "| all_reduce | 2 | 1 MiB | 100 | 25.0 | 200 | 300 | gloo | 2.00 | 8.00 | 50.0 | 2.00 | 0.50 |"
expect "who did not measure is not the best" is "$(line barrier 2 0)" "| barrier | 2 | 0 | 2.00 | - | 80.0 | - | gloo | 40.0 | - | - | - | - |"
expect "what says little has a star" is "$(line broadcast 4 '8 *')" "| broadcast | 4 | 8 * | 0.50 | - | - | 0.10 | Intel MPI | 0.20 | - | - | - | - |"
# (2 * 2 * 40)^(1/3), and with the 8 of 4 ranks (2 * 2 * 40 * 8)^(1/4)
expect "geometric means" has "$out" "| 2 | all | 5.43 | 8.94 | - | - | 2.00 | - |"
expect "without the star" has "$out" "| 4 | broadcast | 8.00 | - | - | 8.00 | - | - |"
expect "of all" has "$out" "| all | all | 5.98 |"
expect "with ct_mem_alloc() by themselves" has "$out" "| all | all | 8.00 | - | - | - | 8.00 | - |"
expect "none is far behind" has "$out" "| 2 | 3 | 5.43 | 0 | - |"
expect "how often" has "$out" "In 4 of 5 rows libct is not slower than the best of the others."
# (2 * 2 * 16)^(1/3)
expect "p99 over p50, and the largest" has "$out" "| 2 | 4.00 (16) | 2.00 (2) | 2.00 (2) | 3.00 (3) |"
expect "as many rows in JSON" is "$(grep -c '"operation"' rows.json)" 5
expect "JSON has the ratio" has "$(cat rows.json)" '{"operation": "all_reduce", "hosts": 1, "ranks": 2, "bytes": 8, "best": "impi", "says_little": false, "ratio": {"libct": 2, "libct-mem": null}, "us": {"libct": {"p50": 2, "p99": 4, "mean": 2},'

expect "a figure for each operation and number of ranks" is "$(ls figures | tr '\n' ' ')" "all_reduce-2.svg barrier-2.svg broadcast-4.svg "
curves() { grep -c '<polyline' "figures/$1.svg"; }
expect "a curve in each panel for each" is "$(curves all_reduce-2)" 10
expect "and for who was there only" is "$(curves broadcast-4)" 4
expect "named in the legend" is "$(grep -oE '>(libct[^<]*|gloo|Intel MPI|limit)<' figures/all_reduce-2.svg | tr -d '<>' | tr '\n' ' ')" "libct libct, ct_mem_alloc gloo Intel MPI limit "
expect "what has one size has its times" is "$(grep -oE '>[0-9.]+ us<' figures/barrier-2.svg | tail -n 2 | tr -d '\n<>')" "2.00 us80 us"
expect "no number is none" lacks "$(cat figures/*.svg)" nan
expect "all is inside" is "$(grep -oE ' (x|x1|x2|cx)="[0-9.-]+"' figures/*.svg | tr -d '"' | awk -F= '$2 < 0 || $2 > 1040')" ""

# Between hosts: two hosts of two ranks are not four of one.
cat >net <<'END'
libct,2x2,1,all_reduce,8,10,20,10,10
impi,2x2,1,all_reduce,8,5,15,5,10
libct,4x1,1,all_reduce,8,10,20,10,10
gloo,4x1,1,all_reduce,8,20,40,20,10
libct,4x1,1,all_reduce,1048576,100,200,100,10
gloo,4x1,1,all_reduce,1048576,20,40,20,10
libct,4x1,1,barrier,0,10,20,10,10
gloo,4x1,1,barrier,0,4,8,4,10
END
out=$("$report" --processors=8 --json=net.json --figures=net-figures net) err=
expect "each shape has its rows" is "$(line all_reduce 2x2 8) $(line all_reduce 4x1 8)" "| all_reduce | 2x2 | 8 | 10.0 | - | 5.00 | Intel MPI | 0.50 | | all_reduce | 4x1 | 8 | 10.0 | 20.0 | - | gloo | 2.00 |"
expect "and its mean" has "$out" "| 4x1 | all_reduce | 0.63 | 2.00 | - | - | 0.20 | - |"
expect "what is behind, the furthest first" has "$out" "| 4 hosts | 3 | 0.54 | 2 | all_reduce 4x1 1 MiB 0.20 (gloo), barrier 4x1 0 0.40 (gloo) |"
expect "JSON says how many hosts" has "$(cat net.json)" '"hosts": 2, "ranks": 4, "bytes": 8'
expect "figures of hosts" is "$(ls net-figures | tr '\n' ' ')" "net-all_reduce-2x2.svg net-all_reduce-4x1.svg net-barrier-4x1.svg "
expect "and their titles" has "$(cat net-figures/net-barrier-4x1.svg)" "barrier, 4 ranks on 4 hosts, TCP"
echo libct,2x0,1,barrier,0,1,1,1,1 >none
expect "no ranks on a host" is "$("$report" none 2>&1)" "peers_report: none: line 1 is no row, or there is no memory"

sed 's/impi/nobody/' rows >others
err=$("$report" others 2>&1 >out); code=$?; out=$(cat out)
expect "an unknown library is refused" is "$code $err" "1 peers_report: others: line 12 is no row, or there is no memory"
"$report" --json=/dev/full rows >out 2>err; code=$?; err=$(cat err)
expect "a full disk" is "$code $err" "1 peers_report: /dev/full: can't be written"

finish
