# SPDX-License-Identifier: Apache-2.0
# What a command prints has been written, or the command ends with 1 and says so.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1

# full PROGRAM WORDS...: its standard output is a full disk.
full() {
    timeout 60 "$@" >/dev/full 2>.err </dev/null
    code=$? out= err=$(cat .err)
    expect "${*##*/} >/dev/full" is "$code $err" "1 ${1##*/}: standard output: No space left on device"
    "$@" >.out 2>.err </dev/null
    expect "  and into a file it is there" [ -s .out ]
}
ctctl=$CT_BUILD/bin/ctctl

full "$CTRUN" --help
full "$CTRUN" --version
full "$CTRUN" --explain true
full "$CTRUN" --dry-run --nproc-per-node=2 true
for shell in bash zsh fish; do full "$CTRUN" --print-completion=$shell; full "$ctctl" --print-completion=$shell; done
full "$ctctl" --help
full "$ctctl" --version

"$CTRUN" --rdzv-id=full$$ --nproc-per-node=2 sh -c 'touch ready$RANK; exec sleep 100' 2>/dev/null &
job=$!
within 30 ls ready0 ready1 >/dev/null 2>&1
full "$ctctl" ps
full "$ctctl" ps --json
full "$ctctl" status full$$
full "$ctctl" status --json -v full$$
kill $job
wait $job

# One that is closed is no error: what was said was for nobody.
"$CTRUN" --version >&-
expect "standard output that is closed" is $? 0
finish
