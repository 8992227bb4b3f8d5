# SPDX-License-Identifier: Apache-2.0
# lib.sh - a few words for tests of ctrun as a user meets it.
#   run WORDS...       ctrun WORDS; sets $code, $out, $err
#   expect NAME TEST   says NAME and fails the script at the end when TEST fails
# Each script runs in an empty folder of its own, removed at the end.
set -u
CTRUN=$CT_BUILD/bin/ctrun
for v in $(env | grep -o '^\(PET_\|TORCH\|CT_LOG\|CT_JOB\|PYTHON_EXEC\|SLURM\|OMP_NUM_THREADS\)[A-Z_]*'); do unset "$v"; done
work=$(mktemp -d)
export TMPDIR=$work/tmp
mkdir "$TMPDIR" && cd "$work" || exit 1
trap 'cd /; rm -rf "$work"' EXIT
failed=0

run() {
    timeout 120 "$CTRUN" "$@" >"$work/.out" 2>"$work/.err" </dev/null
    code=$?
    out=$(cat "$work/.out")
    err=$(cat "$work/.err")
}

expect() {
    local name=$1
    shift
    if "$@"; then
        echo "ok   $name"
    else
        echo "FAIL $name: $*"
        echo "     code ${code:-}, out: ${out:-}"
        echo "     err: ${err:-}"
        failed=1
    fi
}

is() { [ "$1" = "$2" ]; }
has() { [[ $1 == *"$2"* ]]; }
lacks() { [[ $1 != *"$2"* ]]; }
matches() { [[ $1 =~ $2 ]]; }
sorted() { sort <<<"$1"; }

# Waits until TEST holds, at most SECONDS.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -gt $end ] && return 1
        sleep 0.02
    done
}

alive() { kill -0 "$1" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
lines_in() { [ -f "$2" ] && [ "$(wc -l <"$2")" -ge "$1" ]; }
now_ms() { date +%s%3N; }

finish() { exit $failed; }
