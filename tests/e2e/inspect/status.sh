# SPDX-License-Identifier: Apache-2.0
# ctrun --status: what the page, its JSON and its metrics say; which clients may read it; a browser; Prometheus.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh" # new_port
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
export OMP_NUM_THREADS=1
trap 'kill $(jobs -p) 2>/dev/null; cd /; rm -rf "$work"' EXIT
worker=$CT_BUILD/tests/e2e_looked_at

. "$CT_SOURCE/tests/e2e/page.sh"
serves() { [ "$(ask "$where" "$@")" = "200 application/json" ]; }
start() { # OPTIONS...: a job with a page at $where
    new_port
    where=127.0.0.1/$port
    CT_STATUS_TOKEN=0123456789abcdef "$CTRUN" --status="$port" --stall=0 "$@" >.job.out 2>.job.err </dev/null &
    job=$!
    within 20 serves /api/job
}
ended_job() { wait "$job"; code=$?; out=$(cat .job.out) err=$(cat .job.err); }
all_are() { ask "$where" /api/job >/dev/null && [ "$(say "sorted(r['state'] for r in ranks)")" = "$1" ]; }

# ---- What it says
start --nproc-per-node=3 "$worker" 1 go -1
expect "ranks that wait for one another are told from the one they wait for" within 20 all_are "['blocking', 'waiting', 'waiting']"
expect "  by a sentence, too" matches "$(say "j['verdicts']")" "^\[\{'stuck': True, 'text': 'rank 1 .* has not joined barrier #8; its last call was #7\. Ranks 0,2 have waited [0-9.]+ s"
expect "each rank's calls and bytes are exact" is "$(say "[(r['rank'], r['calls'], r['bytes']) for r in ranks]")" "[(0, 8, 28000), (1, 7, 28000), (2, 8, 28000)]"
expect "the job" is "$(say "j['program'], j['state'], j['world'], j['restarts'], len(j['nodes'])")" "('$worker', 'running', 3, 0, 1)"
expect "its last lines, as plain text" is "$(say "ranks[2]['stdout'], ranks[2]['stderr']")" "(['rank 2 has <b>begun</b> & � waits'], ['to stderr'])"
expect "a rank that waits is in calls, one that does not is not" is "$(say "[r['in_calls_s'] > 1 for r in ranks]")" "[True, False, True]"
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
expect "HEAD gets the head of each" is "$(ask HEAD "$where" /metrics); $(ask HEAD "$where" /events)" "200 text/plain; version=0.0.4; charset=utf-8; 200 text/event-stream"
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
    expect "another user of this host is refused" is "$(AS=65534 ask "$where" /api/job)" "403 text/plain"
    expect "  with the reason" has "$(cat .body)" "this page shows a job of another user: it needs the token that the user gave to ctrun as CT_STATUS_TOKEN"
    expect "  and the token counts" is "$(AS=65534 ask "$where" /metrics 'Authorization: Bearer 0123456789abcdef'); $(AS=65534 ask "$where" '/api/job?token=0123456789abcdef')" \
        "200 text/plain; version=0.0.4; charset=utf-8; 200 application/json"
fi
crowd() { # 400 clients that connect and say nothing
    rm -f crowd
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
}
crowd
fds() { ls /proc/$job/fd | wc -l; }
expect "a crowd that says nothing takes few descriptors" [ "$(fds)" -lt 250 ]
expect "and does not keep others out" within 30 serves /api/job
kill $crowd

# Watchers that leave, and one that talks all the time: memory stays as it is.
python3 - "$where" "$job" >.watchers <<'END'
import socket, sys
host, port = sys.argv[1].split("/")
def resident():
    return next(int(l.split()[1]) for l in open("/proc/%s/status" % sys.argv[2]) if l.startswith("RssAnon"))
def watch(head=b""):
    s = socket.create_connection((host, int(port)), timeout=20)
    s.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n")
    s.recv(10)
    return s
for i in range(100):
    watch(b"X-Long: " + b"x" * 7000 + b"\r\n").close()
before = resident()
for i in range(300):
    watch(b"X-Long: " + b"x" * 7000 + b"\r\n").close()
print("left", resident() - before < 1000)
s = watch()
s.settimeout(0.5)
try:
    for i in range(50):
        s.sendall(b"x" * 1000000)
except OSError:
    pass
