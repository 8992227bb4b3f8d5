# SPDX-License-Identifier: Apache-2.0
# The report of a failure: torchrun's labelled lines, the cause in words, the errors that
# workers left in their error.json, and what is passed on to whoever started ctrun.
. "$CT_SOURCE/tests/e2e/lib.sh"
line() { grep -qE -- "$2" <<<"$1"; }
no_line() { ! line "$@"; }
before() { [[ $1 == *"$2"*"$3"* ]]; }
ulimit -S -c 0

run --nproc-per-node 2 --no-python sh -c 'test $RANK = 1 && exit 7; sleep 20'
expect "the exit code is the root cause's" is "$code" 7
expect "the title" line "$err" '^sh FAILED$'
expect "an exit code has a blank behind its pid" line "$err" '^  exitcode  : 7 \(pid: [0-9]+\) $'
expect "a signal has two in front of its name" line "$err" '^  exitcode  : -15 \(pid: [0-9]+\)  \(SIGTERM\)$'
expect "blocks are numbered" line "$err" '^\[1\]:$'
expect "ranks" line "$err" '^  rank      : 1 \(local_rank: 1\)$'
expect "times" line "$err" '^  time      : 20[0-9-]+_[0-9:]+$'
expect "the root cause comes first" before "$err" "exitcode  : 7" "exitcode  : -15"
expect "and the sentence before it" before "$err" " failed first: it exited with code 7. ctrun stopped rank 0." "Root Cause (first observed failure):"

run --no-python sh -c 'exit 255'
expect "nobody else" line "$err" '^  <NO_OTHER_FAILURES>$'
expect "255" is "$code" 255
run --no-python sh -c 'kill -SEGV $$$$'
expect "a signal is named" line "$err" 'exitcode  : -11 \(pid: [0-9]+\)  \(SIGSEGV\)$'
expect "in torchrun's words" line "$err" 'traceback : Signal 11 \(SIGSEGV\) received by PID [0-9]+$'
run --no-python sh -c 'kill -KILL $$$$'
expect "a SIGKILL that is not ours" line "$err" 'cause     : SIGKILL, not sent by ctrun$'
run --nproc-per-node=64 --shutdown-timeout=20 sh -c 'test $RANK = 40 && { sleep 0.5; exit 5; }; exec sleep 20'
expect "64 workers fit on one screen" [ "$(wc -l <<<"$err")" -lt 50 ]
expect "the rest is one line" line "$err" '^  and 60 more stopped by ctrun: ranks 3-39,41-63$'
run --max-restarts=1 sh -c 'kill -KILL $$$$'
expect "a failure before a restart is said, too" line "$err" '^ctrun: rank 0: SIGKILL, not sent by ctrun'
expect "its layout comes once" is "$(grep -c '^Root Cause' <<<"$err")" 1

# ---- error.json ----
say='printf "{\"message\":\"%s\",\"timestamp\":\"%s\"}"'
run --no-python sh -c "$say hello 100"' > $TORCHELASTIC_ERROR_FILE; exit 1'
expect "a flat error file" line "$err" 'traceback : hello$'
expect "its path" line "$err" 'error_file: /.*attempt_0/0/error.json$'
run --no-python sh -c 'echo junk > $TORCHELASTIC_ERROR_FILE; exit 1'
expect "a broken one is as good as none" line "$err" 'traceback : Failed to parse reply file: '
run --no-python sh -c 'echo junk > $TORCHELASTIC_ERROR_FILE; exit 0'
expect "and not looked at after success" is "$code $err" "0 "
# Rank 1 has written its error first, and is the second to exit.
run --nproc-per-node 2 --no-python sh -c "$say"' m$RANK $((200-100*RANK)) > $TORCHELASTIC_ERROR_FILE
    if test $RANK = 1; then sleep 0.02; else until test -s ${TORCHELASTIC_ERROR_FILE%0/error.json}1/error.json; do :; done; fi
    exit $((RANK+1))'
