# SPDX-License-Identifier: Apache-2.0
# One rank fails, in one of ten ways, and the others fail because of it.  The report names that rank,
# ctrun ends with its exit code, and its last words are printed even if it tidies up before it ends.
#   CT_RUNS=1000 CT_RANKS="2 8 64" CT_PLACES="shm tcp hosts"   a longer search
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
places=${CT_PLACES:-shm tcp}
case $places in *hosts*) need_hosts 2 ;; esac
culprit=$CT_BUILD/tests/e2e_culprit
RANDOM=${CT_SEED:-$$}

one_host() {
    local ranks=$1 link=$2
    shift 2
    CT_LINK=$link timeout 120 "$CTRUN" --no-python --nproc-per-node=$ranks "$culprit" "$@" >out 2>err </dev/null
    code=$? err=$(cat err)
}
two_hosts() {
    local ranks=$1 node
    shift
    kill_agents
    new_job
    meet="--nnodes=2 --master-addr=h0 --master-port=$port --no-python --nproc-per-node=$((ranks / 2))"
    for node in 0 1; do agent_on $node h$node --node-rank=$node "$culprit" "$@"; done
    ended h1
    codes=$code all=$err
    ended h0
    [ "$codes" = "$code" ] || code="$code and $codes"
    err="$err
$all"
}

# The expected exit code and line of ctrun for `how` with `ranks`.
says() {
    local by="rank ($rank|$second) \(pid [0-9]+(, local rank [0-9]+)?\)" victims=7
    [ "$after" = abort ] && victims=134
    case $how in
    raise | cleanup | slow-cleanup) echo "3 $by (failed first: it )?exited with code 3" ;;
    abort) echo "134 $by (failed first: it )?was killed by SIGABRT" ;;
    kill) echo "137 $by (failed first: it )?was killed by SIGKILL" ;;
    leave | destroy-leave) echo "1 $by left with exit code 0 while" ;;
    stop) echo "$victims $by was stopped while" ;;
    late) echo "$victims $by did not join in time while" ;;
    # Both sides, if no third rank had made the call yet.
    mismatch) echo "(3|$victims) ($by made a different call than|ranks ($rank and [0-9]+|[0-9]+ and $rank|$((rank - 1))-$rank|$rank-$((rank + 1))) disagree)" ;;
    esac
}

ways=(raise cleanup slow-cleanup leave destroy-leave abort kill mismatch late stop)
wrong=0 codes_wrong=0 silent=0 runs=0
for ((n = 0; n < ${CT_RUNS:-40}; n++)); do
    how=${ways[n % ${#ways[@]}]}
    read -ra all_ranks <<<"${CT_RANKS:-2 3 8}"
    read -ra all_places <<<"$places"
    ranks=${all_ranks[RANDOM % ${#all_ranks[@]}]} place=${all_places[RANDOM % ${#all_places[@]}]}
    [ $place = hosts ] && ranks=$((ranks + ranks % 2))
    rank=$((RANDOM % ranks)) after=$([ $((RANDOM % 4)) = 0 ] && echo abort || echo exit)
    before=$([ $((RANDOM % 4)) = 0 ] && echo caught || echo plain)
    second=$rank # two at once: either may be named
    [ $ranks -gt 2 ] && [ $how != mismatch ] && [ $((RANDOM % 4)) = 0 ] && second=$(((rank + 1) % ranks))
    case $place in
    shm) one_host $ranks "" $how $rank $after $before $second ;;
    tcp) one_host $ranks tcp $how $rank $after $before $second ;;
    hosts) two_hosts $ranks $how $rank $after $before $second ;;
    esac
    read -r its_code its_words <<<"$(says)"
    runs=$((runs + 1))
    what="run $n: $how of ranks $rank, $second of $ranks, $place, $after, $before: code $code: $(grep -aE '^ctrun: (node|rank)' <<<"$err" | head -n 2)"
    [[ $err =~ $its_words ]] || { wrong=$((wrong + 1)); echo "wrong root: $what"; }
    named=${BASH_REMATCH[1]:-$rank}
    [[ $code =~ ^$its_code$ ]] || { codes_wrong=$((codes_wrong + 1)); echo "wrong code: $what"; }
    case $how in
    *cleanup | destroy-leave)
        [[ $err == *"rank $named: the last words"* ]] || { silent=$((silent + 1)); echo "no last words: $what"; } ;;
    esac
done
echo "$runs runs: wrong root $wrong, wrong exit code $codes_wrong, last words missing $silent"
expect "the root cause is named each time" is $wrong 0
expect "and its exit code is ctrun's" is $codes_wrong 0
expect "its last words are printed" is $silent 0
TORCHELASTIC_ERROR_FILE=$PWD/upward.json one_host 2 "" leave 1
expect "ctrun's caller learns what a root cause did that has no error of its own" \
    grep -q 'rank 1 (pid [0-9]*) left with exit code 0 while rank 0' upward.json
expect "TMPDIR is empty" is "$(ls "$TMPDIR")" ""
finish