print("talked", resident() - before < 3000)
END
[ -n "$CT_SANITIZE" ] || # which keeps what is freed
    expect "watchers that leave, or talk, take no memory" is "$(cat .watchers)" "left True
talked True"
expect "and it goes on" within 30 serves /api/job

# ---- A browser
if command -v chromium >/dev/null; then
    browse() { timeout 100 python3 "$CT_SOURCE/tests/e2e/browser.py" "http://127.0.0.1:${where#*/}/" "$@" >.page 2>&1; }
    rows='[...document.querySelectorAll("tr.row")].map(r => [0, 2, 3].map(i => r.children[i].innerText).join(" ").replace(/\s+/g, " ").replace(/ \d{3,} /, " PID ")).join("; ")'
    boxes='[...document.querySelectorAll("tr.lines")].filter(r => !r.hidden).map(r => r.innerText.trim().replace(/\n/g, "|")).join()'
    browse 'wait=document.querySelectorAll("tr.row").length == 2' 'wait=document.querySelector(".note")' "say=$rows" "say=$boxes" \
        'say=[...document.querySelectorAll(".tile")].map(t => t.className + " " + t.textContent).join()' 'say=byId("state").textContent' \
        'say=document.querySelector(".note").innerText.replace(/\s+/g, " ").slice(0, 8)' \
        'wait=/ 100 % .* barrier #8 on group world at looked_at\.c:\d+ \(main\)$/.test(document.querySelectorAll("tr.row")[1].innerText.replace(/\s+/g, " "))' \
        'do=document.querySelectorAll("tr.row")[1].click()' "say=$rows" \
        'do=byId("open").click()' 'do=byId("fold").click()' "say=$rows" "say=$boxes" \
        'do=(byId("filter").value = "rank 2 has", byId("filter").oninput())' 'say=document.querySelectorAll("tr.row").length' \
        'do=(byId("filter").value = "", byId("filter").oninput(), byId("fold").click())' \
        'do=for (let i = 0; i < 1000; i++) { for (const r of job.nodes[0].ranks) r.now = "barrier #" + i; take({ data: JSON.stringify(job) }); }' \
        'say=rows.size < 10'
    expect "the page shows the rank that the others wait for on top, and the others in one row" is "$? $(sed -n 1p .page)" "0 1 PID ! blocking; 0, 2 2 ranks = waiting"
    expect "  the last lines of the first one, as text" is "$(sed -n 2p .page)" "rank 1 has <b>begun</b> & � waits|to stderr"
    expect "  each rank in its node, with glyph and number" is "$(sed -n 3p .page)" "tile waiting = 0,tile blocking ! 1,tile waiting = 2"
    expect "  that the job is stuck, and for which rank the others wait" is "$(sed -n '4,5p' .page)" "! stuck
! rank 1"
    expect "  a click shows each rank of a row" is "$(sed -n 6p .page)" "1 PID ! blocking; 0, 2 2 ranks = waiting; 0 PID = waiting; 2 PID = waiting"
    expect "  or all ranks have a row, still problems first" is "$(sed -n 7p .page)" "1 PID ! blocking; 0 PID = waiting; 2 PID = waiting"
    expect "  with the last lines of all" is "$(sed -n 8p .page)" "rank 1 has <b>begun</b> & � waits|to stderr,rank 0 has <b>begun</b> & � waits|to stderr,rank 2 has <b>begun</b> & � waits|to stderr"
    expect "  or only those with a word" is "$(sed -n 9p .page)" 1
    expect "  and of rows that are gone it keeps none" is "$(sed -n 10p .page)" True
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
waited() { ask "$where" /api/job >/dev/null && [ "$(say "ranks[0]['in_calls_s'] > 1")" = True ]; }
within 20 waited && within 20 grep -q '^event: job' .events
touch go
ended_job
wait $events
expect "the job does not mind, and its output is as it was" is "$code $(sort <<<"$out" | head -n 1)" "0 $(printf '\033[1mrank 0\033[0m\thas <b>begun</b> & \xff waits')"
expect "the time in calls stays to the end" matches "$(tail -n 2 .events)" '"in_calls_s":[1-9]'
expect "a client that watches sees the end" matches "$(tail -n 3 .events | tr '\n' ' ')" '^event: over data: \{.*"state":"succeeded"'
rm go
start --nproc-per-node=2 --max-restarts=1 "$worker" 0 go 1
touch go
restarted() { ask "$where" /api/job >/dev/null && [ "$(say "j['restarts'], [(r['calls'], len(r['stdout'])) for r in ranks]")" = "(1, [(7, 1), (8, 1)])" ]; }
expect "after a restart the numbers begin anew" within 20 restarted
expect "  and it says why" matches "$(say "j['said']")" "rank 1 \(pid [0-9]+\) failed first: it exited with code 3.*\. Starting restart 1 of 1"
touch go1
ended_job
expect "  the second start succeeds" is "$code" 0
rm go go1

