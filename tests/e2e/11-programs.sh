# SPDX-License-Identifier: Apache-2.0
# What is executed, and what is said when it can't be.
. "$(dirname "$0")/lib.sh"

run nosuchprogram
expect "misspelt: 127" is "$code" 127
expect "says which" has "$err" "cannot run nosuchprogram: No such file or directory"
expect "in one line" is "$(wc -l <<<"$err")" 1
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
