# SPDX-License-Identifier: Apache-2.0
# nodes.sh - several ctruns that meet by c10d, for tests; after lib.sh.
#   new_port                  $port, on which nobody listens
#   new_job                   another port and job: $port, $meet (the words of all nodes)
#   agent NAME OPTIONS...     a ctrun in the background, NAME.out and NAME.err; ${pid[NAME]} is ctrun's own
#   host NAME OPTIONS...      so too, and it has the rendezvous: who comes first is left to no chance
#   ended NAME [SECONDS]      waits for its end: $code (or "hangs"), $out, $err
#   killed NAME               by SIGKILL
#   kill_agents               those that still run, at a script's end
# The port is below those that the kernel gives to others, so a test that runs
# beside this one doesn't find it.
declare -A pid=()
ports=0 jobs=0 where=()

new_port() {
    ports=$((ports + 1))
    port=$((10000 + ($$ * 61 + ports) % 20000))
    while answers; do port=$((port + 1)); done
}

new_job() {
    jobs=$((jobs + 1))
    new_port
    meet="--rdzv-backend=c10d --rdzv-endpoint=${endpoint:-localhost}:$port --rdzv-id=job$jobs"
}

# ${on[I]} of hosts.sh goes in front by: agent_on I NAME OPTIONS...
agent_on() {
    local i=$1
    shift
    where=(${on[i]})
    agent "$@"
    where=()
}

agent() {
    local name=$1
    shift
    : >"$name.out" # now: the process below may be slow, and an older agent's lines be taken for its own
    ${where[@]+"${where[@]}"} "$CTRUN" $meet "$@" >"$name.out" 2>"$name.err" </dev/null &
    pid[$name]=$!
}

host() {
    agent "$@"
    within 30 answers
}
answers() { (exec 3<>"/dev/tcp/localhost/$port") 2>/dev/null; }

ended() {
    within "${2:-60}" dead "${pid[$1]}"
    if alive "${pid[$1]}"; then
        code=hangs
    else
        wait "${pid[$1]}"
        code=$?
        unset "pid[$1]"
    fi
    out=$(cat "$1.out") err=$(cat "$1.err")
}
dead() { ! alive "$1"; }

# Waiting at once keeps the shell from telling us.
killed() { kill -KILL "${pid[$1]}"; wait "${pid[$1]}"; unset "pid[$1]"; } 2>/dev/null

kill_agents() {
    [ ${#pid[@]} -eq 0 ] || { kill -KILL "${pid[@]}"; wait "${pid[@]}"; } 2>/dev/null
    pid=()
}
