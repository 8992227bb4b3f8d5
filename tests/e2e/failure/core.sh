# SPDX-License-Identifier: Apache-2.0
# The core of a rank that crashed: what the ranks of the host share is not in it.
. "$CT_SOURCE/tests/e2e/lib.sh"
pattern=$(cat /proc/sys/kernel/core_pattern)
case $pattern in
*/* | \|*) echo "skipped: cores don't go to the current folder (core_pattern: $pattern)" && exit 77 ;;
esac
[ -z "${CT_SANITIZE:-}" ] || { echo "skipped: a sanitizer's own memory is large, and it turns cores off"; exit 77; }
ulimit -c unlimited 2>/dev/null || { echo "skipped: ulimit -c can't be raised"; exit 77; }

mkdir cores && cd cores || exit 1
run --nproc-per-node=8 --trace="$work/trace.json" "$CT_BUILD/tests/e2e_crashes"
core=$(find . -type f)
expect "the abort ends the job" is "$code" 134
expect "there is one core" is "$(wc -l <<<"$core")" 1
expect "of less than 20 MB" test "$(stat -c %s "$core")" -lt 20000000
finish
