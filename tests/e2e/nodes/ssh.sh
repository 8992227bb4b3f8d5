# SPDX-License-Identifier: Apache-2.0
# ctrun --hosts: one job on several hosts by a real sshd on each.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/sshd.sh"
need_sshds 4
# A busy machine may have it say that it waits.
said() { grep -v "waiting [0-9]* s" .err; }
on_h0() { timeout 60 ${on[0]} "$CTRUN" "$@" >.out 2>.err; code=$?; out=$(cat .out); err=$(said); }
cat >show.sh <<'EOF'
echo "rank $RANK of $WORLD_SIZE: $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(hostname) in $PWD, $1, $MINE"
EOF

MINE='a b' on_h0 --hosts=h0:2,h1,h2:2 sh show.sh 'x $HOME "y"' </dev/null
expect "each host has its workers, in the order of the list; words, folder and variables are the user's" is "$code $(sorted "$out")" \
    "0 rank 0 of 5: 0 of 2 on h0 in $PWD, x \$HOME \"y\", a b
rank 1 of 5: 1 of 2 on h0 in $PWD, x \$HOME \"y\", a b
rank 2 of 5: 0 of 1 on h1 in $PWD, x \$HOME \"y\", a b
rank 3 of 5: 0 of 2 on h2 in $PWD, x \$HOME \"y\", a b
rank 4 of 5: 1 of 2 on h2 in $PWD, x \$HOME \"y\", a b"
expect "and nothing else is said" is "$err" ""
CT_HOSTS=h0,h1 on_h0 sh -c 'echo $RANK ${CT_HOSTS-none}' </dev/null
expect "CT_HOSTS is for this ctrun alone, also where the host is this one" is "$code $(sorted "$out")" "0 0 none
1 none"

if command -v python3 >/dev/null; then
    . "$CT_SOURCE/tests/e2e/page.sh"
    CT_STATUS_TOKEN=0123456789abcdef ${on[0]} "$CTRUN" --hosts=h1,h2 --status=0.0.0.0:8080 sh -c 'until [ -e go ]; do sleep 0.1; done' >.out 2>.err </dev/null &
    job=$!
    both() { at=${on[0]} ask 10.77.0.2/8080 '/api/job?token=0123456789abcdef' >/dev/null && [ "$(say "[(n['host'], len(n['ranks'])) for n in j['nodes']]")" = "[('h1', 1), ('h2', 1)]" ]; }
    expect "--status is served on the first host, of the ranks of all" within 30 both
    expect "  which says where" has "$(said)" "ctrun: the job's page: http://h1:8080/?token=0123456789abcdef"
    touch go
    wait $job
    expect "  and the job ends well" is "$?" 0
    rm go
fi

printf '# mine\nh1 slots=2\nroot@h2:1\n\nh3\n' >hosts.txt
printf '[ctrun]\nprefix = ${rank}@${hostname}:\n[env]\nMINE = of the file\n' >job.ini
on_h0 --hostfile=hosts.txt sh -c 'echo $MINE' </dev/null
expect "a host file; job.ini is read here and counts there" is "$code $(sorted "$out")" "0 0@h1:of the file
1@h1:of the file
2@h2:of the file
3@h3:of the file"
rm job.ini
on_h0 --hosts='h[1-2]' --nproc-per-node=2 sh -c 'echo $RANK' </dev/null
expect "a range, and so many workers on each" is "$code $(sorted "$out")" "0 0
1
2
3"
"$CT_BUILD/bin/hello" >/dev/null 2>&1 && on_h0 --hosts=h0:1,h1:2,h2:1 "$CT_BUILD/bin/hello" </dev/null
expect "libct's ranks meet, also from this host" is "$code $(grep -c 'of 4: the sum is 10' <<<"$out")" "0 4"

