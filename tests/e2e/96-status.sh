# SPDX-License-Identifier: Apache-2.0
# ctrun --status: what the page, its JSON and its metrics say; who may read it; several nodes; a browser; Prometheus.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
. "$CT_SOURCE/tests/e2e/hosts.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
export OMP_NUM_THREADS=1
trap 'kill $(jobs -p) 2>/dev/null; kill_agents; no_hosts; cd /; rm -rf "$work"' EXIT
worker=$CT_BUILD/tests/e2e_looked_at

# ask PATH [HEADER...]: "200 type length-of-body", and the body in .body.  ask unix:PATH PATH.  sum EXPRESSION: of .body as JSON, j.
cat >ask.py <<'END'
import http.client, os, socket, sys
words = sys.argv[1:]
if "AS" in os.environ:
    out = open(".body", "wb")
    "loads what another user may not".encode("idna")
    os.setuid(int(os.environ["AS"]))
method = words.pop(0) if words[0].isupper() else "GET"
if words[0].startswith("unix:"):
    c = http.client.HTTPConnection("localhost", timeout=20)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(words.pop(0)[5:])
else:
    c = http.client.HTTPConnection(*words.pop(0).split("/"), timeout=20)
c.request(method, words[0], headers=dict(w.split(": ", 1) for w in words[1:]))
r = c.getresponse()
body = r.read()
(out if "AS" in os.environ else open(".body", "wb")).write(body)
print(r.status, r.getheader("Content-Type"))
END
cat >say.py <<'END'
import json, sys
j = json.load(open(".body"))
ranks = [r for n in j["nodes"] for r in n["ranks"]]
print(eval(sys.argv[1]))
END
ask() { ${at:-} python3 ask.py "$@" 2>&1 | tail -n 1; }
say() { python3 say.py "$1" 2>&1 | tail -n 1; }
serves() { [ "$(ask "$where" "$@")" = "200 application/json" ]; }
start() { # OPTIONS...: a job with a page at $where
    new_port
    where=127.0.0.1/$port
    "$CTRUN" --status="$port" --stall=0 "$@" >.job.out 2>.job.err </dev/null &
    job=$!
    within 20 serves /api/job
}
ended_job() { wait "$job"; code=$?; out=$(cat .job.out) err=$(cat .job.err); }
all_are() { ask "$where" /api/job >/dev/null && [ "$(say "sorted(r['state'] for r in ranks)")" = "$1" ]; }

# ---- What it says
start --nproc-per-node=3 "$worker" 1 go -1
expect "ranks that wait for one another are told from the one they wait for" within 20 all_are "['blocking', 'waiting', 'waiting']"
expect "  by a sentence, too" matches "$(say "j['nodes'][0]['stuck']")" "^\['group world has waited [0-9.]+ s: ranks 0,2 called barrier #8.*; rank 1 made no call after #7"
expect "each rank's calls and bytes are exact" is "$(say "[(r['rank'], r['calls'], r['bytes']) for r in ranks]")" "[(0, 8, 28000), (1, 7, 28000), (2, 8, 28000)]"
expect "the job" is "$(say "j['program'], j['state'], j['world'], j['restarts'], len(j['nodes'])")" "('$worker', 'running', 3, 0, 1)"
expect "its last lines, as plain text" is "$(say "ranks[2]['stdout'], ranks[2]['stderr']")" "(['rank 2 has <b>begun</b> & � waits'], ['to stderr'])"
expect "who waits is in calls, who does not is not" is "$(say "[r['in_calls_s'] > 1 for r in ranks]")" "[True, False, True]"
expect "what ctrun said" is "$(say "j['said'][-1]")" "ctrun: the job's page: http://127.0.0.1:$port/ on $(hostname | cut -d. -f1)"

