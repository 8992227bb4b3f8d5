# SPDX-License-Identifier: Apache-2.0
# A rank is killed: whatever the others wait in, they are told who died and of what, long before
# their timeout of half an hour.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"

survivors() { grep -c "rank [0-9]: a peer is gone: .*rank 2 .*was killed by SIGKILL" <<<"$out"; }
later() { grep -c "rank [0-9] then: a peer is gone: group world is broken: .*rank 2 .*was killed by SIGKILL" <<<"$out"; }

dies() { # LINK WHERE
    CT_LINK=$1 run --nproc-per-node=4 --on-failure=continue "$CT_BUILD/tests/e2e_dies" "$2" 2
    expect "$2 over ${1:-memory}: the survivors are told" is "$(survivors)" 3
    [[ $2 = init* ]] || expect "$2 over ${1:-memory}: and each later call says so" is "$(later)" 3
}

for where in all_reduce broadcast barrier recv recv-from-another recv-from-any test wait-for work store init; do
    dies "" $where
done
for where in all_reduce broadcast barrier recv recv-from-another recv-from-any test wait-for work; do
    dies tcp $where
done

# A rank that comes late, when who shares memory with the others on this host has given up.
CT_FAULT="rank:3,op:init,phase:1,delay:300ms;rank:2,op:init,phase:1,kill" dies "" init-late

# Without ctrun nobody tells how a rank ended: they find out by themselves that it did.
alone() { # WHERE
    local rank
    new_port
    for rank in 0 1 2 3; do
        env -u CT_CONTROL RANK=$rank WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            timeout 120 "$CT_BUILD/tests/e2e_dies" "$1" 2 >alone.$rank 2>&1 &
    done
    wait
    expect "$1 without ctrun too" is "$(cat alone.[013] | grep -c 'rank [0-9]: a peer is gone')" 3
}
for where in all_reduce recv test wait-for; do alone $where; done

finish
