#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What golden text cannot say about the command line: widths of help, schemas, README, files left behind, threads,
interruption. usage: checks.py MOESIM SOURCE_ROOT"""
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

MOESIM = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(sys.argv[2]).resolve()
SAMPLE = str(ROOT / "traces" / "samples" / "sample.h5")
FIGURES = ["utilisation", "utilisation_macro", "hit_rate", "miss_floor", "misses_per_pass", "moved_bytes_per_token",
           "wasted_share", "effective_transfer_ratio"]


def moesim(*words, **options):
    return subprocess.run([MOESIM, *words], capture_output=True, text=True, timeout=300, check=False, **options)


def run_json(*words):
    done = moesim("run", SAMPLE, "--format", "json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def listed(text):
    """Names of the commands in a help text that lists commands."""
    block = text.split("\nCommands:\n", 1)
    return re.findall(r"^  ([a-z]+)", block[1].split("\n\n")[0], re.M) if len(block) == 2 else []


def all_commands(prefix=()):
    """Every command as a tuple of words, groups included."""
    for name in listed(moesim(*prefix, "--help").stdout):
        yield (*prefix, name)
        yield from all_commands((*prefix, name))


class Help(unittest.TestCase):
    def test_every_help_is_complete_and_fits_80_columns(self):
        commands = list(all_commands())
        self.assertIn(("run",), commands)
        self.assertIn(("trace", "info"), commands)
        for words in [(), *commands]:
            done = moesim(*words, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            self.assertTrue(done.stdout.startswith("Usage: moesim"), words)
            for line in done.stdout.splitlines():
                self.assertLessEqual(len(line), 80, f"{words}: {line}")
            self.assertEqual(moesim("help", *words).stdout, done.stdout, words)

    def test_readme_and_help_name_the_same_commands(self):
        readme = ROOT / "README.md"
        if not readme.exists():
            self.skipTest("no README.md yet")
        named = set()
        for first, rest in re.findall(r"`?moesim ([a-z]+)((?: [a-z]+(?:\\?\|[a-z]+)*)?)", readme.read_text(encoding="utf-8")):
            seconds = re.split(r"\\?\|", rest.strip()) if rest else []
            named |= {(first,)} | {(first, s) for s in seconds}
        commands = set(all_commands())
        groups = {c[0] for c in commands if len(c) == 2}
        for command in commands:
            self.assertIn(command, named, "README.md lacks a command of --help")
        for name in named:
            if len(name) == 2 and name[0] in groups or re.search(rf"`moesim {name[0]}\b", readme.read_text(encoding="utf-8")):
                self.assertTrue(name in commands or name[:1] in commands and name[0] not in groups,
                                f"README.md names a command that does not exist: {name}")


class Json(unittest.TestCase):
    def test_schema(self):
        got = run_json("--policy", "lru,belady", "--policy", "oled:confidence=hindsight", "--cache", "40,60")
        self.assertEqual(got["schema"], "moesim.run/1")
        self.assertEqual(set(got), {"schema", "trace", "config", "results", "paired", "gap"})
        self.assertEqual(got["trace"]["model_id"], "example/blockdiff-moe-20x256k8")
        self.assertEqual([got["trace"][k] for k in ("num_moe_layers", "num_experts", "top_k", "block_length", "passes",
                                                    "rows", "requests")], [20, 256, 8, 16, 271, 4416, 2])
        digest = subprocess.run(["sha256sum", SAMPLE], capture_output=True, text=True, check=True).stdout.split()[0]
        self.assertEqual(got["trace"]["digest"], digest)
        self.assertEqual((got["config"]["scope"], got["config"]["seed"], got["config"]["resamples"]), ("layer", 1, 10000))
        self.assertNotIn("threads", got["config"])
        self.assertEqual([(r["policy"], r["cache"]) for r in got["results"]],
                         [(p, c) for c in (40, 60) for p in ("lru", "belady", "oled:confidence=hindsight")])
        self.assertEqual([r["clairvoyant"] for r in got["results"]], [False, True, False] * 2)
        self.assertEqual([r["non_causal"] for r in got["results"]], [False, False, True] * 2)
        self.assertIn("confidence=hindsight", got["results"][2]["options"])

    def test_every_figure_has_its_interval(self):
        got = run_json("--policy", "lru", "--cache", "40")["results"][0]
        self.assertEqual(got["n_requests"], 2)
        self.assertEqual(got["events"], got["passes"] * 20)
        self.assertEqual(got["accesses"], got["hits"] + got["misses"])
        self.assertAlmostEqual(got["hit_rate"], got["hits"] / got["accesses"], places=15)
        for name in FIGURES:
            self.assertIn(name, got)
            low, high = got["ci"][name]
            self.assertLessEqual(low, high, name)
            if name != "utilisation_macro":
                self.assertTrue(low - 1e-12 <= got[name] <= high + 1e-12, name)
        self.assertEqual(set(got["ci"]) - set(got), set())

    def test_undefined_is_null(self):
        at_zero = run_json("--policy", "lru", "--cache", "0")["results"][0]
        self.assertIsNone(at_zero["utilisation"])
        self.assertEqual(at_zero["ci"]["utilisation"], [None, None])
        self.assertEqual(at_zero["hit_rate"], 0)
        one = run_json("--policy", "lru", "--cache", "40", "--requests", "0:1")["results"][0]
        self.assertEqual((one["n_requests"], one["ci"]["hit_rate"]), (1, [None, None]))
        everywhere = run_json("--policy", "lru", "--cache", "60MiB", "--scope", "global")["results"][0]
        self.assertEqual((everywhere["utilisation"], everywhere["miss_floor"], everywhere["cache"]), (None, None, 60 << 20))
        self.assertIsNotNone(everywhere["all_hit_rate"])

    def test_paired_and_gap(self):
        got = run_json("--policy", "lru,oled,belady", "--cache", "40,100", "--baseline", "lru", "--gap")
        self.assertEqual(len(got["results"]), 6)      # belady-forced ran for --gap alone
        self.assertEqual([(p["policy"], p["baseline"], p["cache"], p["metric"]) for p in got["paired"]],
                         [(p, "lru", c, m) for c in (40, 100) for p in ("oled", "belady")
                          for m in ("misses_per_pass", "utilisation")])
        value = {(r["policy"], r["cache"]): r for r in got["results"]}
        for pair in got["paired"]:
            a, b = value[pair["policy"], pair["cache"]], value["lru", pair["cache"]]
            self.assertAlmostEqual(pair["difference"], a[pair["metric"]] - b[pair["metric"]], places=9)
            self.assertEqual(pair["p"], 0.5)          # two requests, one sign: ±, of four flips two are as extreme
            self.assertEqual((pair["n"], pair["test"]), (2, "sign-flip, exact"))
            low, high = pair["interval"]
            self.assertLessEqual(low, high)
            self.assertFalse(pair["distinguishable"], "two requests cannot tell two policies apart")
        self.assertEqual([(g["policy"], g["cache"]) for g in got["gap"]], [(p, c) for c in (40, 100) for p in ("lru", "oled")])
        for row in got["gap"]:
            if row["not_applicable"] is None:
                self.assertAlmostEqual(row["admission_share"] + row["victim_share"], 1, places=12)
            else:
                self.assertIsNone(row["admission_share"])
        bounds = {r["policy"]: r["misses"] for r in run_json("--policy", "belady,belady-forced", "--cache", "100")["results"]}
        above = value["lru", 100]["misses"] - bounds["belady"]
        lru = got["gap"][2]
        self.assertAlmostEqual(lru["misses_per_pass_above_belady"], above / value["lru", 100]["passes"], places=9)
        self.assertAlmostEqual(lru["admission_share"], (bounds["belady-forced"] - bounds["belady"]) / above, places=12)
        self.assertIsNone(got["gap"][2]["not_applicable"])
        self.assertIsNotNone(got["gap"][0]["not_applicable"])

    def test_threads_change_nothing(self):
        words = ["run", SAMPLE, "--format", "json", "--policy", "random,lru,oled,surv,belady", "--cache", "10:250:40",
                 "--baseline", "lru"]
        one, four = moesim(*words, "--threads", "1"), moesim(*words, "--threads", "4")
        self.assertEqual(one.returncode, 0, one.stderr)
        self.assertEqual(one.stdout, four.stdout)
        narrow = moesim(*words, "--window", "2MiB")
        self.assertEqual(one.stdout, narrow.stdout, narrow.stderr)

    def test_seed(self):
        words = ["--policy", "random", "--cache", "40"]
        self.assertEqual(run_json(*words, "--seed", "7"), run_json(*words, "--seed", "7"))
        self.assertNotEqual(run_json(*words, "--seed", "7")["results"], run_json(*words)["results"])


class Csv(unittest.TestCase):
    def test_csv_equals_json(self):
        words = ["--policy", "lru", "--policy", "oled:confidence=none", "--cache", "0,40"]
        done = moesim("run", SAMPLE, "--format", "csv", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        results = run_json(*words)["results"]
        self.assertEqual(len(done.stdout.splitlines()), 5)
        self.assertEqual(len(rows), len(results))
        for row, result in zip(rows, results):
            flat = {k: v for k, v in result.items() if k not in ("ci", "counters")}
            for name, (low, high) in result["ci"].items():
                flat[f"{name}_lo"], flat[f"{name}_hi"] = low, high
            self.assertEqual(set(row), set(flat))
            for name, value in flat.items():
                if isinstance(value, str):
                    self.assertEqual(row[name], value)
                else:
                    self.assertEqual(None if row[name] == "" else float(row[name]), value, name)

    def test_csv_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.csv")
            words = ["run", SAMPLE, "--policy", "lru", "--cache", "40"]
            done = moesim(*words, "--csv", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), moesim(*words, "--format", "csv").stdout)
            self.assertEqual(done.stdout, moesim(*words).stdout)
            self.assertEqual(os.listdir(folder), ["r.csv"])


class Table(unittest.TestCase):
    def test_fits_80_columns(self):
        for words in (["--policy", "random,lru,oled,surv,belady,belady-forced,ideal-pooled,full", "--cache", "1,100,256"],
                      ["--policy", "lru", "--policy", "oled:confidence=hindsight,adapt=on", "--cache", "40,60", "--baseline",
                       "lru", "--gap"],
                      ["--policy", "lru,belady", "--scope", "global", "--cache", "40MiB,1GiB", "--baseline", "lru"]):
            done = moesim("run", SAMPLE, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            for line in done.stdout.splitlines():
                self.assertLessEqual(len(line.replace(SAMPLE, "")), 80, line)


class Files(unittest.TestCase):
    def test_decisions_appear_complete_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "d.h5")
            words = ["--policy", "lru", "--cache", "40", "--decisions", path]
            first = run_json(*words)
            self.assertEqual(os.listdir(folder), ["d.h5"])
            self.assertRegex(first["decisions_digest"], "^[0-9a-f]{64}$")
            with open(path, "rb") as file:
                before = file.read()
            self.assertEqual(run_json(*words), first)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before, "not byte-stable")
            failed = moesim("run", SAMPLE, *words, "--window", "100B")
            self.assertNotEqual(failed.returncode, 0)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before, "an older file was touched by a run that failed")
            self.assertEqual(os.listdir(folder), ["d.h5"])

    def test_interruption_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            words = [MOESIM, "run", SAMPLE, "--policy", "oled,surv,lfru,belady,next-pass,random", "--cache", "1:256",
                     "--threads", "1", "--csv", os.path.join(folder, "r.csv")]
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
                time.sleep(0.4)
                if child.poll() is not None:
                    self.skipTest("the run ended before it could be interrupted")
                child.send_signal(signal.SIGINT)
                out, err = child.communicate(timeout=120)
            self.assertEqual((child.returncode, out), (1, ""), err)
            self.assertIn("interrupted", err)
            self.assertEqual(os.listdir(folder), [])

    def test_closed_pipe_is_quiet(self):
        done = subprocess.run(f"'{MOESIM}' run '{SAMPLE}' --policy lru --cache 1:256 --format csv | head -1 | cut -c1-6",
                              shell=True, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.stdout, done.stderr), ("policy\n", ""))


# Published captures, and the budget in MiB at which each was recorded.
CAPTURES = {"qwen": 4000, "gemma": 4000, "gptoss": 3000}
ROUTINGS = 83586


class Captures(unittest.TestCase):
    """What needs a trace of another model: MOESIM_KNOWN_ANSWERS names the folder."""

    def setUp(self):
        folder = pathlib.Path(os.environ.get("MOESIM_KNOWN_ANSWERS", "/nonexistent"), "route-trace")
        if not folder.is_dir():
            self.skipTest("MOESIM_KNOWN_ANSWERS names no folder with captures")
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)
        self.trace = {}
        for name in CAPTURES:
            self.trace[name] = os.path.join(self.work.name, f"{name}.h5")
            done = moesim("trace", "import", "--from", "route-trace", str(folder / f"{name}.route.csv"), self.trace[name])
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_observed_residency(self):
        checked = 0
        for name, budget in CAPTURES.items():
            words = ["run", self.trace[name], "--policy", "lru", "--scope", "global", "--check-observed"]
            done = moesim(*words, "--cache", f"{budget}MiB", "--format", "json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            observed = json.loads(done.stdout)["results"][0]["observed"]
            self.assertEqual(observed["wrong"], 0)
            checked += observed["checked"]
            wrong = moesim(*words, "--cache", f"{budget // 2}MiB")
            self.assertEqual(wrong.returncode, 1)
            self.assertRegex(wrong.stderr, "/observed/residency differs from lru in [0-9]+ of [0-9]+ places, first at row ")
        print(f"observed residencies checked: {checked}")
        self.assertEqual(checked, ROUTINGS)

    def test_surv_warns_of_other_models(self):
        done = moesim("run", self.trace["qwen"], "--policy", "surv", "--cache", "8")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: surv's table was calibrated on example/blockdiff-moe-20x256k8; this trace is of ", done.stderr)
        self.assertNotIn("warning", moesim("run", self.trace["qwen"], "--policy", "lru", "--cache", "8").stderr)


result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=1).result
print(f"command line checked: {result.testsRun} tests, {len(result.skipped)} skipped")
for test, why in result.skipped:
    print(f"skipped {test.id()}: {why}")
sys.exit(not result.wasSuccessful() or result.testsRun == 0)