expect "the smaller timestamp is the root cause" before "$err" "Root Cause" "traceback : m1"
expect "and no other comes before it" lacks "${err%%traceback : m1*}" "traceback"
expect "the exit code is its own" is "$code" 2
run --nproc-per-node 2 --shutdown-timeout=1 --no-python sh -c "test \$RANK = 0 && { sleep 0.5; $say first 200 > \$TORCHELASTIC_ERROR_FILE; exit 3; }; trap '$say second 100 >\$TORCHELASTIC_ERROR_FILE; exit 1' TERM; while :; do sleep 0.05; done"
expect "whoever was asked to stop is no root cause, whatever it writes" is "$code" 3
run --no-python sh -c 'printf "{\"message\":\"a\\u001b]0;x\\u0007b\\u009bc\"}" > $TORCHELASTIC_ERROR_FILE; exit 1'
expect "what a terminal would obey is replaced" line "$err" 'traceback : a\?\]0;x\?b\?c$'
run --no-python sh -c 'head -c 3000000 /dev/zero | tr "\0" " " > $TORCHELASTIC_ERROR_FILE; exit 1'
expect "a huge one is not read" line "$err" 'Failed to parse reply file: it is larger than 1 MiB'
expect "TMPDIR is empty" is "$(ls "$TMPDIR")" ""


# Without jansson the file is shown as it is.
if unshare -m true 2>/dev/null; then
    hide() { for library in /lib/*/libjansson.so.4 /usr/lib/*/libjansson.so.4; do [ ! -e $library ] || mount --bind /dev/null $library; done; }
    export CTRUN
    err=$(unshare -m bash -c "$(declare -f hide); hide; "'"$CTRUN" sh -c "echo what happened >\$TORCHELASTIC_ERROR_FILE; exit 1"' 2>&1)
    expect "jansson is missing" line "$err" 'traceback : \(libjansson.so.4 is missing \(Debian: libjansson4\)'
    expect "and the error is shown" line "$err" '^what happened$'
fi

# ---- core files ----
if [ -z "${CT_SANITIZE:-}" ] && ulimit -S -c 100000 2>/dev/null && [ "$(cat /proc/sys/kernel/core_pattern)" = core ]; then
    run sh -c 'kill -SEGV $$$$'
    core=$(sed -n 's/^  cause     : core dumped: //p' <<<"$err")
    expect "the core is where the report says" [ -s "$core" ]
    rm -f "$core"
    ulimit -S -c 0
fi

# ---- short ----
run --nproc-per-node=4 --failure-report=short sh -c '[ $RANK = 2 ] && exit 7; exec sleep 100'
expect "a short report is a line" matches "$code $(grep -v OMP_NUM <<<"$err")" "^7 ctrun: rank 2 \(pid [0-9]+\) failed first: it exited with code 7\. ctrun stopped ranks 0-1 and 3\.$"
run --failure-report=short --no-python sh -c "$say"' m 1 > $TORCHELASTIC_ERROR_FILE; exit 4'
expect "and has the error, if there is one" has "$err" "ctrun: error of rank 0:"
run --failure-report=long true
expect "another word is wrong usage" has "$code $err" "2 ctrun: --failure-report: invalid choice: 'long' (choose from 'full', 'short')"
(unset OMP_NUM_THREADS; "$CTRUN" --nproc-per-node=2 --quiet true) 2>.err
expect "--quiet: no word if nothing is wrong" is "$? $(cat .err)" "0 "
(unset OMP_NUM_THREADS; "$CTRUN" --nproc-per-node=2 --quiet --failure-report=short false) 2>.err
expect "an error is said" matches "$? $(cat .err)" "^1 ctrun: rank [01] .* failed first: it exited with code 1"

# ---- upwards ----
export TORCHELASTIC_ERROR_FILE=$work/parent.json
run --no-python sh -c 'printf "{\"message\":{\"message\":\"x\",\"extraInfo\":{\"timestamp\":\"5\"}}}" > $TORCHELASTIC_ERROR_FILE; exit 4'
expect "a structured file goes to the parent with its exit code" has "$(cat parent.json)" '"errorCode": 4'
expect "and is shown" line "$err" 'traceback : x$'
rm parent.json
run --no-python sh -c 'exit 4'
expect "no file, nothing to pass on" [ ! -e parent.json ]
run --no-python true
expect "nor after success" [ ! -e parent.json ]
TORCHELASTIC_ERROR_FILE=/no/such/folder/file run --no-python sh -c "$say"' m 1 > $TORCHELASTIC_ERROR_FILE; exit 4'
expect "a parent's file that can't be written is said" has "$err" "cannot write TORCHELASTIC_ERROR_FILE=/no/such/folder/file"
expect "and changes nothing" is "$code" 4
unset TORCHELASTIC_ERROR_FILE
finish
