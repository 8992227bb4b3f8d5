# SPDX-License-Identifier: Apache-2.0
# Hosts behind a wire that is slower than the driver of its virtual card tells: the first large calls measure it.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"

CT_FAULT=hosts:0.1 run --on-failure=continue --nproc-per-node=2 --no-python sh -c \
    '[ $RANK = 0 ] || export CT_NETWORK=30us,2GB/s; exec "$0" --ops=all_reduce --sizes=8 --iters=1' "$CT_BUILD/bin/ct_bench"
expect "ranks that were told different networks say so at their first call" has "$err" "ranks 0 and 1 were told different networks (by CT_NETWORK or CT_TUNING); all ranks need the same"

need_hosts 3
for i in 0 1 2; do limit_host $i 100mbit; done

# explained WORD...: $err, what rank 0 says of its calls; WORDs for env
explained() {
    for i in 2 1 0; do
        ${on[i]} env CT_EXPLAIN=1 "$@" timeout 120 "$CTRUN" --nnodes=3 --node-rank=$i --master-addr=10.77.0.1 --master-port=29500 --no-python \
            "$CT_BUILD/bin/ct_bench" --ops=all_reduce,broadcast,reduce --sizes=256K --iters=4 >out$i 2>err$i </dev/null &
    done
    wait $(jobs -p | tail -n 3)
    err=$(cat err0)
}

explained
expect "the driver's word counts at first" matches "$err" 'ct: all_reduce, 262144 bytes .*: nodes.*, the least on a network of [0-9]+ us and 1.2 GB/s'
expect "what was measured counts then" matches "$err" 'ct: broadcast, 262144 bytes .*: nodes_chain, the least on a network of [0-9]+ us and 0\.0[01][0-9]* GB/s'
expect "and of the ways of a reduce the one with the fewest bytes on a wire is chosen" matches "$err" 'ct: reduce, 262144 bytes .*: nodes_parts, '
explained CT_NETWORK=30us,2GB/s
expect "what the user says stays" matches "$err" 'ct: broadcast, 262144 bytes .*, the least on a network of 30 us and 2 GB/s'

finish
