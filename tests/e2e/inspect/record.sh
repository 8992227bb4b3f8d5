# SPDX-License-Identifier: Apache-2.0
# PyTorch's @record: a Python exception on one rank is the report's root cause, with
# its traceback, also when the others fail because of it.
python=${TORCH_PYTHON:-python3} # lib.sh unsets all TORCH*
. "$CT_SOURCE/tests/e2e/lib.sh"
"$python" -c 'import torch.distributed.elastic.multiprocessing.errors' 2>/dev/null || { echo "skipped: no PyTorch"; exit 77; }
export PYTHON_EXEC=$python

cat >train.py <<'END'
import atexit, os, sys, time
from torch.distributed.elastic.multiprocessing.errors import record

def step(rank):
    if rank == 2: # takes its time to end after that
        atexit.register(time.sleep, 0.3)
        raise ValueError("the loss is\033[31m nan")

@record
def main():
    rank = int(os.environ["RANK"])
    open("ready.%d" % rank, "w").close()
    while not all(os.path.exists("ready.%d" % r) for r in range(4)):
        time.sleep(0.01)
    step(rank)
    if rank == 1: # notices it, has an exception of its own, and is dead before rank 2
        note = os.environ["TORCHELASTIC_ERROR_FILE"].replace("/1/error", "/2/error")
        while not os.path.exists(note) or os.path.getsize(note) == 0:
            time.sleep(0.01)
        raise RuntimeError("Connection closed by peer")
    time.sleep(60)

main()
END

TORCHELASTIC_ERROR_FILE=$work/parent.json run --nproc-per-node=4 --events=events train.py
expect "the exit code of a Python exception" is "$code" 1
expect "rank 2 is the root cause" matches "$err" 'Root Cause \(first observed failure\):
\[0\]:
  time      : [0-9_:-]+
  host      : [^
]*
  rank      : 2 \(local_rank: 2\)
  exitcode  : 1 \(pid: [0-9]+\) 
  error_file: /.*/attempt_0/2/error.json
  traceback : Traceback \(most recent call last\):'
expect "with its traceback, indented" has "$err" "in step
      raise ValueError("
expect "and its exception, without what a terminal would obey" has "$err" "ValueError: the loss is?[31m nan"
expect "who failed because of it is named" matches "$err" "cause     : failed after rank 2 did"
expect "with the end of its own traceback" has "$err" "RuntimeError: Connection closed by peer"
expect "nothing of ours" lacks "$err" "SignalException"
expect "a program reads it, too" has "$(grep '"cause":"itself"' events)" 'ValueError: the loss is\u001b[31m nan'
expect "the parent's file is the worker's" has "$(cat parent.json)" "the loss is"
expect "with its exit code" matches "$(cat parent.json)" '"errorCode": 1[,}]'
finish
