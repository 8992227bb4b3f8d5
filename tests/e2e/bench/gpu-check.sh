# SPDX-License-Identifier: Apache-2.0
# scripts/gpu-check on tests/fake's driver: its stages follow one another, each leaves its line, and
# what was no GPU's is called so.  Without a driver it ends at once.
. "$CT_SOURCE/tests/e2e/lib.sh"
driver=$CT_BUILD/tests/libcuda.so.1
[ -e "$driver" ] && [ -z "$CT_SANITIZE" ] && command -v python3 >/dev/null || { echo "skipped: what needs CUDA and python3"; exit 77; }
check=$CT_SOURCE/scripts/gpu-check

CT_TEST_DRIVER=/nowhere/libcuda.so.1 timeout 120 "$check" none probe env >none.txt 2>&1
code=$?
out=$(cat none.txt)
expect "no driver: that is said" has "$out" "no GPU: /nowhere/libcuda.so.1: "
expect "and ends the run" is "$code $(wc -l <none/gpu.jsonl)" "1 2"

CT_TEST_DRIVER=$driver timeout 250 "$check" run probe way deaths soak:50 streams staged sanitizer >run.txt 2>&1
code=$?
out=$(cat run.txt)
expect "all stages are ok" is "$code" 0
expect "each has its line" is "$(python3 -c '
import json
for line in open("run/gpu.jsonl"):
    record = json.loads(line)
    print(record.get("stage", "head"), record.get("verdict", ""), record["driver"], {row["driver"] for row in record.get("rows", [])} or "")
')" "head  fake 
probe ok fake {'fake'}
way ok fake {'fake'}
deaths ok fake {'fake'}
soak ok fake {'fake'}
streams ok fake {'fake'}
staged ok fake {'fake'}
sanitizer skipped fake "
expect "a short table" is "$(($(grep -c '^fake driver: [^=]' run.txt) <= 30))" 1
expect "and what each reading decides" matches "$out" '=> locks: .*=> queues: .*=> ipc: .*=> dead owner: .*=> events: .*=> descriptors: .*=> streams: '
expect "in which each line is the fake driver's" is "$(grep -v '\.\.\.$' run.txt | grep -vc '^fake driver: ')" 0
expect "rows of the bench are in it" matches "$out" 'staged +ok +[0-9.]+ s  12 rows, none wrong'
expect "both ways to hand calls over stand side by side" matches "$out" 'streams +ok +[0-9.]+ s  all_reduce of 1 KiB, us by hosts, by streams: 2 ranks [0-9.]+, [0-9.]+; 4'
if [ -e "$CT_BUILD/tests/nccl_new/libnccl.so.2" ]; then
    CT_TEST_DRIVER=$driver timeout 120 "$check" by_nccl nccl >nccl.txt 2>&1
    expect "NCCL takes the calls of one rank" matches "$(cat nccl.txt)" 'nccl +ok +[0-9.]+ s  NCCL [0-9]+: 38 rows, none wrong'
fi
CT_TEST_DRIVER=$driver timeout 120 "$check" late probe:3 >late.txt 2>&1
expect "at its limit a stage keeps what it has" matches "$(cat late.txt)" 'readings, stopped at its limit.*=> queues: 0 of 4 rows: .*=> ipc: 64 small blocks'
CT_TEST_DRIVER=$driver FAKE_CUDA_IPC=0 timeout 120 "$check" apart way >apart.txt 2>&1
out=$(cat apart.txt)
expect "why calls go through the host is said" matches "$out" 'way +ok +[0-9.]+ s  staged: .'
timeout 120 "$check" run nothing >wrong.txt 2>&1
expect "no such stage" is "$? $(cut -d';' -f1 wrong.txt)" "2 gpu-check: no stage nothing"

finish