if command -v prometheus >/dev/null; then
    scrape=$where
    new_port
    printf '%s\n' 'global: { scrape_interval: 1s }' 'scrape_configs:' '- job_name: ctrun' '  static_configs:' "  - targets: ['${scrape/\//:}']" >prometheus.yml
    prometheus --config.file=prometheus.yml --storage.tsdb.path=prom --web.listen-address=127.0.0.1:"$port" >.prom 2>&1 &
    prom=$! prom_at=127.0.0.1/$port
    sums() {
        ask "$prom_at" "/api/v1/query?query=$1" >/dev/null
        python3 -c 'import json; print([(r["metric"]["rank"], r["value"][1]) for r in json.load(open(".body"))["data"]["result"]])' 2>&1 | tail -n 1
    }
    scraped() { [ "$(sums 'sort_by_label(ctrun_rank_calls_total%2C%22rank%22)')" = "$1" ] || [ "$(sums 'ctrun_rank_calls_total')" = "$1" ]; }
    expect "Prometheus scrapes each rank's calls" within 30 scraped "[('0', '8'), ('1', '7'), ('2', '8')]"
    expect "  and the states" is "$(sums 'ctrun_rank_state%7Bstate%3D%22blocking%22%7D')" "[('1', '1')]"
    kill $prom
    where=$scrape
else
    echo "skipped: Prometheus, which is not installed"
fi

# ---- Who may read it
expect "there is no other page" is "$(ask "$where" /etc/passwd)" "404 text/plain"
expect "nothing can be written" is "$(ask POST "$where" /api/job)" "405 text/plain"
expect "a name that a stranger may have pointed here is refused" is "$(ask "$where" /api/job 'Host: evil.example')" "403 text/plain"
expect "  localhost is not" is "$(ask "$where" /api/job 'Host: localhost:1')" "200 application/json"
expect "nor is it of use to frame or to inject" matches "$(python3 - "$where" <<'END'
import http.client, sys
c = http.client.HTTPConnection(*sys.argv[1].split("/"))
c.request("GET", "/")
print(c.getresponse().getheader("Content-Security-Policy"))
END
)" "^default-src 'none'; .*frame-ancestors 'none'"
if [ "$(id -u)" = 0 ]; then
    expect "another user of this host is refused" is "$(AS=65534 ask "$where" /api/job) $(cat .body)" "403 text/plain this page shows a job of another user or host: it needs the token that ctrun printed, as ?token=TOKEN or in a header, Authorization: Bearer TOKEN"
fi
python3 - "$where" <<'END' &
import socket, sys, time
host, port = sys.argv[1].split("/")
crowd = []
for i in range(400):
    s = socket.socket()
    s.settimeout(1)
    try:
        s.connect((host, int(port)))
    except OSError:
        pass
    crowd.append(s)
open("crowd", "w").close()
time.sleep(60)
END
crowd=$!
within 30 test -e crowd
fds() { ls /proc/$job/fd | wc -l; }
expect "a crowd that says nothing takes few descriptors" [ "$(fds)" -lt 250 ]
kill $crowd
expect "and goes" within 30 serves /api/job

# ---- A browser
if command -v chromium >/dev/null; then
    timeout 100 python3 "$CT_SOURCE/tests/e2e/browser.py" "http://127.0.0.1:${where#*/}/" \
        'wait=document.querySelectorAll("tr.row").length == 3' 'wait=document.querySelector(".note")' \
        'say=[...document.querySelectorAll("tr.row")].map(r => r.children[3].textContent).join()' \
        'say=document.querySelector("tr.lines pre").textContent.trim().replace(/\n/g, "|")' \
        'say=[...document.querySelectorAll(".tile")].map(t => t.className).join()' \
        'say=document.getElementById("state").textContent' \
        'wait=/^0 .*waiting *100 %/.test(document.querySelector("tr.row").innerText.replace(/\s+/g, " "))' \
        'do=(at("filter").value = "rank 2 has", at("filter").oninput())' 'say=document.querySelectorAll("tr.row").length' \
        "do=require" >.page 2>&1
    expect "the page shows the same, and a program's output as text" is "$? $(cat .page)" "0 waiting,blocking,waiting
rank 0 has <b>begun</b> & � waits|to stderr
tile waiting,tile blocking,tile waiting
running, ranks are stuck
1"
else
    echo "skipped: the page in a browser, since there is no chromium"
