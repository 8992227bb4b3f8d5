# SPDX-License-Identifier: Apache-2.0
# What follows a failure: --on-failure goes on without the lost, --restart and its
# budget say when all begin again.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1

run --nproc-per-node=3 --on-failure=continue sh -c 'test $RANK = 1 && exit 7; until grep -q "the others continue" .err; do sleep 0.02; done; echo done $RANK'
expect "the others continue, and the job succeeds" is "$code $(sorted "$out" | tr '\n' ' ')" "0 done 0 done 2 "
expect "the loss is said" matches "$err" 'rank 1 \(pid [0-9]+\) exited with code 7; the others continue \(--on-failure=continue\)'
expect "and that the job succeeded without it" has "$err" "succeeded without 1 of its 3 workers"
run --nproc-per-node=2 --on-failure=continue sh -c 'kill -KILL $$$$'
expect "when nobody is left, the first loss is the code" is "$code" 137
run --nproc-per-node=4 --on-failure=continue:3 sh -c 'test $RANK = 0 && exit 5; test $RANK = 1 && { until grep -q "the others continue" .err; do sleep 0.02; done; exit 6; }; exec sleep 50'
expect "too few left: the job fails with the first loss" is "$code" 5
expect "which is named" matches "$err" 'rank 0 \(pid [0-9]+\) failed first: it exited with code 5'

# The death is posted where peers can read it: rank 0 waits for it there.
cat >reader.py <<'PY'
import os, socket, struct, sys, time
if os.environ["RANK"] == "1":
    time.sleep(0.2)
    sys.exit(9)
s = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
key = ("/ct/%s/dead/1" % os.environ["CT_GENERATION"]).encode()
blob = struct.pack("<Q", len(key)) + key
s.sendall(b"\0" + struct.pack("<I", 0x3C85F7CE) + b"\6" + struct.pack("<Q", 1) + blob)
assert s.recv(1) == b"\0"
s.sendall(b"\3" + blob)
size = struct.unpack("<Q", s.recv(8))[0]
print(s.recv(size).decode())
PY
if command -v python3 >/dev/null; then
    run --nproc-per-node=2 --on-failure=continue python3 reader.py
    expect "a death is posted in the store" matches "$code $out" '^0 rank 1 \(pid [0-9]+\) exited with code 9$'
fi

count='echo a$TORCHELASTIC_RESTART_COUNT;'
attempts() { tr '\n' ' ' <<<"$out"; }
run --max-restarts=2 --restart=on-exit:75 sh -c "$count exit 75"
expect "a cause on the list starts all again" is "$code $(attempts)" "75 a0 a1 a2 "
run --max-restarts=2 --restart=on-exit:75 sh -c "$count exit 1"
expect "one that is not does not" is "$code $(attempts)" "1 a0 "
run --max-restarts=1 --restart=on-signal sh -c "$count kill -SEGV \$\$\$\$"
expect "signals are causes" is "$code $(attempts)" "139 a0 a1 "
run --max-restarts=1 --restart=on-signal sh -c "$count exit 139"
expect "an exit code is no signal" is "$code $(attempts)" "139 a0 "
run --max-restarts=5 --restart=never-on:3,4 sh -c "$count test \$TORCHELASTIC_RESTART_COUNT = 1 && exit 4; exit 9"
expect "never-on forbids some" is "$code $(attempts)" "4 a0 a1 "
run --max-restarts=1/1h sh -c "$count exit 3"
expect "a budget for a time is used up within it" is "$code $(attempts)" "3 a0 a1 "
run --max-restarts=1/1s sh -c "$count test \$TORCHELASTIC_RESTART_COUNT = 3 && exit 0; sleep 1.1; exit 3"
expect "and is there again after it" is "$code $(attempts)" "0 a0 a1 a2 a3 "
finish
