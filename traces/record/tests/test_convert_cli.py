# SPDX-License-Identifier: Apache-2.0
"""What all importers share: options, the model's config.json, and that nothing half-written stays."""
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

from convert_support import SIZES, ConvertCase
from test_convert_text import BASE, Log, moelens
from moesim_record import Problem
from moesim_record.convert import cli, draft, model

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = {"config": "c", "num_experts": 8, "top_k": 2, "expert_bytes": 5, "weight_dtype": "bfloat16", "dense_layers": 0,
           "layers": 4, "prompt_tokens": 4, "start_len": 1, "mask_id": 5, "block_length": 8, "fused_shared": 1,
           "token_ids": None}


class Options(ConvertCase):
    def log(self):
        return self.put("a.jsonl", Log(0).call(3).call(1).bytes())

    def test_usage_errors(self):
        path = self.log()
        for arguments, text in (
                ((path, *BASE, "--no-such"), "unrecognized arguments"),
                ((path, "--num-experts", 0), "no whole number within 1..1024"),
                ((path, "--num-experts", "9" * 5000), "no whole number"), ((path, "--num-experts", "1e3"), "no whole number"),
                ((path, "--expert-bytes", "1,"), "no whole number"), ((path, "--expert-bytes", "-1"), "no whole number"),
                ((path, "--dummy", "no"), "invalid choice"), ((path, "--weight-dtype", "int3"), "invalid choice"),
                ((), "required")):
            with self.subTest(text=text, arguments=arguments):
                self.assert_refused("jsonl", *arguments, text=text, code=2)
        for text in ("1:", "a", "", "1:99999999"):
            self.assert_refused("sglang", path, f"--dense-layers={text}", text="argument --dense-layers", code=2)
        code, _, err = self.command(path, "-o", self.path)
        self.assertEqual((code, len(err.splitlines())), (2, 1))

    def test_options_without_effect_are_refused(self):
        path, refused = self.log(), 0
        for source, (_, takes) in cli.SOURCES.items():
            for name, value in OPTIONS.items():
                if name in takes:
                    continue
                option = "--" + name.replace("_", "-")
                self.assert_refused(source, path, option, *(() if value is None else (value,)), code=2,
                                    text=f"{option} has no effect on --from {source}")
                refused += 1
        self.assertEqual(refused, 4 * len(OPTIONS) - sum(len(takes) for _, takes in cli.SOURCES.values()))

    def test_help(self):
        code, out, _ = self.command("--help")
        self.assertEqual(code, 0)
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        for word in (*cli.SOURCES, *("--" + name.replace("_", "-") for name in OPTIONS)):
            self.assertIn(word, out)

    def test_names(self):
        found = self.convert("jsonl", self.log(), *BASE, "--model", "my model", "--workload", "gsm8k")
        self.assertEqual((found[""]["model_id"], found["request/workload"][0]), ("my model", b"gsm8k"))
        self.assert_refused_workload()

    def assert_refused_workload(self):
        os.unlink(self.path)
        self.assert_refused("jsonl", self.log(), *BASE, "--workload", "x" * 64, text="1..63 bytes")

    def test_as_a_module_without_torch(self):
        """The command runs where no PyTorch is, and says what .pt files need."""
        self.put("torch.py", b"raise ImportError('no torch here')\n")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join((self._folder.name, str(ROOT)))}

        def run(*arguments):
            return subprocess.run([sys.executable, "-m", "moesim_record.convert", *map(str, arguments), "-o", self.path],
                                  env=env, capture_output=True, text=True)
        done = run("--from", "jsonl", self.log(), *BASE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_valid()
        done = run("--from", "sglang", self.put("a.pt", b"x"), *SIZES)
        self.assertEqual(done.returncode, 1)
        self.assertIn(".pt files need PyTorch", done.stderr)


class Outputs(ConvertCase):
    def log(self):
        return self.put("a.jsonl", Log(0).call(3).call(1).bytes())

    def test_an_older_file_stays_until_the_end(self):
        bad = self.put("bad.jsonl", Log(0).call(3).bytes() + b"x")
        with open(self.path, "wb") as f:
            f.write(b"older")
        code, _, _ = self.command("--from", "jsonl", bad, "-o", self.path, *BASE)
        self.assertEqual((code, Path(self.path).read_bytes()), (1, b"older"))
        self.convert("jsonl", self.log(), *BASE)

    def test_failures_while_writing(self):
        """A full disk, an interruption, too little memory: neither a file nor a part of one."""
        for error, code in ((OSError(28, "No space left on device"), 1), (KeyboardInterrupt(), 130), (MemoryError(), 1)):
            with self.subTest(code=code, error=error):
                with mock.patch.object(draft.TraceWriter, "close", side_effect=error):
                    got, out, err = self.command("--from", "jsonl", self.log(), "-o", self.path, *BASE)
                self.assertEqual((got, out, os.listdir(self._folder.name)), (code, "", ["a.jsonl"]))
                self.assertEqual(len(err.splitlines()), int(code == 1))

    def test_a_polite_kill(self):
        def kill(*_):
            os.kill(os.getpid(), signal.SIGTERM)
        before = signal.getsignal(signal.SIGTERM)
        try:
            with mock.patch.object(draft.TraceWriter, "close", side_effect=kill):
                code, _, _ = self.command("--from", "jsonl", self.log(), "-o", self.path, *BASE)
        finally:
            signal.signal(signal.SIGTERM, before)
        self.assertEqual((code, os.listdir(self._folder.name)), (143, ["a.jsonl"]))

    def test_a_pipe_is_refused(self):
        """Not waited for: inputs are read more than once."""
        os.mkfifo(self.name("pipe"))
        for arguments in ((self.name("pipe"),), (self.log(), "--config", self.name("pipe"))):
            self.assert_refused("jsonl", *arguments, *BASE, text="pipe: a folder, device or pipe")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_standard_output(self):
        for arguments in (("--help",), ("--from", "jsonl", self.log(), "-o", self.path, *BASE)):
            with open("/dev/full", "w") as full:
                done = subprocess.run([sys.executable, "-m", "moesim_record.convert", *map(str, arguments)], stdout=full,
                                      stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
            self.assertIn("cannot write to standard output: No space left", done.stderr)

    def test_places_that_cannot_be_written(self):
        log = self.log()
        os.mkdir(self.name("links"))
        os.link(log, self.name("links/hard.jsonl"))
        config = self.put("links/config.json", {})
        for out in (self.name("links/hard.jsonl"), config):
            code, _, err = self.command("--from", "jsonl", log, "-o", out, "--config", config, *BASE)
            self.assertEqual(code, 2)
            self.assertIn("is the input and the output", err)
        shutil.rmtree(self.name("links"))
        for out, text in ((log, "is the input and the output"), (self._folder.name, "is no regular file"),
                          ("/dev/null", "is no regular file"), (self.name("no/t.h5"), "the folder of")):
            code, _, err = self.command("--from", "jsonl", log, "-o", out, *BASE)
            self.assertEqual(code, 2)
            self.assertIn(text, err)
        self.assertEqual(os.listdir(self._folder.name), ["a.jsonl"])

    def test_a_link_is_followed(self):
        os.symlink(self.name("real.h5"), self.path)
        self.convert("jsonl", self.log(), *BASE)
        self.assertTrue(os.path.islink(self.path))

    def test_same_bytes(self):
        """Not even the time is in the file."""
        self.convert("jsonl", self.log(), *BASE)
        first = Path(self.path).read_bytes()
        time.sleep(1.1)
        self.convert("jsonl", self.log(), *BASE)
        self.assertEqual(first, Path(self.path).read_bytes())


class Config(ConvertCase):
    def dense(self, **config):
        return list(model.read_config(self.put("config.json", {"num_hidden_layers": 6, **config})).dense)

    def test_dense_layers(self):
        """DeepSeek and LLaDA2, Qwen, ERNIE, and lists."""
        for expected, config in (
                ([], {}), ([0], dict(first_k_dense_replace=1)), ([0, 1, 3, 5], dict(first_k_dense_replace=1, moe_layer_freq=2)),
                ([1, 4], dict(mlp_only_layers=[1, 4])), ([0, 2, 4], dict(decoder_sparse_step=2)),
                ([0, 5], dict(moe_layer_freq=[0, 1, 1, 1, 1, 0])),
                ([0, 5], dict(moe_layer_start_index=1, moe_layer_end_index=4, moe_layer_interval=1)),
                ([0, 1], dict(text_config=dict(first_k_dense_replace=2)))):
            self.assertEqual(self.dense(**config), expected, config)

    def test_sizes(self):
        base = dict(hidden_size=64, moe_intermediate_size=32, intermediate_size=999)

        def size(options=None, **config):
            read = model.read_config(self.put("config.json", {**base, **config}))
            given = SimpleNamespace(**{"expert_bytes": None, "weight_dtype": None, **(options or {})})
            return model.expert_bytes(given, read, 2, "f")
        self.assertEqual(size(torch_dtype="bfloat16"), 3 * 64 * 32 * 2)
        self.assertEqual(size(dtype="float32", moe_intermediate_size=None), 3 * 64 * 999 * 4)
        self.assertEqual(size(dict(weight_dtype="float8"), torch_dtype="bfloat16"), 3 * 64 * 32)
        self.assertEqual(size(dict(expert_bytes=[7, 8]), torch_dtype="bfloat16"), [7, 8])
        for config in (dict(torch_dtype="bfloat16", quantization_config={"bits": 4}), dict(), dict(torch_dtype="int3"),
                       dict(torch_dtype="bfloat16", hidden_size=None)):
            with self.assertRaisesRegex(Problem, "--expert-bytes N"):
                size(**config)

    def test_refusals(self):
        log = self.put("a.jsonl", Log(0).call(3).call(1).bytes())
        for content, text in ((b"", "is no JSON"), ([], "outermost value is no object"),
                              (dict(num_experts=-1), "is -1, no count"),
                              (dict(num_experts=10**40), "no count"), (dict(hidden_size=1.5), "no count"),
                              (dict(num_hidden_layers=10**6), "at most 4096"),
                              (dict(num_hidden_layers=4, first_k_dense_replace="1"), "first_k_dense_replace is '1'"),
                              (dict(num_hidden_layers=4, mlp_only_layers=3), "--dense-layers"),
                              (dict(num_hidden_layers=4, moe_layer_freq="x"), "--dense-layers")):
            with self.subTest(text):
                self.assert_refused("jsonl", log, "--config", self.put("config.json", content), *SIZES, text=text)
        self.assert_refused("jsonl", log, "--config", self.name("none.json"), *SIZES, text="none.json: No such file")

    def test_config_of_a_log(self):
        log = self.put("a.jsonl", Log(0).call(3).call(1).bytes())
        config = self.put("config.json", dict(num_experts=16, hidden_size=64, moe_intermediate_size=32, torch_dtype="float16"))
        found = self.convert("jsonl", log, "--config", config)
        np.testing.assert_array_equal(found["model/expert_bytes"], [3 * 64 * 32 * 2])
        self.assertEqual(found[""]["num_experts"], 16)
        found = self.convert("moelens", self.put("m.json", moelens()), "--config", config, warnings=["prefills"])
        np.testing.assert_array_equal(found["model/expert_bytes"], [3 * 64 * 32 * 2] * 3)


if __name__ == "__main__":
    unittest.main()
