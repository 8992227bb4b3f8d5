# SPDX-License-Identifier: Apache-2.0
# On a terminal lines are whole and prefixed; elsewhere descriptors are inherited.
. "$(dirname "$0")/lib.sh"
script -qec true /dev/null >/dev/null 2>&1 </dev/null || exit 77 # no script, or no terminals here

# on_terminal COMMAND: what a terminal shows, without colours and carriage returns.
on_terminal() {
    NO_COLOR=1 script -qec "$1" /dev/null </dev/null | tr -d '\r'
    code=${PIPESTATUS[0]}
}

cat >talk <<'END'
#!/bin/sh
printf 'he'; sleep 0.1; printf 'llo\n'; echo word >&2
END
chmod +x talk
err=
out=$(on_terminal "$CTRUN --nproc-per-node=2 ./talk" | grep -v OMP)
expect "prefixed, whole" is "$(sorted "$out")" $'[0] hello\n[0] word\n[1] hello\n[1] word'
out=$(on_terminal "$CTRUN --nproc-per-node=1 ./talk")
expect "no prefix for one worker" is "$out" $'hello\nword'
out=$(on_terminal "$CTRUN --nproc-per-node=2 echo piped | cat")
expect "none into a pipe" is "$(grep -c '^piped' <<<"$out")" 2
out=$(on_terminal "$CTRUN --nproc-per-node=2 sh -c 'test \$RANK = 1 || exec sleep 9; echo oh no >&2; exit 5'")
expect "last words" has "$out" $'last words of rank 1:\n    | oh no'
on_terminal "$CTRUN --nproc-per-node=2 sh -c 'exit 5'" >/dev/null
out=$(TERM=xterm script -qec "$CTRUN --nproc-per-node=2 echo x" /dev/null </dev/null)
expect "coloured" has "$out" $'\033[31m[0]\033[0m x'
out=$(on_terminal "$CTRUN --nproc-per-node=2 sh -c 'printf \"\\r50%%\"; sleep 0.2; printf \"\\r100%%\\n\"'")
expect "progress bars pass at once" has "$out" "[0] 50%"
run --nproc-per-node=2 echo plain
expect "no terminal, no prefix" is "$out" $'plain\nplain'
finish
