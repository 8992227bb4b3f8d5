# SPDX-License-Identifier: Apache-2.0
# What is executed, and what is said when it can't be.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1

run nosuchprogram
expect "misspelt: 127" is "$code" 127
expect "says which, and not what PATH has" is "$err" "ctrun: cannot run nosuchprogram: No such file or directory: neither on PATH nor in the working directory"
expect "in one line" is "$(wc -l <<<"$err")" 1
run missing.py
expect "a script is looked for here" is "$code $err" "127 ctrun: cannot run ./missing.py: No such file or directory"
run --nproc-per-node=4 ./missing.py
expect "a missing script: 127, once" is "$code $(grep -c missing.py <<<"$err")" "127 1"
echo hello >text
run --no-python ./text
expect "not executable: 126" is "$code" 126
expect "says so" has "$err" "it is not executable"
printf '#!/bin/sh\necho hi\n' >forgotten
run --nproc-per-node=2 ./forgotten
expect "a shell script without its x bit: 126, and not Python" is "$code" 126
expect "names that cure" has "$err" "chmod +x"
cp /bin/true program && chmod -x program
run ./program
expect "a program without its x bit, too" is "$code" 126
printf '#!/usr/bin/env python3\nprint("hi")\n' >snake
PYTHON_EXEC=echo run ./snake
expect "a Python script without its x bit is for Python" is "$code $out" "0 -u ./snake"
printf 'name,value\n' >data.csv
run --nproc-per-node=2 ./data.csv
expect "a file that is neither program nor Python: 126" is "$code" 126
expect "in one sentence" is "$err" "ctrun: cannot run ./data.csv: it is neither executable (chmod +x) nor a *.py file (--run-path has Python run any file)"
PYTHON_EXEC=echo run --run-path ./data.csv
expect "which --run-path overrules" is "$code $out" "0 -u ./data.csv"
PYTHON_EXEC=echo run /etc/passwd
expect "nor is /etc/passwd Python" is "$code $out" "126 "
if [ "$(id -u)" = 0 ] && setpriv --reuid=64323 --clear-groups true 2>/dev/null; then
    mkdir -m 700 shut && printf '#!/bin/sh\n' >shut/x && chmod +x shut/x && chmod 755 "$work"
    cp "$CTRUN" ctrun && mkdir -m 777 for_all
    err=$(TMPDIR=$PWD/for_all setpriv --reuid=64323 --clear-groups ./ctrun --nproc-per-node=2 "$work/shut/x" 2>&1)
    code=$?
    expect "a program behind a folder that is shut: 126" is "$code" 126
    expect "for what it is" is "$err" "ctrun: cannot run $work/shut/x: Permission denied"
    err=$(PATH=$work/shut:$PATH TMPDIR=$PWD/for_all setpriv --reuid=64323 --clear-groups ./ctrun nosuchprogram 2>&1)
    code=$?
    expect "a misspelt name is 127, whatever is shut on PATH" is "$code" 127
fi
printf 'PK\003\004rest' >app && cp app app.pyz && printf '\r\r\r\n' >app.pyc && echo 'print("hi")' >train.py && ln -s train.py train
for file in app app.pyz app.pyc train; do
    PYTHON_EXEC=echo run --nproc-per-node=2 ./$file a
    expect "$file without its x bit is for Python" is "$code $out" "0 -u ./$file a
-u ./$file a"
done
for file in /dev/stdin /dev/fd/0; do # a here-document may be a file
    out=$(PYTHON_EXEC=cat "$CTRUN" $file <text 2>.err)
    code=$? err=$(cat .err)
    expect "so is $file, a regular file" is "$code $out" "0 hello"
done
# The x bit is there, and chmod +x can't help.
mkdir noexec
cat >on_noexec <<'END'
mount -t tmpfs -o noexec none noexec && cp tool snake noexec/ && chmod +x noexec/* && ! noexec/tool 2>/dev/null || { echo "skipped: no right to mount"; exit 77; }
PYTHON_EXEC=echo "$CTRUN" ./noexec/snake
exec "$CTRUN" --nproc-per-node=2 ./noexec/tool
END
printf '#!/bin/sh\n' >tool
out=$(CTRUN=$CTRUN unshare -m bash on_noexec 2>.err)
code=$? err=$(cat .err)
if [ $code != 77 ] && [ $code != 1 ]; then
    expect "a script on a file system without exec: 126" is "$code" 126
    expect "says why" is "$err" "ctrun: cannot run ./noexec/tool: Permission denied: it is not executable (its file system is mounted noexec)"
    expect "a Python script there is Python's" is "$out" "-u ./noexec/snake"
fi
mkfifo pipe
echo 'from a pipe' >pipe &
writer=$!
PYTHON_EXEC=cat run ./pipe
expect "a pipe is the interpreter's to read" is "$code $out" "0 from a pipe"
kill $writer 2>/dev/null # nobody opened it
run .
expect "a folder: 126" is "$code" 126
echo 'echo no shebang' >script && chmod +x script
run --nproc-per-node=2 ./script
expect "no #! line: 126" is "$code" 126
expect "names the cure" has "$err" "#!/bin/sh"
printf '#!/bin/sh\necho "here $1"\n' >tool && chmod +x tool
run tool x
expect "a name without slash is found in the working directory too" is "$out" "here x"
PYTHON_EXEC=echo run foo.py a
expect "a .py file by PYTHON_EXEC, with -u" is "$out" "-u foo.py a"
PYTHON_EXEC=echo run -m foo a
expect "a module" is "$out" "-u -m foo a"
touch mine.py && mkdir -p venv/bin && cp "$CTRUN" venv/bin/ && printf '#!/bin/sh\necho "ours $*"\n' >venv/bin/python && chmod +x venv/bin/python
out=$(venv/bin/ctrun mine.py 2>&1)
expect "a folder that only looks like one of a virtual environment is none" lacks "$out" ours
touch venv/pyvenv.cfg
out=$(venv/bin/ctrun mine.py a 2>&1)
expect "the python of the virtual environment that ctrun lies in" is "$out" "ours -u mine.py a"
out=$(PYTHON_EXEC=echo venv/bin/ctrun mine.py a 2>&1)
expect "but for PYTHON_EXEC" is "$out" "-u mine.py a"
PYTHON_EXEC=./nope run foo.py
expect "PYTHON_EXEC that is not there" is "$code" 127

if command -v python >/dev/null || command -v python3 >/dev/null; then
    echo 'import os, sys; sys.stdout.write("%s %s\n" % (os.environ["RANK"], sys.argv[1:]))' >prog.py
    run --nproc-per-node=2 prog.py --x
    expect "python runs it" is "$(sorted "$out")" $'0 [\'--x\']\n1 [\'--x\']'
    run -m prog y
    expect "and a module of this folder" is "$out" "0 ['y']"
fi
finish
