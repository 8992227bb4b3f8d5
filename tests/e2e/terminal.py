# SPDX-License-Identifier: Apache-2.0
# terminal.py - a new terminal, on which a small shell runs ctrun as a job.  Tests import it from the
# folder of $0.
import os
import pty
import select
import signal
import sys
import time

failed = 0


def expect(name, holds, seen=""):
    global failed
    print(("ok   " if holds else "FAIL ") + name + ("" if holds else ": " + repr(seen)))
    failed |= not holds


def finish():
    sys.exit(failed)


def until(fd, *words):
    """Reads until all words were seen, at most 20 s."""
    seen = b""
    end = time.time() + 20
    while time.time() < end and not all(w in seen for w in words):
        if select.select([fd], [], [], 0.1)[0]:
            try:
                more = os.read(fd, 4096)
            except OSError:
                break
            if not more:
                break
            seen += more
    return seen


def begin(command):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "--norc", "-i"])
    os.write(fd, b"PS1='' PS2=''; stty -echo; set +o history; echo re''ady\n")
    until(fd, b"ready")
    os.write(fd, command.encode() + b"\n")
    return pid, fd


def end(pid, fd):
    os.write(fd, b"\nexit\n")
    until(fd, b"exit")
    close(pid, fd)


def close(pid, fd):
    os.close(fd)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
