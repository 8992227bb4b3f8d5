# SPDX-License-Identifier: Apache-2.0
# device_soak against tests/fake's driver: many calls on device memory are right and leave nothing
# behind, and when a rank is killed in the middle of one, whichever it is, the others are told.
. "$CT_SOURCE/tests/e2e/lib.sh"
soak=$CT_BUILD/tests/device_soak
[ -e "$soak" ] || { echo "skipped: what needs CUDA"; exit 77; }
export ASAN_OPTIONS=quarantine_size_mb=1:thread_local_quarantine_size_kb=64 # of what was freed; it would look like growth
export CT_TEST_DRIVER=$CT_BUILD/tests/libcuda.so.1

run --nproc-per-node=3 "$soak" 1200
expect "all right, and nothing grows" is "$code" 0
expect "and it says how it went" matches "$out" 'calls 1200, us [0-9.]+, own memory kB [0-9]+ to [0-9]+, descriptors [0-9]+ to [0-9]+'
for victim in 0 1; do
    run --nproc-per-node=3 --on-failure=continue "$soak" 100000000 $victim 100
    expect "rank $victim is killed: the others are told" is \
        "$(grep -c "told at .*: a peer is gone: .*; its GPU works, its buffer stays$" <<<"$out")" 2
done

finish
