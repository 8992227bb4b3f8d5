# SPDX-License-Identifier: Apache-2.0
"""Runs a piece of a program on several ranks, under the ctrun of $CT_BUILD or on PATH."""

import os
import subprocess
import sys
import textwrap
import unittest

CTRUN = os.path.join(os.environ["CT_BUILD"], "bin", "ctrun") if "CT_BUILD" in os.environ else "ctrun"


class Ranks(unittest.TestCase):
    def run_ranks(self, count, program, *options):
        """Its exit code, and what it wrote to stdout and stderr."""
        process = subprocess.run(
            [CTRUN, f"--nproc-per-node={count}", *options, sys.executable, "-c", textwrap.dedent(program)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # which ctrun would set, with a line
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return process.returncode, process.stdout, process.stderr

    def succeeds(self, count, program, *options):
        code, out, err = self.run_ranks(count, program, *options)
        self.assertEqual((code, err), (0, ""), out)
        return out