# ---- Input and output
seq 100000 >numbers
on_h0 --hosts=h1,h2 sh -c 'sum=$(cksum); [ $RANK = 0 ] && echo $sum || echo "rest: $sum"' <numbers
expect "rank 0 has the standard input, the others none" is "$code $(sorted "$out")" "0 $(cksum <numbers)
rest: $(cksum </dev/null)"
on_h0 --hosts=h1,h2 --stdin=all cksum <numbers
expect "--stdin=all: each has all of it" is "$code $out" "0 $(cksum <numbers)
$(cksum <numbers)"
on_h0 --hosts=h1:2,h2:2 --stdin=2 sh -c 'sum=$(cksum); [ $RANK = 2 ] && echo $sum || echo "rest: $sum"' < <(seq 500000)
expect "--stdin=2: only the host of that rank gets it" is "$code $(sort -u <<<"$out")" "0 $(seq 500000 | cksum)
rest: $(cksum </dev/null)"
on_h0 --hosts=h1,h2 --stdin=1 --nproc-per-node=cpu true </dev/null
expect "where that is not known here it is refused" is "$code $(grep -c -- '--stdin=1: with --nproc-per-node=cpu only each host knows how many workers it has; give rank 0, all or none' .err)" "2 1"
on_h0 --hosts=h1,h2 --stdin=none cksum <numbers
expect "--stdin=none: none has" is "$code $out" "0 $(cksum </dev/null)
$(cksum </dev/null)"
on_h0 --hosts=h1,h2 sh -c 'exec head -c 3' < <(yes)
expect "a rank that reads no further ends the job all the same" is "$code" 0
on_h0 --hosts=h1,h2,h3 seq 1 20000 </dev/null
expect "lines of several hosts are not mixed, and none is lost" is "$code $(sort -n .out | uniq -c | awk '{print $1}' | sort -u) $(wc -l <.out)" "0 3 60000"
out=
timeout 60 ${on[0]} "$CTRUN" --hosts=h1,h2 seq 1 300000 </dev/null 2>.err | (sleep 3; wc -l) >.slow
expect "a reader that is slow gets all" is "$(cat .slow) $(said)" "600000 "
on_h0 --hosts=h1,h2 sh -c 'printf "no end"; echo err >&2' </dev/null
expect "a last line without an end, and standard error" is "$code $out $(said | sort -u)" "0 no endno end err"

# ---- What goes wrong
on_h0 --hosts=h1:2,h2:2 sh -c '[ $RANK = 3 ] && exit 7; exec sleep 1000' </dev/null
expect "the exit code is that of the rank that failed first" is "$code" 7
expect "named once by its own host" is "$(grep -c 'rank 3 (pid [0-9]*, local rank 1) failed first: it exited with code 7' .err)" 1
expect "and once for the others" is "$(grep -c 'node 1 (h2): rank 3 (pid [0-9]*) exited with code 7' .err)" 1
on_h0 --hosts=h1,h9 touch ran </dev/null
expect "a host that does not resolve is named" is "$code $(grep -c 'host h9 (node 1): ssh exited with 255 before ctrun was started there' .err)" "1 1"
expect "and nothing ran" [ ! -e ran ]
on_h0 --hosts=h1,nobody@h2 touch ran </dev/null
expect "a host that refuses is named" is "$code $(grep -c 'host nobody@h2 (node 1): ssh exited with 255' .err) $(ls ran 2>&-)" "1 1 "
on_h0 --hosts=h1,h2 ./nothing </dev/null
expect "a program that is not there" is "$code" 127
mkdir -p tmp/only-here
${on[2]} mount -t tmpfs none "$work/tmp"
${on[0]} sh -c "cd tmp/only-here && exec '$CTRUN' --hosts=h1,h2 true" </dev/null 2>.err
expect "a folder that is not there" is "$? $(said)" "1 ctrun: host h2 (node 1): $work/tmp/only-here: No such file or directory"
printf 'Host far\n    HostName 10.77.0.2\n' >>"$work/ssh/config"
on_h0 --hosts=far,h2 touch ran </dev/null
expect "a line names a first host that is only an ssh alias, and the option that helps" is "$code $(grep -c 'the first host, far, has no address here: --master-addr=ADDRESS gives one by which all hosts reach it' .err)" "1 1"
expect "node 0's line has the port at which it listens" matches "$err" "the name far does not resolve: .*; the store listens on all interfaces, port [1-9]"
expect "and nothing ran" [ ! -e ran ]
on_h0 --hosts=far,h2 --master-addr=10.77.0.2 sh -c 'echo $RANK' </dev/null
expect "with that option the job runs" is "$code $(sorted "$out")" "0 0
1"
for words in --standalone --node-rank=1 --rdzv-backend=c10d --nnodes=3; do
    on_h0 --hosts=h1,h2 $words true </dev/null
    expect "$words is refused" is "$code $(grep -c -- "$words" .err)" "2 1"
