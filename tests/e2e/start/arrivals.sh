# SPDX-License-Identifier: Apache-2.0
# The rank that never comes is named after 5 s.  Arrivals are put into the store
# by hand, as libct's init does (ADD of "/ct/<generation>/arrived/<rank>").
. "$CT_SOURCE/tests/e2e/lib.sh"

cat >arrive <<'END'
#!/bin/bash
if [ $RANK = 2 ]; then until grep -q waiting .err; do sleep 0.05; done; sleep 3; exit 0; fi
key=/ct/$CT_GENERATION/arrived/$RANK
exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT
printf "\x00\xce\xf7\x85\x3c" >&3
printf "\x04\\x$(printf %x ${#key})\0\0\0\0\0\0\0$key\x01\0\0\0\0\0\0\0" >&3
[ "$(head -c 8 <&3 | od -An -tu8 | tr -d ' ')" = 1 ] || exit 9
until grep -q waiting .err; do sleep 0.05; done
END
chmod +x arrive
run --nproc-per-node=4 ./arrive
expect "arrivals are counted" is "$code" 0
expect "the missing rank is named" matches "$err" 'waiting ([5-9]|[1-5][0-9]) s: 3/4 ranks are in ct_init_process_group\(\); missing 2 \(pid [0-9]+ alive, not in init\)'
expect "once" is "$(grep -c waiting <<<"$err")" 1
run --nproc-per-node=2 sleep 7
expect "nothing is said of programs that do not use libct" lacks "$err" waiting
finish
