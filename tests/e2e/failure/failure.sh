# SPDX-License-Identifier: Apache-2.0
# The first failure: its exit code, its rank, its cause; the others are stopped.
. "$CT_SOURCE/tests/e2e/lib.sh"

run --nproc-per-node=4 sh -c 'test $RANK = 1 && exit 7; exec sleep 20'
expect "exit 7 is 7" is "$code" 7
expect "names rank and cause" matches "$err" 'rank 1 \(pid [0-9]+\) failed first: it exited with code 7\. ctrun stopped ranks 0 and 2-3\.'
run --nproc-per-node=2 sh -c 'test $RANK = 1 && kill -SEGV $$$$; exec sleep 20'
expect "SIGSEGV is 139" is "$code" 139
expect "names it" matches "$err" 'rank 1 .* was killed by SIGSEGV'
run sh -c 'exit 3'
expect "one worker" is "$code" 3
run --nproc-per-node=2 sh -c 'test $RANK = 1 && exit 0; sleep 0.3; echo late'
expect "an early exit 0 stops nobody" is "$code $out" "0 late"

run --nproc-per-node=2 --shutdown-timeout=1 sh -c 'test $RANK = 1 && { until test -e deaf; do sleep 0.02; done; exit 9; }; trap "" TERM; : >deaf; while :; do sleep 0.1; done'
expect "a worker that ignores SIGTERM is killed after the grace" is "$code" 9
expect "and the report says so" has "$err" "ctrun killed rank 0, which did not stop when asked."

run --max-restarts 2 sh -c 'echo a$TORCHELASTIC_RESTART_COUNT $CT_GENERATION; test $TORCHELASTIC_RESTART_COUNT = 2'
expect "restarts until success" is "$code $(cut -c1-2 <<<"$out" | tr '\n' ' ')" "0 a0 a1 a2 "
expect "each in a generation of its own" is "$(cut -d' ' -f2 <<<"$out" | sort -u | wc -l)" 3
run --max-restarts 1 sh -c 'exit 3'
expect "restarts used up" is "$code" 3

# A leader that ended leaves a child: it goes with the job.
run --nproc-per-node=2 sh -c 'sleep 1000 & echo $! >>pids'
expect "success with children left" is "$code" 0
for pid in $(cat pids); do expect "child $pid is gone" eval "! alive $pid"; done
expect "TMPDIR is empty" is "$(ls "$TMPDIR")" ""

# A PID 1 that reaps nobody, as in many containers: what is dead is waited for once, not
# once for each of 32 workers (6.4 s).  The time counts from the last worker's end.
cat >never_reaps.py <<'END'
import ctypes, os, subprocess, sys, time
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER
assert subprocess.run(sys.argv[1:]).returncode == 0
print("soon" if time.time() - os.stat("ends").st_mtime < 5 else "late")
END
if command -v python3 >/dev/null; then
    out=$(timeout 120 python3 never_reaps.py "$CTRUN" --nproc-per-node=32 sh -c 'sleep 1000 & echo >>ends; exit 0' 2>&1 </dev/null)
    expect "zombies that nobody reaps don't hold up the end" is "$(tail -n 1 <<<"$out")" soon
fi
finish
