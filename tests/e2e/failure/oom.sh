# SPDX-License-Identifier: Apache-2.0
# Out of memory in a real memory cgroup: needs a root that may make one.
. "$CT_SOURCE/tests/e2e/lib.sh"
for top in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    group=$top/ctrun_test_$$
    mkdir "$group" 2>/dev/null || continue
    for limit in memory.limit_in_bytes memory.max; do
        echo 67108864 2>/dev/null >"$group/$limit" && break 2
    done
    rmdir "$group"
    group=
done
[ -n "${group:-}" ] && [ -d "$group" ] || { echo "skipped: no memory cgroup of our own"; exit 77; }
trap 'cd /; rmdir "$group"; rm -rf "$work"' EXIT
for swap in memory.memsw.limit_in_bytes memory.swap.max; do # else it swaps, for a long time
    echo $([ $swap = memory.swap.max ] && echo 0 || echo 67108864) 2>/dev/null >"$group/$swap"
done

within_limit() { (echo "$BASHPID" >"$group/cgroup.procs" && run "$@"; echo "$code"; echo "$err") >said; code=$(head -n 1 said); err=$(tail -n +2 said); }
within_limit --nproc-per-node=2 --events=events sh -c 'test $RANK = 0 && exec sleep 60; x=$(tr "\0" x </dev/zero | head -c 300000000)'
expect "the code of a SIGKILL" is "$code" 137
expect "the kernel is named, and the limit" matches "$err" 'cause     : killed by the kernel: out of memory \(cgroup limit 64.0 MiB, peak 6[0-9.]+ MiB\)'
expect "rank 1 was it" matches "$err" 'rank 1 .*failed first: it was killed by SIGKILL'
expect "a program reads it, too" matches "$(grep '"cause":"itself"' events)" '"oom":true'
within_limit sh -c 'kill -9 $$$$'
expect "the next SIGKILL in that cgroup is no such kill" has "$err" "SIGKILL, not sent by ctrun"
finish