# ---- A crowd, and few descriptors
printf '#!/bin/bash\nulimit -n 64\nexec "%s" "$@"\n' "$CTRUN" >few && chmod +x few
CTRUN=./few start --nproc-per-node=2 --max-restarts=1 sh -c 'while [ ! -e go ]; do sleep 0.1; done; [ "$TORCHELASTIC_RESTART_COUNT" = 1 ]'
crowd
expect "with few descriptors a crowd does not keep others out" within 30 serves /api/job
touch go
ended_job
expect "  and the workers can be started again" is "$code $(grep -c 'restart 1 of 1' <<<"$err")" "0 1"
kill $crowd
rm go

# ---- Output
printf '%s\n' 'import os, sys' 'os.write(1, b"a\rb\r\n" + b"x" * 2000000 + b"\nno end")' >emit.py
python3 emit.py >plain
"$CTRUN" --status=0 --nproc-per-node=1 python3 emit.py >through 2>/dev/null
expect "what workers write is the same, byte by byte" cmp plain through

# ---- A program that asks all the time
start --nproc-per-node=1 sh -c 'while [ ! -e go ]; do sleep 0.2; date +%N; done'
last() { ask "$where" /api/job >/dev/null; say "ranks[0]['stdout'][-1]"; }
first=$(last)
moves() { [ "$(last)" != "$first" ]; }
expect "sees the job move" within 10 moves
touch go
ended_job
rm go

# ---- A browser: a straggler; ranks that have no figures and write nothing
if command -v chromium >/dev/null; then
    start --nproc-per-node=3 "$CT_BUILD/tests/e2e_slow" 30 60 2
    browse 'wait=document.querySelector("tr.row .straggler")' "say=$rows" 'say=document.querySelector(".note").innerText.replace(/\s+/g, " ")'
    expect "a straggler has a word, and is on top" is "$? $(sed -n 1p .page)" "0 1 PID ~ straggler; 0, 2 2 ranks > running"
    expect "  and a sentence" matches "$(sed -n 2p .page)" '^~ rank 1 makes the others wait \(a straggler\): in calls for [0-9]+ % of the time, each other rank for at least [0-9]+ %$'
    kill $job
    ended_job
    start --nproc-per-node=2 sleep 60
    browse 'wait=document.querySelectorAll("tr.row").length == 1' 'do=byId("open").click()' "say=$rows" "say=$boxes" \
        'wait=(byId("fold").checked && byId("fold").click(), document.querySelectorAll("tr.row").length == 2)' "say=$boxes" \
        'say=[4, 5, 6].map(i => document.querySelector("tr.row").children[i].innerText).join()'
    expect "ranks that write nothing have no box, and dashes for figures" is "$? $(tr '\n' ' ' <.page)" "0 0-1 2 ranks > running   –,–,– "
    kill $job
    ended_job
fi

# ---- A browser at the end of a job: who was at fault
if command -v chromium >/dev/null; then
    start --nproc-per-node=3 sh -c 'while [ ! -e go ]; do sleep 0.1; done; exec "$0" "$@"' "$CT_BUILD/tests/e2e_culprit" leave 1
    rm .page # its "running" is of the job before
    browse 'wait=job' 'say=byId("state").textContent' 'wait=job.state == "failed"' "say=$rows" 'say=document.querySelectorAll(".note")[1].innerText' &
    within 20 grep -q running .page
    touch go
    wait $!
    expect "a rank that left while others were in a call is on top of those that failed" matches "$? $(sed -n 2p .page)" '^0 1 PID < left; (0|2|0, 2)( PID| 2 ranks) x failed'
    expect "  with ctrun's sentence" matches "$(sed -n 3p .page)" '^x rank 1 \(pid [0-9]+\) left with exit code 0 while '
    ended_job
    rm go
fi

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
expect "nor is a short token taken" is "$code $err" "1 ctrun: CT_STATUS_TOKEN has 5 characters; it needs at least 16"

finish
