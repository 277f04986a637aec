# SPDX-License-Identifier: Apache-2.0
"""What the tests of the importers share: running the command, and routes to put into recordings."""
import contextlib
import io
import json
import os

import numpy as np

from support import TraceCase, load
from moesim_record.convert import cli

SIZES = ["--expert-bytes", "100"]


def random_routes(rng, rows, layers, experts, top_k):
    """Distinct ids [rows, layers, top_k]."""
    return np.argsort(rng.random((rows, layers, experts)), axis=-1)[..., :top_k].astype(np.int32)


class ConvertCase(TraceCase):
    def name(self, name):
        return os.path.join(self._folder.name, name)

    def put(self, name, content):
        """A file of bytes, or of a value as JSON."""
        with open(self.name(name), "wb") as f:
            f.write(content if isinstance(content, bytes) else json.dumps(content).encode())
        return self.name(name)

    def command(self, *arguments):
        """(exit status, standard output, standard error)."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = cli.main([str(a) for a in arguments])
            except SystemExit as end:
                code = end.code
        return code, out.getvalue(), err.getvalue()

    def convert(self, source, *arguments, warnings=()):
        """Converts into self.path; every text of `warnings` must be warned of, and nothing else. Returns the arrays."""
        code, out, err = self.command("--from", source, "-o", self.path, *arguments)
        self.assertEqual(code, 0, err)
        self.assertIn(self.path, out)
        lines = err.splitlines()
        self.assertEqual(len(lines), len(warnings), err)
        for text in warnings:
            self.assertIn(text, err)
        self.assertEqual([n for n in os.listdir(self._folder.name) if n.endswith(".tmp")], [])
        return load(self.path)

    def assert_refused(self, source, *arguments, text, code=1):
        """One line that holds `text`, and neither a file nor a part of one."""
        got, out, err = self.command("--from", source, "-o", self.path, *arguments)
        self.assertEqual(got, code, out + err)
        self.assertIn(text, err)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertTrue(err.startswith("moesim_record.convert: error: "), err)
        self.assertEqual(out, "")
        self.assertFalse(os.path.exists(self.path))
        self.assertEqual([n for n in os.listdir(self._folder.name) if n.endswith(".tmp")], [])

    def assert_warned_of(self, text):
        """`trace validate --strict` refuses the file for this alone: what the source does not have."""
        from support import MOESIM
        if MOESIM is None:
            self.skipTest("MOESIM names no program")
        self.assertEqual(self.run_moesim("trace", "validate", self.path).returncode, 0)
        done = self.run_moesim("trace", "validate", "--strict", self.path)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(text, done.stderr)