done
on_h0 --hosts=localhost,h1 true </dev/null
expect "localhost is not where others find node 0" has "$code $err" "2 ctrun: --hosts: the first host is localhost"
on_h0 --hosts=h1,h2:2 --dry-run true </dev/null
expect "--dry-run prints a command for each host" is "$code $(grep -c 'ssh .* h[12] .*exec sh -c' .out)" "0 2"
on_h0 --hosts=h1,h2:x true </dev/null
expect "a slip of the fingers is named" has "$code $err" "2 ctrun: --hosts: 'h2:x': 'x' is not a number of workers"
printf '#!/bin/sh\necho welcome\nexec %s "$@"\n' "$ssh" >noisy.sh
chmod +x noisy.sh
on_h0 --hosts=h1,h2 --ssh="$PWD/noisy.sh" true </dev/null
expect "a shell that prints is quoted" matches "$code $err" "^1 ctrun: host (h1 .node 0.|h2 .node 1.): its shell printed 'welcome' before ctrun began"
on_h0 --hosts=h1,h2 --ssh=no-such-ssh true </dev/null
expect "a missing ssh is named" has "$code $err" "1 ctrun: no-such-ssh can't be run to start ctrun on h1: No such file or directory (--ssh=COMMAND names another command)"

# "CT>", type 1, node 5, number 0, size 2, and a start that is none for this version
answer=$(printf 'CT>\1\0\0\0\5\0\0\0\0\0\0\0\2x\0' | timeout 20 "$CTRUN" --hosts-node | tr -d '\0-\37'; echo "${PIPESTATUS[1]}")
expect "the ctrun of another version says which version it is, and ends" is "$answer" "CT>$("$CTRUN" --version | sed -n 's,^ctrun ,,p')0"

${on[3]} ip route add unreachable 10.77.0.2
${on[0]} "$CTRUN" --hosts=h1,h3 true >.out 2>.err </dev/null &
front=$!
expect "a host that does not reach the first one is named" within 30 grep -q 'ctrun: waiting [0-9]* s: 1/2 nodes are at h1 port [0-9]*; missing h3 (node 1)' .err
kill -TERM $front; wait $front
${on[3]} ip route del unreachable 10.77.0.2

# ---- Nothing stays
cat >stays.sh <<'EOF'
trap 'touch "$(hostname).$RANK.term"; exit 0' TERM INT
touch "$(hostname).$RANK"
sleep 1000 & wait
EOF
begin() {
    rm -f h?.?*
    ${on[0]} "$CTRUN" --shutdown-timeout=5 --hosts=h1:1,h2:1,h3:1 sh stays.sh >.out 2>.err </dev/null &
    front=$!
    within 30 test -e h1.0 -a -e h2.1 -a -e h3.2
}
all_stopped() { [ -e h1.0.term -a -e h2.1.term -a -e h3.2.term ]; }
# Other tests run beside this one: what is ours runs in our folder, or is a child of ours.
ours() { for p in $(pgrep -f "$1"); do [ "$(readlink "/proc/$p/cwd")" = "$PWD" ] && echo "$p"; done; }
none_left() { [ -z "$(ours 'sh stays[.]sh')$(ours hosts-node)" ]; }
begin
secrets=$(for p in $(ours 'sh stays[.]sh'); do tr '\0' '\n' <"/proc/$p/environ" | sed -n 's/^CT_STORE_SECRET=//p'; done | sort -u)
expect "each worker has the job's secret" matches "$secrets" '^[0-9a-f]{64}$'
expect "which stands in no command line" lacks "$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ')" "$secrets"
kill -INT $front; wait $front; code=$?
expect "SIGINT reaches all workers" all_stopped
expect "and counts" is "$code" 130
cat >told.sh <<'EOF'
trap 'echo "$RANK INT"; n=1' INT
trap 'echo "$RANK TERM"; n=1' TERM
touch "told.$RANK"
until [ "$n" ]; do sleep 0.05; done
sleep 3
echo "$RANK saved"
EOF
${on[0]} "$CTRUN" --hosts=h0,h1,h2,h3 sh told.sh >.out 2>.err </dev/null &
front=$!
within 30 test -e told.0 -a -e told.1 -a -e told.2 -a -e told.3
kill -INT $front; wait $front; code=$?
expect "Ctrl-C is SIGINT for the ranks of all hosts, and counts once: they have their time" is "$code $(sort .out | tr '\n' ' ')" \
    "130 0 INT 0 saved 1 INT 1 saved 2 INT 2 saved 3 INT 3 saved "
begin
kill -KILL $front; wait $front 2>/dev/null
expect "kill -9 of ctrun: all workers are told to stop" within 30 all_stopped
begin
kill -KILL "$(pgrep -P "$front" -f "ssh .* h2 exec sh" | head -1)"; wait $front; code=$?
expect "an ssh that dies is named, and the job ends as one that lost a node" is "$code $(grep -c 'host h2 (node 1): ssh was killed by signal 9' .err)" "1 1"
expect "by node 0, too" has "$(cat .err)" "node 1 (h2): it lost its connection to the ctrun of --hosts. ctrun stopped the workers here"
expect "on all hosts" within 30 all_stopped
expect "no process of the job is left" within 30 none_left
finish
