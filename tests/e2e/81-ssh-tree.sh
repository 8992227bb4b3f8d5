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
children() { for p in $(pgrep -f 'ssh -F .* exec sh -c'); do awk '{print $4}' "/proc/$p/stat"; done; }
expect "no more than 32 ssh are ctrun's own" [ "$(children | grep -cx "$front")" -le 32 ]
expect "the others are those of hosts" [ "$(children | grep -vcx "$front")" -ge 7 ]
kill -KILL $front; wait $front 2>/dev/null
expect "kill -9 of ctrun: the hosts at the ends of the tree stop, too" within 60 all_stopped
finish
