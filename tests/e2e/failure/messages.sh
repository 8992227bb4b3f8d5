# SPDX-License-Identifier: Apache-2.0
# Messages under ctrun: what fails since a rank has destroyed the group fails at once.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1

fast() { [[ $out =~ ^([0-9]+)\ ms$ ]] && ((BASH_REMATCH[1] < 2000)); }

for link in shm tcp; do
    CT_LINK=$link run --nproc-per-node=2 "$CT_BUILD/tests/e2e_leaver"
    expect "60 receives from a rank that has left the group take less than 2 s ($link)" fast
    expect "and the job ends well ($link)" is "$code" 0
done
finish
