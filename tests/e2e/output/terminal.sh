# SPDX-License-Identifier: Apache-2.0
# On a terminal lines are whole and prefixed; elsewhere descriptors are inherited.
here=$CT_SOURCE/tests/e2e
. "$here/lib.sh"
script -qec true /dev/null >/dev/null 2>&1 </dev/null || { echo "skipped: no script(1), or no terminals here"; exit 77; }

# on_terminal COMMAND: what a terminal shows, without colours and carriage returns.
on_terminal() {
    NO_COLOR=1 script -qec "$1" /dev/null </dev/null | tr -d '\r'
    code=${PIPESTATUS[0]}
}

cat >talk <<'END'
#!/bin/sh
printf 'he'; sleep 0.1; printf "llo $RANK\n"; echo word $RANK >&2
END
chmod +x talk
err=
out=$(on_terminal "$CTRUN --nproc-per-node=2 ./talk" | grep -v OMP)
expect "prefixed, whole" is "$(sorted "$out")" $'[0] hello 0\n[0] word 0\n[1] hello 1\n[1] word 1'
out=$(on_terminal "$CTRUN --nproc-per-node=1 ./talk")
expect "no prefix for one worker" is "$out" $'hello 0\nword 0'
out=$(on_terminal "$CTRUN --nproc-per-node=2 echo piped | cat")
expect "none into a pipe" is "$(grep -c '^piped' <<<"$out")" 2
out=$(on_terminal "$CTRUN --nproc-per-node=2 sh -c 'test \$RANK = 1 || exec sleep 9; echo oh no >&2; exit 5'")
expect "last words" has "$out" $'last words of rank 1:\n    | oh no'
on_terminal "$CTRUN --nproc-per-node=2 sh -c 'exit 5'" >/dev/null
out=$(TERM=xterm script -qec "$CTRUN --nproc-per-node=2 sh -c 'echo x\$RANK'" /dev/null </dev/null)
expect "coloured" has "$out" $'\033[32m[0]\033[0m x0'
out=$(on_terminal "$CTRUN --nproc-per-node=2 sh -c 'printf \"\\r50%%\"; sleep 0.2; printf \"\\r100%%\\n\"'")
expect "progress bars pass at once" has "$out" "[0] 50%"

# Eight workers on a busy machine may be more than 50 ms apart, but not each time.
loading() { out=$(on_terminal "$CTRUN $1 --nproc-per-node=8 echo loading tokenizer" | grep loading); }
all_at_once() { loading ""; is "$out" "[0-7] loading tokenizer"; }
expect "the same line of all is shown once" within 30 all_at_once
loading --no-fold
expect "unless --no-fold" is "$(sorted "$out")" "$(for i in 0 1 2 3 4 5 6 7; do echo "[$i] loading tokenizer"; done)"
out=$(on_terminal "$CTRUN --nproc-per-node=2 sh -c 'echo a\$RANK; echo same; echo b\$RANK'")
expect "folding keeps each rank's order" is "$(grep -o '[ab]1\|same\|lost' <<<"$(grep '\[.*1\]' <<<"$out")" | tr '\n' ' ')" "a1 same b1 "
out=$(on_terminal "$CTRUN --nproc-per-node=2 --prefix='<\${rank} of \${role_name}> ' echo x" | grep '^<')
expect "--prefix is a template" is "$(sorted "$out")" $'<0 of default> x\n<1 of default> x'
out=$(on_terminal "$CTRUN --nproc-per-node=2 --prefix=none sh -c 'test -t 1 && echo tty'" | grep tty)
expect "--prefix=none leaves workers the terminal" is "$out" $'tty\ntty'
out=$(on_terminal "$CTRUN --nproc-per-node=4 --show=1,@last sh -c 'echo x\$RANK'" | grep x)
expect "--show by rank" is "$(sorted "$out")" $'[1] x1\n[3] x3'
out=$(on_terminal "$CTRUN --nproc-per-node=2 --show=1 sh -c 'test \$RANK = 0 || exec sleep 9; echo oh no >&2; exit 5'")
expect "last words of a rank that is not shown" has "$out" $'last words of rank 0:\n    | oh no'
out=$(on_terminal "$CTRUN --nproc-per-node=2 --tee=1 sh -c 'printf \"\\r50%%\"; sleep 0.2; printf \"\\r100%%\\n\"'")
expect "a bar that is tee'd stays a bar" has "$out" "[default0]:50%"
# Behind the shell's back nobody reads what is typed for the shell.
out=$(printf 'typed\n' | NO_COLOR=1 script -qec "bash -mc '$CTRUN sh -c \"readlink /proc/self/fd/0\" & wait'" /dev/null | tr -d '\r' | grep dev)
expect "in the background no terminal is read" is "$out" /dev/null
out=$(on_terminal "$CTRUN --nproc-per-node=2 readlink /proc/self/fd/0" | grep -c pts)
expect "rank 0 alone has the terminal" is "$out" 1
out=$(printf 'typed\n' | NO_COLOR=1 script -qec "$CTRUN --nproc-per-node=2 sh -c 'read -r x; echo \"\$RANK<\$x>\"'" /dev/null | tr -d '\r' | grep '<')
expect "and reads what is typed, in another session" is "$(sorted "$out")" $'[0] 0<typed>\n[1] 1<>'
out=$(on_terminal "$CTRUN --nproc-per-node=2 --no-fold sh -c '(: </dev/tty) 2>/dev/null && echo opened || echo none'" | grep -E 'opened|none')
expect "/dev/tty opens for none of them" is "$(sorted "$out")" $'[0] none\n[1] none'
run --nproc-per-node=2 echo plain
expect "no terminal, no prefix" is "$out" $'plain\nplain'

