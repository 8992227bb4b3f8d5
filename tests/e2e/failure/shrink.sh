# SPDX-License-Identifier: Apache-2.0
# A rank dies, the others agree on who is left and go on in a group without it.
. "$CT_SOURCE/tests/e2e/lib.sh"

shrinks() { rm -f over; run --nproc-per-node="$1" --on-failure=continue "$CT_BUILD/tests/e2e_shrinks" "${@:2}"; }

shrinks 4 2
expect "three of four go on, in the old order" is "$code $(sort <<<"$out" | tr '\n' ';')" "0 0 of 3, sum 4;1 of 3, sum 4;2 of 3, sum 4;"
shrinks 4 0
expect "rank 0 may be the one" is "$code $(sort <<<"$out" | tr '\n' ';')" "0 0 of 3, sum 6;1 of 3, sum 6;2 of 3, sum 6;"
CT_LINK=tcp shrinks 4 1 3 0
expect "again and again, down to one, over sockets" is "$code $out" "0 0 of 1, sum 2"
shrinks 6 5 0 3
expect "again and again" is "$code $(sort <<<"$out" | tr '\n' ';')" "0 0 of 3, sum 7;1 of 3, sum 7;2 of 3, sum 7;"
for try in 1 2 3; do
    shrinks 5 4 '2!' '0!'
    expect "and one dies while they shrink ($try)" is "$code $(sort <<<"$out" | tr '\n' ';')" "0 0 of 2, sum 4;1 of 2, sum 4;"
done

# One lives but does not come: the limit is over when another dies, and yet all agree.
for try in 1 2 3; do
    LATER_FAULT=rank:2,op:init,phase:1,kill shrinks 4 '3~'
    expect "one dies when the time of a silent one is over ($try)" is "$(sort <<<"$out" | tr '\n' ';')" "0 of 2, sum 1;1 of 2, sum 1;"
done

run --nproc-per-node=4 --on-failure=continue "$CT_BUILD/bin/survive"
expect "a trainer goes on with the rest" is "$code $out" "0 3 of 4 ranks found y = 3.000 x + 2.000"
run --nproc-per-node=3 "$CT_BUILD/bin/survive" 9 9
expect "and with all of them while they live" is "$code $out" "0 3 of 3 ranks found y = 3.000 x + 2.000"

finish
