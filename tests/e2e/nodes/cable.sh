# SPDX-License-Identifier: Apache-2.0
# Two hosts without ctrun: one that is lost in the middle of a message is noticed, and a pause of some
# seconds is none.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
trap 'no_hosts; cd /; rm -rf "$work"' EXIT
hosts 2 || { echo "skipped: no right to make hosts of namespaces"; exit 77; }

# Small messages from rank 0 to rank 1, SECONDS long or until one fails.
two_ranks() {
    local i
    for i in 0 1; do
        MASTER_ADDR=10.77.0.1 MASTER_PORT=29600 WORLD_SIZE=2 RANK=$i timeout 100 \
            ${on[i]} "$CT_BUILD/tests/e2e_stream" "$1" >out.$i 2>&1 </dev/null &
        ranks[i]=$!
    done
    expect "messages flow" within 30 lines_in 1 out.0
}
ranks=()

two_ranks 12
sleep 1
unplug 1
sleep 7
plug 1
for i in 0 1; do
    wait "${ranks[i]}"
    code=$? out=$(cat out.$i)
    expect "a cable that is out for 7 s ends no message of rank $i" is "$code" 0
done

two_ranks 60
sleep 1
unplug 1
wait "${ranks[0]}"
code=$? out=$(cat out.0)
expect "the sender is told" is "$code" 1
expect "which host" matches "$out" 'rank 1 .* its host does not answer any more'
expect "long before the end of its time" matches "$out" 'after (1[0-9]|2[0-9]|3[0-9]) s'
kill "${ranks[1]}" 2>/dev/null
finish
