# SPDX-License-Identifier: Apache-2.0
# ctrun --status on two hosts: the token, the ranks of both, a node that does not answer, one without the option, the end.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
. "$CT_SOURCE/tests/e2e/page.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
need_hosts 2
worker=$CT_BUILD/tests/e2e_looked_at
export CT_STATUS_TOKEN=0123456789abcdef
port=29400 where=10.77.0.1/8080
ranks=2 missing=3
node() { ${on[$1]} "$CTRUN" --nnodes=2 --node-rank="$1" --master-addr=10.77.0.1 --master-port=29400 --stall=0 --rdzv-conf=keep_alive_interval=5,keep_alive_max_attempt=12 --status=0.0.0.0:8080 --nproc-per-node=$ranks "$worker" $missing go -1; }
node 0 >n0.out 2>n0.err </dev/null &
first=$!
node 1 >n1.out 2>n1.err </dev/null &
second=$!
at=${on[1]}
expect "from another host it asks for the token" within 20 eval '[ "$(ask "$where" /api/job)" = "403 text/plain" ]'
expect "  by a sentence" has "$(cat .body)" "it needs the token that ctrun printed"
expect "  which ctrun has printed" within 20 grep -q "^ctrun: the job's page: http://h0:8080/?token=0123456789abcdef$" n0.err
expect "  a wrong one is none" is "$(ask "$where" '/api/job?token=0123456789abcdeg')" "403 text/plain"
expect "  with it all is shown" is "$(ask "$where" '/api/job?token=0123456789abcdef')" "200 application/json"
expect "  so is it as Prometheus sends it" is "$(ask "$where" /metrics 'Authorization: Bearer 0123456789abcdef')" "200 text/plain; version=0.0.4; charset=utf-8"
both() { ask "$where" '/api/job?token=0123456789abcdef' >/dev/null && [ "$(say "[(n['host'], [(r['rank'], r['calls'], r['state']) for r in n['ranks']]) for n in j['nodes']]")" = "$1" ]; }
expect "the ranks of both nodes" within 20 both "[('h0', [(0, 8, 'waiting'), (1, 8, 'waiting')]), ('h1', [(2, 8, 'waiting'), (3, 7, 'blocking')])]"
expect "  one sentence over both hosts: who is missing, then who waits" matches "$(say "j['verdicts']")" \
    "^\[\{'stuck': True, 'text': 'rank 3 \(pid [0-9]+ on h1, [a-z ]+\) has not joined barrier #8; its last call was #7\. Ranks 0-2 have waited [0-9.]+ s in barrier #8 at looked_at\.c:[0-9]+ \(main\)'\}\]$"
expect "  the token is not on the page" lacks "$(cat .body)" 0123456789abcdef
expect "node 1 serves nothing" is "$(at=${on[0]} ask 10.77.0.2/8080 /api/job | grep -o refused)" refused
pid1=$(say "j['nodes'][1]['pid']")
kill -STOP "$pid1"
silent() { ask "$where" '/api/job?token=0123456789abcdef' >/dev/null && [ "$(say "j['nodes'][1]['answered_s_ago'] > 1 and j['nodes'][0]['answered_s_ago'] < 1 and len(ranks)")" = 4 ]; }
expect "a node that does not answer is shown as it was, with the time" within 20 silent
kill -CONT "$pid1"
${on[1]} python3 - >.events <<'END' &
import http.client, sys
c = http.client.HTTPConnection("10.77.0.1", 8080, timeout=60)
c.request("GET", "/events?token=0123456789abcdef")
for line in c.getresponse():
    sys.stdout.buffer.write(line)
END
events=$!
within 20 grep -q '^event: job' .events
touch go
wait $first $second
expect "and both end well" is "$? $(sort -u n1.err)" "0 to stderr"
wait $events
grep '^data: ' .events | tail -n 1 | sed 's/^data: //' >.body
expect "the end is that of the ranks of both" is "$(say "j['state'], [r['state'] for r in ranks]")" "('succeeded', ['done', 'done', 'done', 'done'])"
expect "  after their processes are gone" is "$(say "[r['process'] for r in ranks]")" "['-', '-', '-', '-']"

# ---- A node whose only rank is missing says nothing by itself
rm go
ranks=1 missing=1
node 0 >n0.out 2>n0.err </dev/null &
first=$!
node 1 >n1.out 2>n1.err </dev/null &
second=$!
one() { ask "$where" '/api/job?token=0123456789abcdef' >/dev/null && [[ $(say "[v['text'] for v in j['verdicts']], [r['state'] for r in ranks]") =~ $1 ]]; }
expect "a rank that is alone on its host is found missing by the other host" within 20 one \
    "^\(\['rank 1 \(pid [0-9]+ on h1(: computing)?\) has not joined barrier #8\. Rank 0 has waited [0-9.]+ s in barrier #8 at looked_at\.c:[0-9]+ \(main\)'\], \['waiting', 'blocking'\]\)$"
touch go
wait $first $second

# ---- A node without the option, and a node 0 without workers
rm go
meet="--rdzv-backend=c10d --rdzv-endpoint=10.77.0.1:29400 --rdzv-id=served --nnodes=1:2"
${on[0]} "$CTRUN" $meet --rdzv-conf=is_host=1,last_call_timeout=1 --nproc-per-node=0 --status=0.0.0.0:8080 "$worker" 1 go -1 >n0.out 2>n0.err </dev/null &
first=$!
${on[1]} "$CTRUN" $meet --rdzv-conf=is_host=0,last_call_timeout=1 --nproc-per-node=2 "$worker" 1 go -1 >n1.out 2>n1.err </dev/null &
second=$!
served() { ask "$where" '/api/job?token=0123456789abcdef' >/dev/null && [ "$(say "j['state'], [(r['rank'], r['calls'], r['stderr']) for r in ranks]")" = "$1" ]; }
at=${on[1]}
expect "the ranks of a node without the option, by a node 0 without workers" within 20 served "('running', [(0, 8, []), (1, 7, [])])"
touch go
wait $first
code=$?
wait $second
expect "and they end well" is "$code $?" "0 0"
finish