command -v python3 >/dev/null || { echo "skipped: keys, which need python3"; finish; }
PYTHONPATH=$here python3 - "$CTRUN" <<'END'
# The keys of a terminal reach ctrun; its workers are in another session.
import os, sys, time
from terminal import begin, close, end, expect, finish, until

os.environ["NO_COLOR"] = "1"
ctrun = sys.argv[1] + " --nproc-per-node=3 --no-fold "
rest = "while :; do sleep 0.05; done"


def worker(words):
    if os.path.exists("pids"):
        os.unlink("pids")
    return "sh -c 'echo $$$$ >>pids; " + words + "'"


def within(seconds, holds):
    deadline = time.time() + seconds
    while not holds():
        if time.time() > deadline:
            return False
        time.sleep(0.02)
    return True


def pids():
    return [int(pid) for pid in open("pids").read().split()] if os.path.exists("pids") else []


def state(pid):
    try:
        return open("/proc/%d/stat" % pid).read().rsplit(")")[1].split()[0]
    except OSError:
        return "Z"


def all_there():
    return within(20, lambda: len(pids()) == 3)


def all_gone():
    return within(20, lambda: all(state(pid) == "Z" for pid in pids()))


# A line from each: its handler is set.
pid, fd = begin(ctrun + worker('trap "echo interrupted; exit 0" INT; echo set; ' + rest) + "; echo code=$?")
until(fd, b"[0] set", b"[1] set", b"[2] set")
os.write(fd, b"\x03")
seen = until(fd, b"code=")
expect("Ctrl-C once: each worker gets SIGINT once", seen.count(b"interrupted") == 3 and b"code=130" in seen, seen)
expect("and none is left", all_gone())
end(pid, fd)

pid, fd = begin(ctrun + worker("trap : INT TERM; echo set; " + rest) + "; echo code=$?")
until(fd, b"[0] set", b"[1] set", b"[2] set")
os.write(fd, b"\x03")
until(fd, b"asked 3 workers")
os.write(fd, b"\x03")
seen = until(fd, b"code=")
expect("Ctrl-C twice kills those that do not obey", b"code=130" in seen and all_gone(), seen)
end(pid, fd)

pid, fd = begin(ctrun + worker("until [ -e go ]; do sleep 0.05; done; echo over") + "; echo code=$?")
all_there()
os.write(fd, b"\x1a")
seen = until(fd, b"Stopped")
expect("Ctrl-Z stops ctrun, not its workers", b"Stopped" in seen and all(state(p) not in "TZ" for p in pids()), seen)
if b"code=148" not in seen:
    until(fd, b"code=148")  # the shell goes on behind the stopped ctrun
os.write(fd, b"fg; echo fg=$?\n")
open("go", "w")
seen = until(fd, b"fg=0")
expect("fg goes on with it", b"fg=0" in seen and seen.count(b"] over") == 3, seen)
end(pid, fd)

pid, fd = begin(ctrun + worker(rest))
all_there()
close(pid, fd)
expect("a terminal that is closed ends the job", all_gone())

pid, fd = begin(ctrun + worker('read -r x; echo "<$x>"') + " & wait; echo code=$?")
seen = until(fd, b"code=")
expect("in the background no worker waits for input", seen.count(b"<>") == 3 and b"code=0" in seen, seen)
end(pid, fd)
finish()
END
[ $? = 0 ] || failed=1
finish
