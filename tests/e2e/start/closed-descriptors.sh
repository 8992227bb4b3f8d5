# SPDX-License-Identifier: Apache-2.0
# A program that closes all descriptors, libct's too, still leaves its group: no thread waits for what can't come any more.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
closes=$CT_BUILD/tests/e2e_closes

for link in tcp shm; do
    for message in "" message; do
        CT_LINK=$link run --nproc-per-node=2 "$closes" $message
        expect "under ctrun ($link, ${message:-no message})" is "$out" "left
left"
        for rank in 0 1; do
            CT_LINK=$link RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29535 timeout 60 "$closes" $message >$rank.out 2>&1 &
        done
        wait
        expect "and without it" is "$(grep -hx left 0.out 1.out)" "left
left"
    done
done
finish
