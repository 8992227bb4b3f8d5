# SPDX-License-Identifier: Apache-2.0
# ctctl doctor: this host; three hosts by a real sshd on each, one of which is broken in five ways; one that is down.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/sshd.sh"
unset "${!SLURM_@}"
ctctl=$CT_BUILD/bin/ctctl
doctor() { timeout 60 ${on[0]:-} "$ctctl" doctor "$@" >.out 2>.err </dev/null; code=$?; out=$(cat .out); err=$(cat .err); }
# What depends on the machine that runs the tests, and is the same on all hosts: its clock, its quota, its memory.
others='clock:|cpus:|memory:|/dev/shm:|room:|pids:|port range:'
found() { grep -E '^(FAIL|warn)' .out | grep -vE "^warn ([^:]*, )?($others)" | sed 's/:.*//' | LC_ALL=C sort; }

doctor
expect "this host, alone" is "$code $(found)$err" "0 "
expect "has so many checks that are ok" matches "$out" '1 host: 0 FAIL, [0-9]+ warn, (9|1[0-9]) ok'
doctor --hosts=h0:x
expect "a slip of the fingers is named as ctrun names it" has "$code $err" "2 ctctl: --hosts: 'h0:x': 'x' is not a number of workers"
doctor h0
expect "hosts are an option's value" has "$code $err" "2 ctctl: too many arguments: h0"
TMPDIR=$'/none\nrow\t2\tx\ty\tz' doctor
expect "a tab or the end of a line in a name adds no finding" is "$code $(found)$err" "1 FAIL localhost, tmp"
expect "it is a space" has "$out" "FAIL localhost, tmp: /none row 2 x y z can't be written"
mkdir bin && cp "$ctctl" bin/
for silence in 'exec sleep 100' 'kill $$' ''; do
    printf '#!/bin/sh\n%s\n' "$silence" >bin/ctrun && chmod +x bin/ctrun
    ctctl=$PWD/bin/ctctl doctor
    expect "a ctrun that says nothing ('$silence')" has "$code $out" "1 FAIL localhost, ctrun: $PWD/bin/ctrun --version gives no answer within 5 s"
done

[ $failed = 0 ] || finish
need_sshds 3
for i in 0 1 2; do limit_host $i 200mbit; done # so that the network is slow, and not a processor that others use
doctor --hosts=h0,h1,h2
expect "three hosts that are well" is "$code $(found)$err" "0 "
figures() { sed -n "/^$1/,/^\$/p" .out | awk '/^  h[0-2] / { for (i = 2; i <= NF; i++) n += $i + 0 > 0 } END { print n }'; }
expect "each pair has its round trip" is "$(figures 'round trip in')" 6
expect "and its bandwidth" is "$(figures 'bandwidth in')" 6
expect "and the slowest pair" matches "$out" 'slowest: h[0-2] to h[0-2], '

# ---- One of them is broken in five ways
printf '#!/bin/sh\necho ctrun 0.0.7\n' >other-ctrun
chmod +x other-ctrun
printf '%s\n' '127.0.0.1 localhost' '127.0.1.1 h2' '10.77.0.1 h0' '10.77.0.2 h1' >h2.hosts
prlimit --pid "${sshd_pids[2]}" --nofile=64:64
${on[2]} mount --bind "$PWD/other-ctrun" "$CTRUN"
${on[2]} umount /etc/hosts && ${on[2]} mount --bind "$PWD/h2.hosts" /etc/hosts
${on[2]} mount -t tmpfs -o ro none "$work/tmp"
${on[2]} ip route add blackhole 10.77.0.2/32
TMPDIR=$work/tmp doctor --hosts=h0,h1,h2
expect "five faults of one host: each is found, and nothing else" is "$code $(found)" "1 FAIL h1, network
FAIL h2, ctrun
FAIL h2, network
FAIL h2, nofile
FAIL h2, tmp
warn h2, own name"
expect "few files" has "$out" "a process may open 64 files"
expect "with the remedy" has "$out" "LimitNOFILE=65536"
expect "another ctrun" has "$out" "$CTRUN --version says 'ctrun 0.0.7'"
expect "with the remedy" has "$out" "install the same build at the same path"
expect "a name of itself only" has "$out" "h2 resolves to 127.0.1.1 only"
expect "with the remedy" has "$out" "ctrun --iface=eth0"
expect "a folder that can't be written" has "$out" "$work/tmp can't be written: Read-only file system"
expect "with the remedy" has "$out" "export TMPDIR as a folder that is"
expect "a route that swallows packets" matches "$out" "FAIL h2, network: it does not reach h1: .*10.77.0.2"
expect "in the other direction, too" matches "$out" "FAIL h1, network: it does not reach h2: .*10.77.0.3"
expect "with the remedy" has "$out" "ip route get"
expect "in the matrix" [ "$(grep -cE '^  h[12] .*FAIL' .out)" = 4 ]

# ---- Networks that carry something
${on[2]} ip route del blackhole 10.77.0.2/32
${on[2]} umount "$CTRUN"
limit_host 2 5mbit
# The switch drops what is larger than 600 bytes.  h1 does not know it; h0 and h2 do.
$at_switch ip link set h2 mtu 600
${on[1]} ip link set eth0 gso_max_segs 1 # so that packets are as large as on a wire
${on[0]} ip route add 10.77.0.3/32 dev eth0 mtu 576
${on[2]} ip route add 10.77.0.1/32 dev eth0 mtu 576
${on[2]} ip route add 10.77.0.2/32 dev eth0 mtu 576 advmss 1460
doctor --hosts=h0,h1,h2
expect "a slow host, and a way that swallows large packets" is "$code $(found)" "1 FAIL h1, network
FAIL h2, nofile
warn h2, bandwidth
warn h2, own name"
expect "the latter in a sentence of its own" has "$out" "FAIL h1, network: it does not reach h2: small packets pass, but 256 KiB do not: "
expect "with the remedy" has "$out" "the same MTU on all hosts"
expect "the former in one line" matches "$out" "warn h2, bandwidth: it sends and receives slowly; the usual bandwidth is [0-9.e-]+ GB/s"
expect "marked in the matrix" matches "$out" "  h2 +0.000[0-9]*! +0.000[0-9]*! +[.]"

# ---- One that is not there
doctor --hosts=h0,h9,h1
expect "a host that does not answer is named, and the others are measured" is "$code $(found) $(figures 'round trip in')" \
    "1 FAIL h9, host 2"
expect "with the remedy" has "$out" "must succeed here without a question: it needs a key, a known host"
doctor --hosts=h0,h9
expect "where no pair is left, there is no matrix without a figure" is "$code $(found) $(grep -cE 'round trip|bandwidth|^  h[0-9]' .out)" "1 FAIL h9, host 0"
doctor --json --hosts=h0,h9,h1
expect "the same for programs" is "$code $(python3 -c '
import json
d = json.load(open(".out"))
print(d["level"], [(f["host"], f["check"]) for f in d["findings"] if f["level"] == "FAIL"],
      [(p["from"], p["to"], p["level"], p["bytes_per_s"] > 0) for p in d["pairs"]], [h["answered"] for h in d["hosts"]])')" \
    "1 FAIL [('h9', 'host')] [('h0', 'h1', 'ok', True), ('h1', 'h0', 'ok', True)] [True, False, True]"
finish
