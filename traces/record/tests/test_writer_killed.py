# SPDX-License-Identifier: Apache-2.0
"""A writer that is killed at any point leaves a file that `moesim trace salvage` closes; no flushed pass is lost."""
import os
import signal
import subprocess
import sys
import unittest

import numpy as np

from support import MOESIM, TraceCase, load

# Kills itself where KILL_AT says: "place n" is the n-th time that the place is reached; "bytes n" lets the file grow to n bytes.
PROGRAM = """
import os, resource, signal, sys
import h5py, numpy as np
from moesim_record import TraceWriter
place, nth = os.environ["KILL_AT"].split()
left = int(nth)

def reach(here):
    global left
    left -= here == place
    if here == place and left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def append(dataset, first, array):
    reach("append")
    dataset.resize(first + len(array), axis=0)
    reach("resized")
    dataset[first:] = array
    reach("appended")

class File(h5py.File):
    def __exit__(self, *args):
        reach("close")
        super().__exit__(*args)
        reach("closed")

if place == "bytes":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, left))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
TraceWriter._append = staticmethod(append)
h5py.File = File
writer = TraceWriter(sys.argv[1], model_id="m", num_experts=16, top_k=4, block_length=8, gate_kind="softmax, normalised",
                     confidence_kind="top-1 probability", moe_layer_id=[1, 2, 3], expert_bytes=100, flush_rows=100,
                     token_ids=True, pass_times=True, forwards=True)
rng, n = np.random.default_rng(1), 0
for request in range(6):
    writer.add_request(f"w{request}", 5)
    for step in range(13):
        expert = np.argsort(rng.random((8, 3, 16)), axis=-1)[..., :4]
        writer.add_pass("denoise", request, step // 8, step % 8, position=np.arange(8), state=np.full(8, 1), expert=expert,
                        gate=np.full(expert.shape, 0.25), confidence=rng.random(8), token_id=np.arange(8), pass_ns=n, forward=n)
        n += 1
writer.close()
"""
PIECE = 13                      # passes that one flush appends: 104 rows
COLUMNS = 13                    # with row_offset; each is appended once a piece


@unittest.skipIf(MOESIM is None, "MOESIM names no program")
class Killed(TraceCase):
    def write(self, path, kill_at):
        environment = dict(os.environ, KILL_AT=kill_at, PYTHONPATH=os.pathsep.join(sys.path))
        return subprocess.run([sys.executable, "-c", PROGRAM, path], env=environment, stderr=subprocess.DEVNULL).returncode

    def salvage(self, path, out):
        return self.run_moesim("trace", "salvage", path, out, "--compression", "gzip")

    def check(self, whole, kill_at, pieces):
        """Killed there, the file holds at least so many pieces; what is salvaged is the beginning of the whole recording."""
        path, out = self.path + ".killed", self.path
        for old in (path, out):
            if os.path.exists(old):
                os.remove(old)
        self.assertIn(self.write(path, kill_at), (-signal.SIGKILL, -signal.SIGXFSZ))
        with open(path, "rb") as f:
            before = f.read()
        result = self.salvage(path, out)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), before)
        if pieces == 0:
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"nothing can be salvaged|not an HDF5 file")
            self.assertFalse(os.path.exists(out))
            return
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assert_valid()     # strictly
        found = load(out)
        passes = len(found["pass/kind"])
        self.assertIn(passes, (pieces * PIECE, (pieces + 1) * PIECE))
        for name in whole:
            if name == "request/output_tokens":
                np.testing.assert_array_equal(found[name], np.bincount(found["pass/request"]) * 8)
            elif name and not name.startswith("model/"):
                np.testing.assert_array_equal(found[name], whole[name][:len(found[name])], name)

    def test_killed_anywhere(self):
        path = self.path + ".whole"
        self.assertEqual(self.write(path, "never 0"), 0)
        whole = load(path)
        self.assertEqual(len(whole["pass/kind"]), 6 * PIECE)
        result = self.salvage(path, self.path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("nothing to salvage", result.stderr)
        size = os.path.getsize(path)
        # the first file is closed empty, then one a piece
        for kill_at, pieces in (("close 1", 0), ("closed 1", 0), ("append 3", 0), ("close 2", 0), ("closed 2", 1),
                                (f"append {COLUMNS + 1}", 1), (f"resized {2 * COLUMNS}", 1), (f"appended {COLUMNS + 5}", 1),
                                ("close 4", 2), ("closed 4", 3), (f"resized {4 * COLUMNS + 3}", 4), ("closed 7", 6)):
            with self.subTest(kill_at):
                self.check(whole, kill_at, pieces)
        saved = 0
        for part in (0.1, 0.55, 0.7, 0.85, 0.97):
            with self.subTest(f"{part} of the file"):
                path, limit = self.path + ".killed", int(part * size)
                if os.path.exists(path):
                    os.remove(path)
                self.assertEqual(self.write(path, f"bytes {limit}"), -signal.SIGXFSZ)
                if os.path.exists(self.path):
                    os.remove(self.path)
                result = self.salvage(path, self.path)
                self.assertEqual(result.returncode == 0, os.path.exists(self.path), result.stderr)
                if result.returncode == 0:
                    self.assert_valid()
                    saved += 1
        self.assertGreater(saved, 0)


if __name__ == "__main__":
    unittest.main()
