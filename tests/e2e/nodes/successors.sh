# SPDX-License-Identifier: Apache-2.0
# A worker may be several programs, one after the other: each meets its peers anew, and not what
# the ones before left at the store.
. "$CT_SOURCE/tests/e2e/lib.sh"
export CT_TIMEOUT_MS=20000

for link in "" tcp; do
    CT_LINK=$link run --nproc-per-node=3 "$CT_BUILD/tests/e2e_again" 4 leaves
    expect "a program becomes another (${link:-memory})" is "$code $out" "0 3
3
3"
    CT_LINK=$link run --nproc-per-node=3 "$CT_BUILD/tests/e2e_again" 4
    expect "also in the middle of its work (${link:-memory})" is "$code $out" "0 3
3
3"
    CT_LINK=$link run --nproc-per-node=3 sh -c '"$CT_BUILD/tests/e2e_again" 0 leaves && "$CT_BUILD/tests/e2e_again" 0'
    expect "or a script runs one behind the other (${link:-memory})" is "$code $(sort -u <<<"$out")" "0 3"
done

finish
