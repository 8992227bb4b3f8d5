# SPDX-License-Identifier: Apache-2.0
# On a terminal lines are whole and prefixed; elsewhere descriptors are inherited.
. "$(dirname "$0")/lib.sh"
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
expect "and reads what is typed, in a session of its own" is "$(sorted "$out")" $'[0] 0<typed>\n[1] 1<>'
run --nproc-per-node=2 echo plain
expect "no terminal, no prefix" is "$out" $'plain\nplain'
finish
