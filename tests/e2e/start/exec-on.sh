# SPDX-License-Identifier: Apache-2.0
# --exec-on: ranks that run under another command; one alone gets the terminal.
here=$CT_SOURCE/tests/e2e
. "$here/lib.sh"

run --nproc-per-node=3 --exec-on="1:env WRAPPED='a  b'" sh -c 'echo "$RANK:${WRAPPED:-}"'
expect "the named rank runs under the command" is "$(sorted "$out")" $'0:\n1:a  b\n2:'
if command -v python3 >/dev/null; then
    run --nproc-per-node=2 --exec-on='*:env A=1' -m nosuch.module
    expect "the program is found before, as without" has "$err" "No module named"
    echo 'import sys; print(sys.argv)' >args.py
    run --exec-on='0:env -u X' args.py '$local_rank'
    expect "Python and its arguments too" is "$out" "['args.py', '0']"
fi
run --nproc-per-node=2 --exec-on='@last:nosuch --args' sh -c 'echo ran'
expect "a command that is missing: 127, and nothing ran" is "$code $out" "127 "
expect "and it is said" has "$err" "cannot run nosuch: No such file or directory"
run --exec-on='0:/etc/passwd' true
expect "one that can't be executed: 126" is "$code" 126
run --nproc-per-node=2 --exec-on='5:env A=1' true
expect "a rank that is not there is said to be none" has "$err" "--exec-on=5:env A=1: the ranks are 0 to 1; none runs under env"
expect "and changes nothing" is "$code" 0
run --exec-on="0:gdb 'a" true
expect "an open quote is wrong usage" is "$code" 2

command -v python3 >/dev/null || { echo "skipped: terminals, which need python3"; finish; }
PYTHONPATH=$here python3 - "$CTRUN" <<'END'
import os, sys
from terminal import begin, end, expect, finish, until

ctrun = sys.argv[1]

# The command: a program that reads the terminal, survives Ctrl-C, and ends at a word.
open("debugger", "w").write("""#!/usr/bin/env python3
import os, select, signal, sys
signal.signal(signal.SIGINT, lambda *a: print("interrupted", flush=True))
print("terminal", os.tcgetpgrp(0) == os.getpgrp(), os.isatty(1), flush=True)
line = "\\n"
while line:
    # Python looks at a signal that came right before a read only behind it.
    while not select.select([0], [], [], 0.1)[0]:
        pass
    line = os.read(0, 1000).decode()
    print("read", line.strip(), flush=True)
    if line.strip() == "quit":
        sys.exit(7)
""")
os.chmod("debugger", 0o755)

pid, fd = begin(ctrun + " --nproc-per-node=2 --exec-on=1:./debugger sleep 60; echo code=$?")
seen = until(fd, b"terminal True True")
expect("one rank has the terminal", b"terminal True True" in seen, seen)
os.write(fd, b"hello\n")
seen = until(fd, b"read hello")
expect("it reads", b"read hello" in seen, seen)
os.write(fd, b"\x03")
seen = until(fd, b"interrupted")
expect("Ctrl-C is its own", b"interrupted" in seen and b"code=" not in seen, seen)
os.write(fd, b"\x1a")
seen = until(fd, b"Stopped")
expect("Ctrl-Z gives the shell its terminal", b"Stopped" in seen, seen)
os.write(fd, b"fg; echo code=$?\n")
until(fd, b"--exec-on")
os.write(fd, b"again\n")
seen = until(fd, b"read again")
expect("fg goes on with it", b"read again" in seen, seen)
os.write(fd, b"quit\n")
seen = until(fd, b"code=")
expect("its end is the job's", b"code=7" in seen, seen)
os.write(fd, b"echo she''ll\n")
seen = until(fd, b"shell")
expect("the shell has the terminal again", b"shell" in seen, seen)
end(pid, fd)

pid, fd = begin(ctrun + " --nproc-per-node=2 --exec-on='*:./debugger' true </dev/tty; echo code=$?")
seen = until(fd, b"terminal", b"code=")
expect("several ranks have none", b"terminal True" not in seen, seen)
os.write(fd, b"\x03")
until(fd, b"code=")
end(pid, fd)
finish()
END
[ $? = 0 ] || failed=1
finish
