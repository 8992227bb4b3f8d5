# SPDX-License-Identifier: Apache-2.0
# --detach: the job outlives what started it, and ctctl prints its output and exit code later.
. "$CT_SOURCE/tests/e2e/lib.sh"
CTCTL=$CT_BUILD/bin/ctctl
export XDG_STATE_HOME=$work/state HOME=$work

ctl() {
    timeout 60 "$CTCTL" "$@" >"$work/.out" 2>"$work/.err" </dev/null
    code=$?
    out=$(cat "$work/.out")
    err=$(cat "$work/.err")
}
kept() { ls "$XDG_STATE_HOME/ctrun/$(hostname)"; }

mkfifo go
run --detach --nproc-per-node=2 --rdzv-id=mine sh -c 'echo rank $RANK; read -r x <go; exit $((RANK * 7))'
job=$out
expect "it prints a pid, alone" matches "$out" '^[0-9]+$'
expect "and nothing else" is "$(grep -v OMP <<<"$err")" ""
expect "its exit code is 0" is $code 0
expect "that is the pid of ctrun" has "$(tr '\0' ' ' <"/proc/$job/cmdline")" "ctrun"
expect "in a session of another process" is "$(ps -o sid= -p "$job" | tr -d ' ')" "$(ps -o ppid= -p "$job" | tr -d ' ')"
both() { ctl logs mine; is "$(grep ^rank <<<"$out" | sort | tr '\n' ' ')" "rank 0 rank 1 "; }
expect "its output can be read by the run id" within 30 both
"$CTCTL" attach "$job" >attached &
reader=$!
expect "attach shows the output" within 30 lines_in 2 attached
kill -9 $reader
wait $reader 2>/dev/null
expect "the end of a reader is not the end of the job" alive "$job"
"$CTCTL" attach >attached 2>&1 &
reader=$!
exec 3<>go
printf '\n\n' >&3
wait $reader
attach_code=$?
exec 3<&-
timeout 60 "$CTRUN" --nproc-per-node=2 sh -c 'exit $((RANK * 7))' >/dev/null 2>&1
expect "attach ends with the job's exit code" is $attach_code $?
expect "and shows its report" has "$(<attached)" "exitcode  : 7"
ctl wait "$job"
expect "wait has the exit code later" is $code $attach_code
ctl logs "$job"
expect "logs has the output later" is "$(grep -c '^rank' <<<"$out")" 2
ctl logs --lines=1
expect "the last line alone" is "$(wc -l <<<"$out")" 1

run --detach ./missing
foreground=$("$CTRUN" ./missing 2>&1 >/dev/null)
expect "a program that does not start fails at once" is $code 127
expect "with the words of a job that is not detached" is "$err" "$foreground"
expect "prints no pid" is "$out" ""
expect "and leaves nothing" is "$(kept)" "$job"

run --detach sleep 100
job=$out
ctl kill "$job"
expect "kill ends the job" is $code 0
expect "before it returns" is "$(alive "$job"; echo $?)" 1
ctl wait "$job"
expect "with the code of SIGTERM" is $code 143
ctl kill 1234567
expect "a job that is not there is said" has "$err" "no job 1234567 runs here"

run --detach=64k sh -c 'for i in $(seq 1 100); do seq -s " " $i $((i + 900)); done'
job=$out
ctl wait "$job"
ctl logs "$job"
expect "the output has a bound" test "$(wc -c <"$work/.out")" -le 66000
expect "its last lines are kept" is "$(tail -n 1 <<<"$out")" "$(seq -s ' ' 100 1000)"
expect "and nothing before" test "$(wc -c <"$work/.out")" -gt 60000
expect "from a whole line on" is "$(head -n 1 <<<"$out" | wc -w)" 901
run --detach=1k true
expect "a bound that is too small is refused" is "$code $err" "2 ctrun: --detach=1k: it must be at least 64k"
SLURM_STEP_ID=0 run --detach --standalone true
expect "srun would end it" is "$code $err" "2 ctrun: --detach: srun ends step 0 with its ctrun; use sbatch instead"

# A terminal that goes away.
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    script -qec "$CTRUN --detach sh -c 'sleep 1; echo still here'" /dev/null </dev/null | tr -d '\r' >printed
    job=$(grep -o '^[0-9]*' printed)
    expect "a terminal gets a hint" has "$(<printed)" "ctctl attach $job"
    ctl wait "$job"
    ctl logs "$job"
    expect "a job outlives its terminal" has "$code $out" "0 still here"
fi

# The caller's state.
(trap '' CHLD; exec "$CTRUN" --detach sh -c 'exit 7') >caller
ctl wait "$(<caller)"
expect "an ignored SIGCHLD does not hide the exit code" is $code 7
"$CTRUN" --detach sleep 60 2>/dev/null | cat >caller &
pipe=$!
expect "the pid comes" within 30 lines_in 1 caller
wait $pipe # a pipe of the caller ends with the caller
expect "while the job runs" alive "$(<caller)"
"$CTCTL" kill "$(<caller)"

for i in $(seq 1 18); do run --detach true; "$CTCTL" wait "$out"; done
expect "the last 16 jobs are kept" is "$(kept | wc -l)" 16
run --detach --dry-run true
expect "--dry-run stays" has "$out" "true"
finish
