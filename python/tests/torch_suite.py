# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own distributed_test.py, which is in its wheel, and says what passed.

python3 torch_suite.py ct|alias|gloo [WORD...]

ct: with the backend "ct"; alias: with libct under the name gloo; gloo: with gloo, to compare.  WORD: only tests
with all these words in their names.  $WORLD_SIZE: the ranks (2).  Ranks are forked, so that one that runs for minutes
when spawned takes seconds.
"""

import collections
import multiprocessing
import os
import signal
import sys
import time
import unittest

LIMIT_S = 60
FEATURES = ("ddp", "subgroup")  # that the tests believe of backends that they know by name

mode, *words = sys.argv[1:] or ["--help"]
if mode not in ("ct", "alias", "gloo"):
    print(__doc__, file=sys.stderr)
    sys.exit(2)
os.environ.update(BACKEND="ct" if mode == "ct" else "gloo", OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
os.environ.setdefault("WORLD_SIZE", "2")
os.environ.setdefault("TEMP_DIR", "/tmp")

import torch  # noqa: E402
from torch.testing._internal import common_distributed  # noqa: E402

if mode != "gloo":
    from ctrun import torch_backend

    torch_backend.register() if mode == "ct" else torch_backend.register_as_gloo()
for feature in FEATURES if mode == "ct" else ():
    common_distributed.DistTestCases.backend_feature[feature].add("ct")

from torch.testing._internal.distributed.distributed_test import (
    DistributedTest,
    TestDistBackend,
)  # noqa: E402


class Forked(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


def run(name):
    """What became of it, and why."""
    result = unittest.TestResult()
    signal.alarm(LIMIT_S)
    try:
        unittest.TestSuite([Forked(name)]).run(result)
    except TimeoutError as late:
        result.errors.append((name, str(late)))
    signal.alarm(0)
    for process in multiprocessing.active_children():
        process.kill()
    if result.skipped:
        return "skipped", result.skipped[0][1]
    if result.failures or result.errors:
        return "FAILED", (result.failures + result.errors)[0][1].strip().splitlines()[-1]
    return "passed", ""


def late(*_):
    raise TimeoutError(f"not over after {LIMIT_S} s")


torch.set_num_threads(1)
signal.signal(signal.SIGALRM, late)
counts = collections.Counter()
for test in sorted(unittest.TestLoader().getTestCaseNames(Forked)):
    if all(word in test for word in words):
        began = time.monotonic()
        verdict, reason = run(test)
        counts[verdict] += 1
        print(f"{verdict} {test} {time.monotonic() - began:.1f} s {reason[:200]}".rstrip(), flush=True)
print(f"{mode}, {os.environ['WORLD_SIZE']} ranks, torch {torch.__version__}: {dict(counts)}")
sys.exit(1 if counts["FAILED"] else 0)
