# SPDX-License-Identifier: Apache-2.0
# Who gives up says how long it waited, who had set the limit, and where the missing rank is.
. "$CT_SOURCE/tests/e2e/lib.sh"

for link in "" tcp; do
    CT_LINK=$link run --nproc-per-node=3 "$CT_BUILD/tests/e2e_late"
    expect "the limit and who set it (${link:-memory})" matches "$out" 'barrier #2 on group world, rank [02]: timed out after [0-9]+ ms \(limit 1000 ms, set by ct_set_next_timeout\(\)\): rank 1 '
    expect "where the missing one is (${link:-memory})" matches "$out" 'rank 1 has called nothing on the group after barrier #1, which it began [0-9]+\.[0-9] s ago'
    expect "nobody else is named (${link:-memory})" lacks "$out" "; rank 2"
done
run --nproc-per-node=2 env CT_TIMEOUT_MS=100 sh -c 'test $RANK = 1 && exec sleep 100; "$CT_BUILD/bin/hello"'
expect "in init too" has "$out$err" "(limit 100 ms, set by CT_TIMEOUT_MS)"

finish