fi

# ---- The end, and a restart
python3 - "$where" >.events <<'END' &
import http.client, sys
c = http.client.HTTPConnection(*sys.argv[1].split("/"), timeout=60)
c.request("GET", "/events")
r = c.getresponse()
for line in r:
    sys.stdout.buffer.write(line)
END
events=$!
within 20 grep -q '^event: job' .events
touch go
ended_job
wait $events
expect "the job does not mind, and its output is as it was" is "$code $(sort <<<"$out" | head -n 1)" "0 $(printf '\033[1mrank 0\033[0m\thas <b>begun</b> & \xff waits')"
expect "who watches sees the end" matches "$(tail -n 3 .events | tr '\n' ' ')" '^event: over data: \{.*"state":"succeeded"'
rm go
start --nproc-per-node=2 --max-restarts=1 "$worker" 0 go 1
touch go
restarted() { ask "$where" /api/job >/dev/null && [ "$(say "j['restarts'], [(r['calls'], len(r['stdout'])) for r in ranks]")" = "(1, [(7, 1), (8, 1)])" ]; }
expect "after a restart the numbers begin anew" within 20 restarted
expect "  and it says why" matches "$(say "j['said']")" "rank 1 \(pid [0-9]+, local rank 1\) exited with code 3, first of all.*; restart 1 of 1"
touch go1
ended_job
expect "  the second start succeeds" is "$code" 0
rm go go1

# ---- A unix socket
python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind("page")' # left behind
"$CTRUN" --status=unix:page --nproc-per-node=1 "$worker" 0 go -1 >.job.out 2>.job.err </dev/null &
job=$!
expect "at a unix socket, over one that was left behind" within 20 eval '[ "$(ask unix:page /api/job)" = "200 application/json" ]'
expect "only its owner may connect" is "$(stat -c %a page)" 600
touch go
ended_job
expect "it goes with the job" is "$code $(ls page 2>/dev/null)" "0 "
rm go
touch page
run --status=unix:page true
expect "a file is not taken for one" is "$code $(grep -o 'status=.*' <<<"$err") $(ls page)" "1 status=unix:page: Address already in use page"
run --status=nowhere true
expect "what is no address is an error of usage" is "$code ${err%%$'\n'*}" "2 ctrun: --status: 'nowhere': give PORT, HOST:PORT or unix:PATH (ctrun --help lists the options)"
CT_STATUS_TOKEN=short run --status=0 true
expect "nor is a short token taken" is "$code $err" "1 ctrun: CT_STATUS_TOKEN has 5 characters; it needs 16"

# ---- Two nodes
hosts 2 || { echo "skipped: two hosts, for which there is no right"; finish; }
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret && chmod 600 secret
export CT_STORE_SECRET_FILE=$work/secret CT_STATUS_TOKEN=0123456789abcdef
port=29400 where=10.77.0.1/8080
node() { ${on[$1]} "$CTRUN" --nnodes=2 --node-rank="$1" --master-addr=10.77.0.1 --master-port=29400 --stall=0 --rdzv-conf=keep_alive_interval=5,keep_alive_max_attempt=12 --status=0.0.0.0:8080 --nproc-per-node=2 "$worker" 3 go -1; }
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
expect "node 1 serves nothing" is "$(at=${on[0]} ask 10.77.0.2/8080 /api/job | grep -o refused)" refused
pid1=$(say "j['nodes'][1]['pid']")
kill -STOP "$pid1"
silent() { ask "$where" '/api/job?token=0123456789abcdef' >/dev/null && [ "$(say "j['nodes'][1]['answered_s_ago'] > 1 and j['nodes'][0]['answered_s_ago'] < 1 and len(ranks)")" = 4 ]; }
expect "a node that does not answer is shown as it was, with the time" within 20 silent
kill -CONT "$pid1"
touch go
wait $first $second
expect "and both end well" is "$? $(sort -u n1.err)" "0 to stderr"
finish
