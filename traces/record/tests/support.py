# SPDX-License-Identifier: Apache-2.0
"""What the tests share: a folder that goes away, the trace as arrays, and the validator of the program under test."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import h5py

HERE = Path(__file__).resolve().parent
for folder in (HERE.parent, HERE, HERE.parent / "examples"):
    sys.path.insert(0, str(folder))
MOESIM = os.environ.get("MOESIM")       # the built program; tests that need it are skipped without

try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    torch = None
needs_torch = unittest.skipIf(torch is None, "no PyTorch")


def load(path):
    """The datasets of a trace by name, and its attributes under ''."""
    with h5py.File(path, "r") as f:
        found = {"": dict(f.attrs)}
        f.visititems(lambda name, thing: found.update({name: thing[()]}) if isinstance(thing, h5py.Dataset) else None)
    return found


class TraceCase(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self._folder.name, "t.h5")

    def tearDown(self):
        self._folder.cleanup()

    def run_moesim(self, *arguments):
        return subprocess.run([MOESIM, *arguments], capture_output=True, text=True)

    def assert_valid(self, path=None):
        """`moesim trace validate --strict` accepts the file."""
        if MOESIM is None:
            self.skipTest("MOESIM names no program")
        done = self.run_moesim("trace", "validate", "--strict", path or self.path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 warnings", done.stdout)
