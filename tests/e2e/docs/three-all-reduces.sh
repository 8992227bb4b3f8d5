# SPDX-License-Identifier: Apache-2.0
# examples/three_all_reduces: three ways, one result; what each moves; in the host's memory and in
# that of the fake driver's GPUs.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
unset CT_ORDER CT_LINK CT_ALL_REDUCE CT_REDUCE CT_TUNING CUDA_VISIBLE_DEVICES
three=$CT_BUILD/bin/three_all_reduces
rows() { sed -n "/^$1 memory/,/^  The three/p" <<<"$out" | awk 'NF == 7 && $1 + 0 == $1 { printf "%s ", $1 }'; }
numbers() { grep -F "  $1  " <<<"$out" | grep 'B$' | cut -c31- | tr -s ' ' | sed 's/^ //'; }

# 1000 floats are no multiple of 3 ranks.
run --nproc-per-node=3 "$three" --floats=1000 --repeats=3
expect "it ends well" is "$code $err" "0 "
expect "sizes up to the floats" is "$(rows Host)" "1024 4000 "
expect "the same bits" has "$out" "the same, bit by bit, on all 3 ranks"
expect "and no device was asked for" lacks "$out" "Device memory"
expect "all_reduce: 2(p-1)/p S, 2(p-1) S" is "$(numbers all_reduce)" "5.208 KiB 5.208 KiB 15.62 KiB"
expect "by way of rank 0: S, (p-1) S" is "$(numbers 'reduce + broadcast')" "3.906 KiB 7.812 KiB 15.62 KiB"
expect "in two halves" is "$(numbers 'reduce_scatter + all_gather')" "5.208 KiB 5.208 KiB 15.62 KiB"
expect "the factor is named" has "$out" "for all p; here 1.333."

run --nproc-per-node=2 "$three" --floats=1 --repeats=1
expect "one float" is "$code $(rows Host)" "0 4 "
out=$("$three" --floats=300 --repeats=1 2>&1) code=$?
expect "one rank, which sends nothing" is "$code $(numbers all_reduce)" "0 0 B 0 B 0 B"

# A ring adds in an order of its own, which shows that the comparison sees bits.
CT_ORDER=fast CT_LINK=tcp CT_ALL_REDUCE=ring run --nproc-per-node=3 "$three" --floats=1000 --repeats=1
expect "another order has other bits" is "$code" 1
expect "one rank says where" is "$(grep -c '^three_all_reduces: rank 0: float [0-9]* of [0-9]* by reduce + broadcast is' <<<"$err")" 1

run --nproc-per-node=2 "$three" --float=3
expect "an option that is none is refused once" is "$code $(grep -c ^three <<<"$err")" "1 1"

mkdir none && : >none/libcuda.so.1
LD_LIBRARY_PATH=$work/none run --nproc-per-node=2 "$three" --device
expect "no driver, said once" is "$code $(grep '^three' <<<"$err")" \
    "1 three_all_reduces: rank 0: there is no GPU here: no libcuda.so.1, which comes with its driver"

if [ -e "$CT_BUILD/tests/libcuda.so.1" ]; then
    export LD_LIBRARY_PATH=$CT_BUILD/tests
    for gpus in 1 4; do
        FAKE_CUDA_DEVICES=$gpus run --nproc-per-node=3 "$three" --device --floats=5000 --repeats=2
        expect "3 ranks on $gpus GPUs" is "$code $err" "0 "
        expect "host and device side by side" is "$(rows Host)/ $(rows Device)" "1024 16384 20000 / 1024 16384 20000 "
        expect "both compared" is "$(grep -c 'the same, bit by bit' <<<"$out")" 2
    done
    FAKE_CUDA_DEVICES=0 run --nproc-per-node=2 "$three" --device
    expect "a driver without a GPU" is "$code $(grep '^three' <<<"$err")" \
        "1 three_all_reduces: rank 0: there is no GPU here: no CUDA-capable device is detected"
    FAKE_CUDA_FAIL_ALLOC=1 run --nproc-per-node=2 "$three" --device --floats=100 --repeats=1
    expect "no memory there, in the driver's words" has "$err" "memory of the GPU: out of memory"
fi
finish
