# SPDX-License-Identifier: Apache-2.0
# --run-path, -m and --legacy-launch; --dry-run; --print-completion.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
python=$(command -v python || command -v python3) || { echo "skipped: no python3"; exit 77; }

cat >script <<'END'
import os, sys
# In one write: print() has several, and -u passes on each.
sys.stdout.write("%s %s %s\n" % (os.environ["LOCAL_RANK"], __name__, sys.argv[1:]))
sys.exit(int(os.environ.get("CODE", 0)))
END
run --run-path script a b
expect "--run-path runs a Python file of any name" is "$out" "0 __main__ ['a', 'b']"
run --run-path --no-python script
expect "and beats --no-python" is "$out" "0 __main__ []"
CODE=3 run --run-path script
expect "its exit code is ours" is "$code" 3
run --run-path missing
expect "a missing file: 127" is "$code" 127

mkdir pkg && cp script pkg/__main__.py
run -m pkg x
expect "-m runs a package, found in the working directory" is "$out" "0 __main__ ['x']"
run --nproc-per-node=2 --legacy-launch --run-path script q
expect "--legacy-launch tells the local rank first" is "$(sorted "$out")" "0 __main__ ['--local-rank=0', 'q']"$'\n'"1 __main__ ['--local-rank=1', 'q']"
run --legacy-launch -m pkg q
expect "to modules too" is "$out" "0 __main__ ['--local-rank=0', 'q']"
run --legacy-launch --use-env -m pkg q
expect "not with --use-env" is "$out" "0 __main__ ['q']"

# What --dry-run prints are commands: run by a shell, workers find the variables and words of a run.
cat >show <<'END'
#!/bin/sh
echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR $OMP_NUM_THREADS $*"
END
chmod +x show
# block N: that of the N-th worker, from its comment to the next one, as a user copies it.
block() { awk -v n="$1" '/^# rank / { at++ } at == n' <<<"$out"; }
run --nproc-per-node=2 ./show "it's" 'a  b' '$local_rank' '$$HOME'
ran=$(sorted "$out")
run --dry-run --nproc-per-node=2 ./show "it's" 'a  b' '$local_rank' '$$HOME'
expect "--dry-run ends with 0" is "$code" 0
expect "runs nothing" lacks "$out" "127.0.0.1 1 it"
expect "and prints a command for each worker, which does the same" is "$(sh <<<"$(block 1)")
$(sh <<<"$(block 2)")" "$ran"
expect "below its rank" is "$(grep '^# rank' <<<"$out")" "# rank 0 of 2, local rank 0, node 0 of 1
# rank 1 of 2, local rank 1, node 0 of 1"
expect "nothing else is in it than comments, variables and words" is "$(grep -vE '^(#.*|env \\|  [A-Z_]+=[^;&]* \\|  \./show [^;&]*|)$' <<<"$out")" ""
new_port
run --dry-run --nproc-per-node=3 --master-port=$port "$CT_BUILD/bin/hello"
started=()
for n in 1 2 3; do
    block $n >command.$n
    sh command.$n >said.$n 2>&1 &
    started+=($!)
done
wait "${started[@]}"
expect "started by hand, in a shell each, ranks find each other" is "$(sort said.[123])" "rank 0 of 3: the sum is 6
rank 1 of 3: the sum is 6
rank 2 of 3: the sum is 6"
run --dry-run --role=$'<new>;touch hostile\ntouch hostile;' true
expect "no word is taken for a command" is "$code $(sh <<<"$out"; find "$work" -name hostile)" "0 "
cp show a=b
run --dry-run ./a=b word
expect "nor a program's name for a variable" matches "$(sh <<<"$out")" "^0 0 1 1 0 127.0.0.1 .*word$"
CT_CONTROL=4:5:6 PMI_PORT=h:1 run --dry-run env
expect "what no worker inherits is not there" is "$(CT_CONTROL=4:5:6 PMI_PORT=h:1 sh <<<"$out" | grep -E '^(CT_CONTROL|PMI_PORT)=')" ""
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
run --dry-run --bind="$cpu" grep Cpus_allowed_list /proc/self/status
expect "the command binds a worker as a run does" is "$(sh <<<"$out")" $'Cpus_allowed_list:\t'"$cpu"
run --dry-run --nnodes=2 --node-rank=1 --master-addr=node0.invalid --master-port=29501 ./show
expect "nobody is looked up" is "$code" 0
expect "a node knows its ranks" has "$out" "# rank 1 of 2, local rank 0, node 1 of 2"
expect "and where they meet" matches "$out" "MASTER_ADDR=node0.invalid .*MASTER_PORT=29501 "
run --dry-run nosuchprogram
expect "a program that is missing: 127" is "$code" 127
run --dry-run --exec-on=0:nosuch ./show
expect "a command that is missing too" is "$code" 127
run --dry-run --exec-on='0:env A=1' ./show
expect "--exec-on is in it" matches "$out" "/env A=1 ./show"

