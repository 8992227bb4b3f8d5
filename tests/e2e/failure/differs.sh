# SPDX-License-Identifier: Apache-2.0
# Programs end when a call fails.  What made it fail is what all ranks are told, not that some
# of them have ended since.
. "$CT_SOURCE/tests/e2e/lib.sh"

differs() { # LINK HOW
    local told=0 i
    for ((i = 0; i < 15; i++)); do
        CT_LINK=$1 run --nproc-per-node=4 "$CT_BUILD/tests/e2e_differs" "$2"
        [ "$(grep -c 'the ranks made different calls' <<<"$out")" = 4 ] && told=$((told + 1))
        grep -q then <<<"$out" && break
    done
    expect "$2 over ${1:-memory}: all four are told of the other call" is $told 15
    expect "$2 over ${1:-memory}: and a later call says the same" lacks "$out" then
}
for link in "" tcp; do
    differs "$link" exits
    differs "$link" again
    CT_LINK=$link run --nproc-per-node=3 "$CT_BUILD/tests/e2e_differs" late
    expect "late over ${link:-memory}: the call of a rank that comes last shows which rank is wrong" \
        matches "$err" 'rank 2 \(pid [0-9]+\) made a different call than (ranks 0-1|ranks 0 and 1|rank [01] \(pid [0-9]+\)), which w'
done

finish
