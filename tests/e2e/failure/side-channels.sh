# SPDX-License-Identifier: Apache-2.0
# Timers that there are not, workers that hang in the kernel, the health check.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"

TORCHELASTIC_ENABLE_FILE_TIMER=1 run sh -c 'echo "<${TORCHELASTIC_TIMER_FILE-}>"'
expect "no FIFO for timers" is "$code $out" "0 <>"
expect "which is said" is "$err" "ctrun: TORCHELASTIC_ENABLE_FILE_TIMER=1 has no effect: ctrun kills no worker whose timer expired; --stall=TIME says which ranks hang"
TORCHELASTIC_ENABLE_FILE_TIMER=0 run true
expect "but not where it is off" is "$code $err" "0 "
"$CTRUN" sh -c 'echo >up; exec sleep 100' >/dev/null 2>&1 &
ctrun=$!
within 30 test -e up
kill -KILL $ctrun
wait $ctrun 2>/dev/null # "Killed", says bash
empty() { [ -z "$(ls "$TMPDIR")" ]; }
expect "a ctrun that is killed leaves no file" within 30 empty

# A process that waits for its vfork child is in state D.
cat >hang.py <<'END'
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
if os.environ["RANK"] == "1":
    open("up", "w").close()
    time.sleep(float(sys.argv[1]))
    if libc.syscall(58) == 0:  # vfork() of x86-64
        libc.usleep(60000000)
        libc._exit(0)
time.sleep(60)
END
python=$(command -v python3 || command -v python) || finish
if [ "$(uname -m)" = x86_64 ]; then
    export TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=0.5
    run --nproc-per-node=2 --max-restarts=3 --shutdown-timeout=1 hang.py 0
    expect "a worker that hangs in the kernel ends the job with 1" is "$code" 1
    expect "it is said, with torchrun's words" matches "$err" "rank 1 .*state D.* marking worker group UNHEALTHY"
    expect "no restart would help" lacks "$err" "restart 1 of"
    TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=30 run --nproc-per-node=2 sh -c 'sleep 0.5'
    expect "workers that do not hang are left alone" is "$code" 0
    unset TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT
fi

new_port
cat >probe.py <<'END'
import http.client, socket, sys, time

port = int(sys.argv[1])


def ask(method):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    c.request(method, "/health")
    r = c.getresponse()
    return r.status, r.read()


status, body = ask("GET")
print(status, abs(int(body) - time.time()) < 10, ask("HEAD"), ask("POST")[0])
idle = [socket.create_connection(("127.0.0.1", port), timeout=30) for i in range(20)]
idle[0].sendall(b"x" * 9000)
print("cut", b" 431 " in idle[0].recv(100))
print("closed", idle[16].recv(1) == b"")
for s in idle:
    s.close()
for i in range(100):
    try:
        print(ask("GET")[0])
        break
    except (OSError, http.client.HTTPException):
        time.sleep(0.05)
END
TORCHELASTIC_HEALTH_CHECK_PORT=$port run python3 probe.py "$port"
expect "the health check answers with the time" has "$out" "200 True (200, b'') 405"
expect "crowds and nonsense are turned away" has "$out" $'cut True\nclosed True\n200'
TORCHELASTIC_HEALTH_CHECK_PORT=junk run true
expect "a port that is none does not stop the job" is "$code" 0
expect "and is said" has "$err" "No health check server started"
finish
