# SPDX-License-Identifier: Apache-2.0
# --events: what happens as one JSON object a line; and what ctrun itself fails of, written as
# the parent's error.json.
. "$CT_SOURCE/tests/e2e/lib.sh"
events() { grep -o '^{"event":"[a-z_]*' e | cut -d'"' -f4 | tr '\n' ' '; }
of() { grep "^{\"event\":\"$1\"" e; }
line() { grep -qE -- "$2" <<<"$1"; }

run --events=e --rdzv-id=j --standalone --nproc-per-node=2 true 'a "b" \ c' $'\x01\xff'
expect "a success in six kinds" is "$code $(events | sed 's/worker_start worker_start worker_end worker_end/workers/')" "0 job_start round_begin workers job_end "
expect "argv, whatever is in it" has "$(of job_start)" '"argv":["true","a \"b\" \\ c","\u0001\ufffd"]'
expect "round" line "$(of round_begin)" '"generation":"[0-9a-f]+","restarts":0,"nodes":1,"world":2,"first_rank":0}$'
expect "an end" line "$(of worker_end | head -1)" '"code":0,"signal":null,"cause":"done","oom":false,"core":false,"detail":null,"error":null}$'
expect "the job's" line "$(of job_end)" '"code":0,"culprit":null,"fault":null}$'
if command -v python3 >/dev/null; then
    expect "each line is JSON" python3 -c 'import json; [json.loads(l) for l in open("e")]'
fi

rm e
CT_EVENTS=e run --max-restarts=1 --nproc-per-node=2 sh -c 'test $RANK = 1 || exec sleep 20
    test $TORCHELASTIC_RESTART_COUNT = 1 && kill -9 $$$$
    echo "{\"message\":\"boom\"}" >$TORCHELASTIC_ERROR_FILE; exit 7'
expect "a failure, a restart, another failure" is "$code $(events)" "137 job_start round_begin worker_start worker_start worker_end stop worker_end restart round_begin worker_start worker_start worker_end stop worker_end job_end "
expect "the cause" line "$(of worker_end | sed -n 1p)" '"rank":1,.*"code":7,"signal":null,"cause":"itself",.*"error":"boom"}$'
expect "who was stopped" line "$(of worker_end | sed -n 2p)" '"rank":0,.*"code":null,"signal":"SIGTERM","cause":"stopped"'
expect "the signal" line "$(of worker_end | sed -n 3p)" '"rank":1,.*"code":null,"signal":"SIGKILL","cause":"itself","oom":false,"core":false,"detail":"SIGKILL, not sent by ctrun"'
expect "the restart" line "$(of restart)" '"restarts":1,"max_restarts":1}$'
expect "why they were stopped" line "$(of stop | head -1)" '"signal":"SIGTERM","why":"rank 1 failed"}$'
expect "the job's end" line "$(of job_end)" '"code":137,"culprit":\{"rank":1,"pid":[0-9]+\},"fault":"rank 1 .*was killed by SIGKILL'

rm e
run --events=e ./nowhere
expect "a program that is not there was never begun" is "$code $(events)" "127 job_end "
run --events=/no/such/folder/e touch ran
expect "a file that can't be written" is "$code" 1
expect "is said" has "$err" "--events=/no/such/folder/e: No such file or directory"
mkfifo fifo
run --events=fifo touch ran
expect "nobody waits for the reader of a FIFO" has "$code $err" "1 ctrun: --events=fifo: no process reads that FIFO"
expect "and no worker was started" [ ! -e ran ]
run --events=/dev/full --nproc-per-node=3 echo x
expect "a full disk is no reason to stop" is "$code $(wc -l <<<"$out")" "0 3"
expect "and said once" is "$(grep -c 'events=/dev/full: No space left on device; events are lost, but the job continues' <<<"$err")" 1

# Two jobs, one file: every line stays whole.
rm -f e
for job in 1 2; do "$CTRUN" --events=e --nproc-per-node=20 true >/dev/null 2>&1 & done
wait
expect "lines are whole" is "$(grep -c '^{"event".*}$' e) $(grep -vc '^{"event".*}$' e)" "86 0"

run --event-log-handler=console true
expect "torchrun's events are not there, which is said" is "$code $err" "0 ctrun: --event-log-handler=console has no effect: --events=FILE writes what happens as JSON lines"
PET_EVENT_LOG_HANDLER=console run true
expect "of the variable, too" has "$err" "PET_EVENT_LOG_HANDLER=console has no effect"
run --event-log-handler=nope true
expect "an unknown handler" is "$code" 2

# What ctrun itself fails of goes to the parent as a structured record.
export TORCHELASTIC_ERROR_FILE=$work/parent.json
run --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 --rdzv-conf=join_timeout=1 true
expect "nodes that don't come" is "$code" 1
expect "are the parent's error" line "$(cat parent.json)" '^\{"message": \{"message": ".*RendezvousTimeoutError.*", "extraInfo": \{"py_callstack": ".*", "timestamp": "[0-9]+"\}\}\}$'
rm parent.json
run --nnodes=0 true
expect "a value that can't be" line "$code $(cat parent.json)" '^2 \{"message": \{"message": ".*nnodes'
rm parent.json
run ./nowhere
expect "a program that is not there" has "$(cat parent.json)" "cannot run ./nowhere: No such file or directory"
rm parent.json
finish
