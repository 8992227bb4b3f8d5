# SPDX-License-Identifier: Apache-2.0
# Where the workers' output goes: files, prefixes, filters, readers that are slow or gone.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
N="--no-python --nproc-per-node"
attempt() { echo "$1"/*/attempt_"${2:-0}"; } # attempt DIR N: that start's folder
here() { [ -e "$1" ]; }
gone() { ! [ -e "$1" ]; }
empty() { [ -z "$(ls "$1")" ]; }

# ---- Files, as under torchrun ------------------------------------------------
run --log-dir D --rdzv-backend c10d --rdzv-endpoint localhost:0 --rdzv-id JOB --tee 3 $N 2 sh -c 'echo out$RANK; echo err$RANK >&2'
expect "the tree of logs is torchrun's" matches "$(attempt D)" '^D/JOB_......../attempt_0$'
expect "each rank has a file for each stream" is "$(cat "$(attempt D)"/{0,1}/{stdout,stderr}.log)" $'out0\nerr0\nout1\nerr1'
expect "and the console both" is "$(sorted "$out")" $'[default0]:out0\n[default1]:out1'
expect "stderr too" has "$(sorted "$err")" $'[default0]:err0\n[default1]:err1'
expect "a folder that was named is not named again" lacks "$err" "output is in"
run --log-dir E --max-restarts 1 --redirects 1 $N 1 sh -c 'echo a$TORCHELASTIC_RESTART_COUNT; exit 3'
expect "every attempt keeps its files" is "$code $(cat E/*/attempt_*/0/stdout.log | tr '\n' ' ')" "3 a0 a1 "
run --log-dir F --tee 0:1 -r 1:3 $N 2 sh -c 'echo out$RANK; echo err$RANK >&2'
expect "tee and redirects are by rank: console" is "$out" "[default0]:out0"
expect "tee and redirects are by rank: stderr" has "$err" "err0"
expect "what is redirected is in its file only" lacks "$err$out" rr1
expect "tee and redirects are by rank: files" is "$(cd "$(attempt F)" && cat 0/stdout.log 1/stdout.log 1/stderr.log; ls 0)" $'out0\nout1\nerr1\nstdout.log'
run --tee 1 $N 1 sh -c 'printf abc; sleep 0.3; printf "def\n"; printf end'
expect "a line is whole, and the last one ends" is "$out" $'[default0]:abcdef\n[default0]:end'
run --log-dir G --tee 1 $N 1 printf '\377\376x\n'
expect "what is no UTF-8 is replaced here" is "$out" $'[default0]:\xef\xbf\xbd\xef\xbf\xbdx'
expect "and kept in the file" is "$(od -An -tx1 "$(attempt G)/0/stdout.log" | tr -d " ")" fffe780a
mkfifo lines
timeout 120 "$CTRUN" --tee 1 $N 1 sh -c 'for i in 1 2 3; do echo $i; while [ ! -e seen$i ]; do sleep 0.01; done; done' >lines 2>/dev/null &
while read -r line; do
    out+=" $line"
    touch "seen${line##*:}" # the worker goes on only when its line came through the pipe
done <lines
expect "lines come through a pipe one by one" has "$out" "[default0]:1 [default0]:2 [default0]:3"
wait $!
run --tee 1 $N 32 sh -c 'i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo "$RANK line $i of a thousand"; done'
wanted=$(for r in $(seq 0 31); do seq -f "[default$r]:$r line %g of a thousand" 1000; done | sort | md5sum)
expect "many writers: every line once, with its own prefix" is "$(sort .out | md5sum)" "$wanted"
expect "and each rank's in order" is "$(grep -F '[default7]:' .out | sort -t' ' -k3n -c && echo yes)" yes
run $N 1 --log-dir H --tee 3 --duplicate-stdout-filters 'pear,,' sh -c 'echo pear; echo pear, cut; echo pear, >&2'
expect "two commas are a comma" is "$(cat "$(attempt H)/filtered_stdout.log")" "[default0]:pear, cut"
run $N 2 --log-dir I --tee 1 --duplicate-stdout-filters '' sh -c 'echo x$RANK'
expect "an empty word is in every line" is "$(sort "$(attempt I)/filtered_stdout.log")" $'[default0]:x0\n[default1]:x1'
run $N 1 --log-dir J --duplicate-stderr-filters a sh -c 'echo a >&2'
expect "without --tee the filtered file is empty" is "$(wc -c <"$(attempt J)/filtered_stderr.log")" 0
expect "and the console has the line, and that the filter has none" is "$err" $'ctrun: --duplicate-stderr-filters=a has no effect: --tee has no stderr\na'
run $N 2 --log-dir K --tee 1 --local-ranks-filter 1 --duplicate-stdout-filters x sh -c 'echo x$RANK'
expect "who is not listed is not duplicated" is "$out$(cat "$(attempt K)/filtered_stdout.log")" "[default1]:x1[default1]:x1"
expect "but has its file" is "$(cat "$(attempt K)/0/stdout.log")" x0
run $N 4 --log-dir L --tee 1 --show 0,@last sh -c 'echo x$RANK'
expect "--show is for the console" is "$(sorted "$out")" $'[default0]:x0\n[default3]:x3'
expect "files get all" is "$(cat "$(attempt L)"/?/stdout.log)" $'x0\nx1\nx2\nx3'

