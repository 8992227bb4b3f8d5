# SPDX-License-Identifier: Apache-2.0
# examples/stop: stopped and begun again, it ends where it would have ended.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
unset CT_DEADLINE CT_DEADLINE_MARGIN SLURM_JOB_END_TIME
stop=$CT_BUILD/bin/stop

run --nproc-per-node=3 "$stop" whole.txt
expect "it trains" is "$code" 0
expect "and finds the line" matches "$out" 'done at step 2000: y = 3\.0000 x \+ 1\.0000'

run --nproc-per-node=3 --deadline=3 "$stop" model.txt 2
expect "at the deadline it saves" matches "$out" 'saved at step [0-9]+:'
expect "and exits with 75" is "$code" 75
saved=$(cut -d' ' -f1 model.txt)
expect "some steps were done" test "$saved" -gt 0 -a "$saved" -lt 2000
run --nproc-per-node=3 "$stop" model.txt
expect "it goes on from there" has "$out" "from step $saved"
expect "and ends" is "$code" 0
expect "with the same bits as in one go" cmp whole.txt model.txt

# A rank that is told to stop stops all, and --restart begins them again.
rm -f model.txt
"$CTRUN" --nproc-per-node=3 --max-restarts=1 --restart=on-exit:75 sh -c 'echo $$$$ >pid.$RANK; exec "$0" "$@"' \
    "$stop" model.txt 2 >out 2>err </dev/null &
ctrun=$!
within 30 grep -q "from step" out
sleep 1
kill -TERM "$(cat pid.2)"
wait $ctrun
code=$? out=$(cat out) err=$(cat err)
saved=$(sed -n 's/saved at step \([0-9]*\):.*/\1/p' out)
expect "a rank that is told alone stops all, and they begin again" is "$code" 0
expect "having saved" test "${saved:-0}" -gt 0
expect "from the step where they stopped" has "$out" "from step $saved"
expect "and end with the same bits" cmp whole.txt model.txt
finish
