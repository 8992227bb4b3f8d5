# SPDX-License-Identifier: Apache-2.0
# What ct.h says of a world that lost a rank, and of the group of the survivors.
. "$CT_SOURCE/tests/e2e/lib.sh"

said="world: stop refused, new group refused, sum refused; left: new group made, stop 0, sum made"
for link in shm tcp; do
    CT_LINK=$link run --nproc-per-node=3 --on-failure=continue "$CT_BUILD/tests/e2e_after"
    expect "the world stays broken and the new group works ($link)" is "$code $(sorted "$out" | tr '\n' ';')" \
        "0 0 of 3 is 0 of 2; $said;1 of 3 is 1 of 2; $said;"
done
run --nproc-per-node=3 "$CT_BUILD/tests/e2e_after"
expect "without --on-failure=continue the job fails" is $((code != 0)) 1

finish