run --print-completion bash
expect "--print-completion needs no program" is "$code" 0
complete_bash=$out
expect "bash takes it" has "$(bash -c 'source <(echo "$1"); complete -p ctrun' - "$out")" "_ctrun ctrun"
run --help
for option in $(grep -oE '^  (-., )?--[a-z-]+(, --[a-z-]+)?' <<<"$out" | grep -oE -e '--[a-z-]+'); do
    expect "$option is completed" has "$complete_bash" " $option "
done

# completed WORDS...: what bash offers for the last of them.
completed() {
    bash -c 'source <(echo "$1"); shift; COMP_WORDS=(ctrun "$@") COMP_CWORD=$#; _ctrun; echo "${COMPREPLY[*]}"' - "$complete_bash" "$@"
}
expect "names" is "$(completed --rdzv-b)" "--rdzv-backend"
expect "values" is "$(completed --rdzv-backend '')" "static c10d"
expect "values after =" is "$(completed --numa-binding = so)" "socket"
expect "values of the underscored spelling" is "$(completed --rdzv_backend s)" "static"
expect "the program's words are files" is "$(completed --nproc-per-node 2 ./show sc)" "script"
expect "files of an option" is "$(completed --job sc)" "script"

run --print-completion=tcsh
expect "another shell is wrong usage" is "$code" 2
expect "and the three are named" has "$err" "'tcsh' (choose from 'bash', 'zsh', 'fish')"
echo 'nonsense' >job.ini
run --print-completion zsh
expect "zsh, whatever lies here" is "$code" 0
rm job.ini
ctctl=$CT_BUILD/bin/ctctl
for shell in bash zsh fish; do
    "$CTRUN" --print-completion=$shell >ctrun.$shell
    "$ctctl" --print-completion=$shell >ctctl.$shell
done
expect "bash takes ctctl's" has "$(bash -c 'source ./ctctl.bash; complete -p ctctl')" "_ctctl ctctl"
# ctctl_completed WORDS...: what bash offers for the last of them.
ctctl_completed() {
    bash -c 'source ./ctctl.bash; COMP_WORDS=(ctctl "$@") COMP_CWORD=$#; _ctctl; echo "${COMPREPLY[*]}"' - "$@"
}
expect "its commands" is "$(ctctl_completed '')" "ps status top stack attach logs wait kill trace new doctor help"
expect "its options" is "$(ctctl_completed doctor --host)" "--hosts --hostfile"
expect "its commands behind an option, too" is "$(ctctl_completed --json st)" "status stack"
touch 'blank in.ini'
expect "a name with a blank is one" is "$(bash -c 'source ./ctctl.bash; COMP_WORDS=(ctctl trace merge bla) COMP_CWORD=3; _ctctl; printf "%s|" "${COMPREPLY[@]}"')" "blank in.ini|"
expect "the files of a command" is "$(ctctl_completed trace merge sc)" "script"
if command -v zsh >/dev/null; then
    for program in ctrun ctctl; do
        said=$(zsh -f -c "autoload -U compinit; compinit -u -D; source ./$program.zsh && echo fine" 2>&1)
        expect "zsh takes $program's" is "$said" fine
    done
fi
if command -v fish >/dev/null; then
    # fish_completed LINE: what fish offers, without the descriptions.
    fish_completed() { HOME=$work fish -c "source ./ctrun.fish; source ./ctctl.fish; complete -C '$1'" 2>&1 | cut -f1 | sort | tr '\n' ' '; }
    expect "fish: names" has "$(fish_completed 'ctrun --rdzv-b')" "--rdzv-backend"
    expect "  values" is "$(fish_completed 'ctrun --rdzv-backend=s')" "--rdzv-backend=static "
    expect "  the program's options are not ctrun's" lacks "$(fish_completed 'ctrun --nnodes 1 ./show --rdzv-b')" "--rdzv-backend"
    expect "  ctctl's commands" is "$(fish_completed 'ctctl st')" "stack status "
fi
finish
