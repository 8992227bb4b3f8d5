# SPDX-License-Identifier: Apache-2.0
# Beyond 32 hosts ctrun --hosts makes a tree: hosts start others.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/sshd.sh"
need_sshds 40
cat >stays.sh <<'EOF'
touch "up.$RANK"
trap 'touch "term.$RANK"; exit 0' TERM INT
sleep 1000 & wait
EOF
timeout 100 ${on[0]} "$CTRUN" --hosts='h[0-39]' sh -c 'echo $RANK $(hostname)' </dev/null >.out 2>.err
expect "all 40 hosts run their rank" is "$? $(sort -n .out) $(grep -v "waiting [0-9]* s" .err)" "0 $(for i in {0..39}; do echo "$i h$i"; done) "
all_up() { [ "$(ls up.* 2>/dev/null | wc -l)" = 40 ]; }
all_stopped() { [ "$(ls term.* 2>/dev/null | wc -l)" = 40 ]; }
${on[0]} "$CTRUN" --shutdown-timeout=10 --hosts='h[0-39]' sh stays.sh >.out 2>.err </dev/null &
front=$!
within 60 all_up
children() { for p in $(pgrep -f "ssh -F $work/ssh/config .* exec sh -c"); do awk '{print $4}' "/proc/$p/stat"; done; }
expect "31 ssh are ctrun's own" is "$(children | grep -cx "$front")" 31 # and one ctrun without, for this host
expect "the others are those of hosts" [ "$(children | grep -vcx "$front")" -ge 7 ]
kill -KILL $front; wait $front 2>/dev/null
expect "kill -9 of ctrun: the hosts at the ends of the tree stop, too" within 60 all_stopped
timeout 60 ${on[0]} "$CTRUN" --hosts='h[0-38],h99' touch ran </dev/null 2>.err # h99 is behind another
expect "one bad host of forty is named" is "$? $(grep -c 'ctrun: host h99 (node 39): ssh exited with 255 before ctrun was started there' .err) $(ls ran 2>/dev/null)" "1 1 "
expect "  and the other hosts, which it stopped, print no line each" [ "$(grep -c 'its ctrun was told to stop' .err)" -le 1 ]
printf '#!/bin/sh\nexec %s "$@"\n' "$ssh" >ours
chmod +x ours
timeout 60 ${on[0]} "$CTRUN" --ssh=./ours --hosts='h[0-39]' true </dev/null 2>.err # which is found in our folder only
expect "a host of the tree that can't start ssh: the job fails" is "$?" 1
expect "  and a host behind it is named" grep -q "ctrun: host h[0-9]* (node [0-9]*): the host before it in the tree can't start ssh" .err
finish