# A node that joins makes the others begin again: not a restart, but a start with files of its own.
new_port
both="--nnodes=1:2 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:$port --rdzv-conf=last_call_timeout=1 --log-dir N -r 1"
timeout 120 "$CTRUN" $both --local-addr 127.0.0.2 $N 1 sh -c 'echo $WORLD_SIZE; touch of$WORLD_SIZE; [ $WORLD_SIZE = 2 ] || exec sleep 60' 2>/dev/null &
first=$!
within 30 here of1
timeout 120 "$CTRUN" $both --local-addr 127.0.0.3 $N 1 true 2>.err &
wait $! $first
expect "a start that is no restart keeps the older files" is "$(cat N/*/attempt_0/0/stdout.log N/*/attempt_1/0/stdout.log | sort | tr '\n' ' ')" "1 2 "

# ---- Where the folder is -----------------------------------------------------
run --tee 1 $N 1 echo x
place=${err##*the workers\' output is in }
expect "without --log-dir the end says where" is "$(cat "$place/attempt_0/0/stdout.log")" x
TMPDIR=/nowhere run $N 1 --tee 3 true
expect "where no folder can be made, the option that needs it is named, and the one that helps" is "$code $err" \
    "1 ctrun: cannot make a folder for logs in /nowhere: No such file or directory; --tee=3 needs one, and --log-dir=DIR says where"
rm -rf "$TMPDIR"/*
run $N 2 sh -c 'echo "{}" >$TORCHELASTIC_ERROR_FILE; [ -s $TORCHELASTIC_ERROR_FILE ] && echo written'
expect "error files can be written without any flag" is "$out" $'written\nwritten'
expect "and nothing stays" is "$(ls "$TMPDIR")" ""
"$CTRUN" --max-restarts 3 $N 1 sh -c 'echo "{}" >$TORCHELASTIC_ERROR_FILE; [ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 1; touch third; exec sleep 60' 2>/dev/null &
killed=$!
disown
within 30 here third
kill -9 $killed
expect "nor when ctrun is killed in its third attempt" within 30 empty "$TMPDIR"
run --log-dir M --rdzv-backend c10d --rdzv-endpoint localhost:0 --rdzv-id a/b $N 1 true
expect "a slash in the id is no folder" matches "$code $(echo M/*)" '^0 M/a%2Fb_........$'
run --log-dir rel/a/b $N 1 sh -c 'cd /; [ -d "$(dirname "$TORCHELASTIC_ERROR_FILE")" ]'
expect "parents are made, and the path given to workers is absolute" is "$code" 0
run --log-dir /dev/null --tee 3 -r 3 $N 1 sh -c 'echo out; echo "<$TORCHELASTIC_ERROR_FILE>" >&2'
expect "/dev/null: no files, no prefixes" is "$code $out $(tail -n1 <<<"$err")" "0 out <>"
expect "and that is said" is "$(grep -c "has no effect: --log-dir is /dev/null" <<<"$err")" 2
run --log-dir /dev/null --tee 1 --duplicate-stdout-filters a $N 1 touch started
expect "/dev/null: filters are refused" has "$code $err" "2 ctrun: --log-dir: /dev/null can't hold filtered_stdout.log or filtered_stderr.log; name a folder"
expect "with 2 and before a worker starts" gone started
run --log-dir "$CT_SOURCE/README.md" $N 1 touch started
expect "a file is no folder" has "$code $err" "1 ctrun: --log-dir: $CT_SOURCE/README.md is a file"
run --log-dir /proc/nowhere $N 1 touch started
expect "where none can be made" matches "$code $err" '^1 ctrun: .*/proc/nowhere: '
expect "no worker starts" gone started

# ---- Who reads ---------------------------------------------------------------
printf 'for rank 0' >input
timeout 120 "$CTRUN" $N 3 sh -c 'echo "$RANK<$(cat)>"' <input >.out 2>/dev/null
expect "rank 0 alone reads standard input" is "$(sort .out)" $'0<for rank 0>\n1<>\n2<>'
timeout 120 "$CTRUN" --stdin=2 $N 3 sh -c 'echo "$RANK<$(cat)>"' <input >.out 2>/dev/null
expect "or another one" is "$(sort .out)" $'0<>\n1<>\n2<for rank 0>'
timeout 120 "$CTRUN" --stdin=none $N 2 readlink /proc/self/fd/0 <input >.out 2>/dev/null
expect "or none" is "$(cat .out)" $'/dev/null\n/dev/null'
timeout 120 "$CTRUN" --stdin=all $N 2 readlink /proc/self/fd/0 <input >.out 2>/dev/null
expect "or all" is "$(cat .out)" "$work/input"$'\n'"$work/input"
(echo a; echo b) | timeout 120 "$CTRUN" $N 1 sh -c 'read x; echo $x' >.out 2>/dev/null
expect "a pipe is passed on, not copied" is "$(cat .out)" a

# ---- Prefixes into pipes -----------------------------------------------------
run --prefix='${rank}|' $N 2 echo x
expect "a prefix that was asked for" is "$(sorted "$out")" $'0|x\n1|x'
run --prefix=none --tee 1 $N 1 echo x
expect "--prefix=none is for --tee too" is "$out" x
timeout 120 "$CTRUN" --prefix='>' $N 1 yes 2>.err | head -1 >.out
expect "who writes to nobody dies of SIGPIPE, as without us" is "${PIPESTATUS[0]} $(cat .out)" "141 >y"
run --log-dir P -r 2 $N 2 sh -c '[ $RANK = 1 ] || exec sleep 60; echo last breath >&2; exit 5'
expect "the last words of a redirected stderr are in the report" has "$code $err" $'rank 1:\n    | last breath'
run --nproc-per-node=2 --show=@last sh -c 'test $RANK = 0 || exec sleep 9; printf "\r10%%\r20%%\r   \rit broke\n" >&2; exit 5'
expect "of a line that was written over its end is among them" has "$code $err" $'rank 0:\n    | it broke'

# ---- A reader that is slow ---------------------------------------------------
# The pipe, our queue and the workers' pipes are full, and nobody reads until the
# worker that waits for that has failed and ctrun has killed the others.
mkfifo slow
size() { stat -c %s "$(attempt $1)/0/stdout.log" 2>/dev/null || echo 0; }
stuck() { local now; now=$(size $1) && [ "$now" -gt 100000 ] && sleep 0.3 && [ "$now" = "$(size $1)" ]; }
dead() { ! alive "$(cat pid0)"; }
holds_slow() { exec 3<>slow; }
holds_slow # it has a reader, which reads nothing
"$CTRUN" --tee 3 --log-dir S $N 2 sh -c 'echo $$$$ >pid$RANK; [ $RANK = 1 ] || exec yes
    until [ -e fail ]; do sleep 0.01; done; echo last words >&2; exit 7' >slow 2>&1 3<&- &
launcher=$!
expect "a reader that stands still makes the worker wait" within 30 stuck S
expect "meanwhile nothing has ended" alive "$(cat pid0)"
touch fail
expect "a death is noticed all the same" within 30 dead
expect "ctrun waits for its reader" alive $launcher
cat slow >.out 3<&- & # now somebody reads
cat=$!
within 30 lines_in 1 .out
exec 3<&-
wait $launcher
code=$?
wait $cat
out= err=
expect "and its exit code is the worker's" is "$code" 7
expect "nothing of what was said is lost" is "$(grep -c '^\[default0\]:y$' .out)" "$(wc -l <"$(attempt S)/0/stdout.log")"
expect "the report comes last" has "$(tail -40 .out)" "rank 1 (pid"
expect "with the last words" has "$(tail -40 .out)" "    | last words"

# Nobody ever reads: told to stop, ctrun does not wait for its grace.
holds_slow
"$CTRUN" --tee 1 --log-dir T --shutdown-timeout 120 $N 1 sh -c 'echo $$$$ >pid0; exec yes' >slow 2>.err 3<&- &
launcher=$!
within 30 stuck T
begun=$(now_ms)
kill $launcher
expect "a signal is obeyed" within 30 dead
wait $launcher
expect "well before the patience of 60 s" [ $(($(now_ms) - begun)) -lt 30000 ]
exec 3<&-
err=$(cat .err)
expect "what nobody read is counted" matches "$err" 'standard output was not read: [0-9]+ bytes'

# ---- A full disk -------------------------------------------------------------
mkdir small
if mount -t tmpfs -o size=64k none small 2>/dev/null; then
    run --log-dir small --tee 1 $N 1 sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "line $i"; done'
    expect "a full disk is said once" is "$(grep -c 'stdout.log: No space left' .err)" 1
    expect "with the file's name" has "$err" "/attempt_0/0/stdout.log"
    expect "the worker goes on, and so does the console" is "$code $(wc -l <.out) $(tail -1 .out)" "0 20000 [default0]:line 20000"
    rm -rf small/*
    run --log-dir small --redirects 1 $N 1 sh -c 'head -c 100000 /dev/zero; echo $? >&2'
    expect "a redirected worker meets it itself" is "$code ${err##*$'\n'}" "0 1"
    umount small
else
    echo "skip a full disk: no right to mount"
fi
finish
