# SPDX-License-Identifier: Apache-2.0
# Ranks that were started by hand and disagree: two values of WORLD_SIZE, or two processes with one RANK.  All ranks end
# at once, and each names both sides.  A process may take the place of a process that has ended.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
trap 'no_hosts; cd /; rm -rf "$work"' EXIT
export CT_TIMEOUT_MS=120000 MASTER_ADDR=127.0.0.1 MASTER_PORT=29517
hello=$CT_BUILD/bin/hello
declare -A pid

# rank NAME RANK SIZE [COMMAND...]: in the background, by COMMAND
rank() {
    local name=$1 rank=$2 size=$3
    shift 3
    RANK=$rank WORLD_SIZE=$size timeout 100 "$@" "$hello" >"$name.out" 2>"$name.err" </dev/null &
    pid[$name]=$!
}
ended() { wait "${pid[$1]}"; code=$? out=$(cat "$1.out") err=$(cat "$1.err"); }
missing() { grep -qs "waiting [0-9]* s for rank $1 (of 3 ranks); were all ranks started with the same MASTER_ADDR and MASTER_PORT?" ./*.err; }

# all_say PATTERN NAME...: these ranks ended with an error and the same sentence
all_say() {
    local name sentence=
    for name in "${@:2}"; do
        ended "$name"
        expect "$name ends with an error" is "$code" 1
        expect "that says who disagrees" matches "$err" "$1"
        expect "as the others do" is "${BASH_REMATCH[0]}" "${sentence:-${BASH_REMATCH[0]}}"
        sentence=${BASH_REMATCH[0]}
    done
}
# sizes A B: rank 0 has A and rank 1 has B, in either order
sizes() {
    local pid='\(pid [0-9]+ on [^ ]+\)'
    echo "ranks disagree about WORLD_SIZE: (rank 0 $pid has $1, rank 1 $pid has $2|rank 1 $pid has $2, rank 0 $pid has $1); give all ranks the same"
}
twice='two processes are rank 1: pid [0-9]+ on [^ ]+ and pid [0-9]+ on [^ ]+; give each process its own RANK'

# Runs the ranks on the hosts on[0] to on[2].
scenarios() {
    rank a 0 2 ${on[0]}
    rank b 1 3 ${on[1]}
    all_say "$(sizes 2 3)" a b
    rank a 0 3 ${on[0]}
    rank b 1 2 ${on[1]}
    all_say "$(sizes 3 2)" a b
    rank a 0 3 ${on[0]}
    rank b 1 3 ${on[1]}
    rank c 1 3 ${on[2]}
    all_say "$twice" a b c
}

on=(env env env) # as words of hosts.sh
scenarios
on=()

# A group that is complete goes on.
first=()
for r in 0 1; do
    CT_LOG=info RANK=$r WORLD_SIZE=2 timeout 100 "$CT_BUILD/tests/e2e_slow" 90 20 20 2>$r.log &
    first+=($!)
done
for r in 0 1; do within 30 grep -qs "ranks on 1 hosts" $r.log; done
rank c 1 2 env
ended c
expect "a process too late is refused" is "$code $(grep -cE "${twice%;*}; the first one is in a group already: give each process its own RANK" c.err)" "1 1"
rank c 2 3 env
ended c
expect "so is one of another size" is "$code $(grep -cE 'ranks disagree about WORLD_SIZE: rank [01] .* has 2, rank 2 .* has 3' c.err)" "1 1"
expect "and the group goes on" alive "${first[0]}"
expect "with both ranks" alive "${first[1]}"
kill "${first[@]}"
wait "${first[@]}" 2>/dev/null

# A rank that waits for a stopped rank says so after 5 s.  A stopped rank 0 does not serve its store either.
stop() { kill -STOP "$(pgrep -P "${pid[$1]}")"; }
go_on() { kill -CONT "$(pgrep -P "${pid[$1]}")"; }
serves() { ss -Htn state established "dport = :$MASTER_PORT" | grep -q .; }
for secret in "" 0123456789abcdef0123456789abcdef; do
    export CT_STORE_SECRET=$secret
    rank a 0 2 env
    within 20 serves
    stop a
    rank b 1 2 env
    expect "rank 0 is stopped${secret:+, with a secret}" within 30 grep -qsE "^rank 1: waiting 5 s for the store at 127.0.0.1:$MASTER_PORT to answer; " b.err
    go_on a
    ended b
    expect "and goes on" is "$code" 0
    ended a
done
unset CT_STORE_SECRET
stopped='waiting (5 s for rank [01] \(pid [0-9]+\) of this host; is it stopped|for rank [01], which leads this host and is stopped: kill -CONT [0-9]+ lets it continue)'
says_who() { grep -qsE "$stopped" ./*.err; }
for which in b a; do # a or b leads the host
    [ $which = a ] && stopped="$stopped|waiting 5 s for the store at 127.0.0.1:$MASTER_PORT to answer; is the process that serves it \(rank 0's\) stopped" # c finds no store
    rm -f ./*.err
    rank a 0 3 env
    rank b 1 3 env
    within 30 missing 2
    stop $which
    rank c 2 3 env
    expect "rank $which is stopped when it has come" within 30 says_who
    go_on $which
    ended $which
    expect "and goes on" is "$code" 0
    wait "${pid[a]}" "${pid[b]}" "${pid[c]}"
done

# A launcher's store outlives the ranks.  The launcher does not know them.
cat >at_the_store.sh <<'S'
unset CT_GENERATION CT_CONTROL RANK WORLD_SIZE
for what in "0 3" "1 2"; do
    RANK=${what% *} WORLD_SIZE=${what#* } "$1" &
done
wait
for what in "0 4" "1 4" "1 4"; do
    RANK=${what% *} WORLD_SIZE=${what#* } "$1" &
done
wait
for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 "$1" &
done
wait
S
(unset MASTER_ADDR MASTER_PORT; timeout 100 "$CTRUN" --standalone sh at_the_store.sh "$hello" >at.out 2>at.err)
expect "at a launcher's store, too: both sizes" is "$(grep -cE "$(sizes 3 2)" at.err)" 2
expect "  and both processes of a number" is "$(grep -cE "$twice" at.err)" 3
expect "the number is free for the next world" is "$(sort at.out)" "rank 0 of 2: the sum is 3
rank 1 of 2: the sum is 3"

if hosts 3; then
    export MASTER_ADDR=h0
    scenarios

    rm -f ./*.err
    rank a 0 3 ${on[0]}
    rank b 1 3 ${on[1]}
    expect "a wait of 5 s says who is missing" within 30 missing 2
    { pkill -KILL -P "${pid[b]}"; wait "${pid[b]}"; } 2>/dev/null
    rank c 1 3 ${on[2]}
    expect "a rank that is started again says so" within 30 grep -qs "rank 1 was started again before all ranks had come" c.err
    rank d 2 3 ${on[2]}
    for name in a c d; do
        ended $name
        expect "and all is well, $name" is "$code $out" "0 rank $(tr acd 012 <<<$name) of 3: the sum is 6"
    done
fi
finish
