# SPDX-License-Identifier: Apache-2.0
# One of 8 workers is killed from outside at a random moment.  Half of the others
# notice its death as fast as a program can and fail by themselves; half obey ctrun with
# an exit code of 1.  The report always names the one that was killed.
. "$CT_SOURCE/tests/e2e/lib.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }

cat >worker.py <<'END'
import os, select, signal, sys
rank = int(os.environ["RANK"])
# Its death shows as an end of file to those who read here.
own = os.open("fifo.%d" % rank, os.O_RDWR)
others = select.poll()
if rank % 2:
    for r in range(8):
        if r != rank:
            others.register(os.open("fifo.%d" % r, os.O_RDONLY | os.O_NONBLOCK), 0)
else:
    # Descriptors to close after the FIFO: it dies slowly, and those who notice are
    # dead before it is.
    held = [os.pipe() for i in range(400)]
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
with open("pid.%d" % rank, "w") as f:
    f.write("%d\n" % os.getpid())
# One that is not there yet has no end of file: look when all are.
while rank % 2 and len([f for f in os.listdir() if f.startswith("pid.")]) < 8:
    select.select([], [], [], 0.002)
while rank % 2 and not any(what & select.POLLHUP for _, what in others.poll()):
    pass
os._exit(3) if rank % 2 else [signal.pause() for _ in iter(int, 1)]
END
for r in 0 1 2 3 4 5 6 7; do mkfifo fifo.$r; done
all_there() { [ "$(cat pid.[0-7] 2>/dev/null | wc -l)" = 8 ]; }

wrong=0
for ((n = 1; n <= ${CT_RUNS:-20}; n++)); do
    rm -f pid.*
    timeout 120 "$CTRUN" --nproc-per-node=8 worker.py 2>err &
    job=$!
    within 30 all_there || break
    victim=$((RANDOM % 8))
    sleep "0.$(printf %03d $((RANDOM % 300)))"
    kill -9 "$(cat pid.$victim)"
    wait $job
    code=$?
    err=$(cat err)
    [[ $code = 137 && $err =~ "rank $victim (pid $(cat pid.$victim)) failed first: it was killed by SIGKILL." &&
       $err =~ "cause     : SIGKILL, not sent by ctrun" ]] && continue
    wrong=$((wrong + 1))
    echo "run $n, victim $victim, code $code: $(grep -a 'failed first' err)"
done
expect "all started in each run" is "$((n - 1))" "${CT_RUNS:-20}"
expect "the victim is named every time" is "$wrong" 0
expect "TMPDIR is empty" is "$(ls "$TMPDIR")" ""
finish
