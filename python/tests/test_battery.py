# SPDX-License-Identifier: Apache-2.0
"""The fast cases of battery.py with two ranks.  scripts/interop-torch runs all."""

import importlib.util
import os
import subprocess
import sys
import unittest


@unittest.skipUnless(importlib.util.find_spec("torch"), "no torch here")
class Battery(unittest.TestCase):
    def test_what_programs_do_with_gloo_gives_the_same_bits_on_ct(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "battery.py")
        command = [sys.executable, path, "--fast", "--ranks=2"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
